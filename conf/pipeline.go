package conf

import "fmt"

// Pipeline is the order of the stages that scripts run in.
type Pipeline struct {
	Pos    Pos
	Stages []string // in the order of requests; responses pass them in reverse
}

// Equal tells whether two say the same, wherever they stand.
func (p Pipeline) Equal(other Pipeline) bool { return same(p, other) }

func defaultPipeline() Pipeline {
	return Pipeline{Stages: []string{"log", "limit", "auth", "route", "transform"}}
}

var pipelineSection = section[Pipeline]{
	list("stages", func(p *Pipeline) *[]string { return &p.Stages }, filterName("stage")),
}

func (b *binder) checkPipeline(p *Pipeline) {
	if len(p.Stages) == 0 {
		b.errs.Add(b.where("pipeline.stages", p.Pos), "pipeline.stages", `is empty: name at least one stage, such as "auth"`)
	}
}

// filterName checks names that also are file names, metric labels and Lua words.
func filterName(what string) check {
	return func(text string) string {
		if len(text) > 64 || !isWord(text) {
			return fmt.Sprintf("%q is no name of a %s: write letters, digits, _ and -", shorten(text), what)
		}
		return ""
	}
}

func isWord(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !isNameByte(c, 1) && (c != '-' || i == 0) {
			return false
		}
	}
	return text != ""
}
