package luaapi

import (
	"slices"

	"github.com/moongate/moongate/core"
)

// Turn is a filter that runs on a route, for people to read.
type Turn struct {
	Stage     string
	Filter    string
	Script    string   // its file
	Functions []string // those of its functions that requests run, in the order in which they come
}

// Turns lists the filters of a route in the order of their turns; without a route those that run for requests that none takes.
func (p *Pipeline) Turns(route *core.Route) []Turn {
	var turns []Turn
	for _, st := range p.stages {
		for _, t := range st.plan(route).turns {
			turn := Turn{Stage: st.name, Filter: t.filter.name, Script: t.filter.script.file}
			for _, f := range []int{onRequest, onRequestChunk, onResponse, onResponseChunk, onLog} {
				if t.filter.script.has[f] {
					turn.Functions = append(turn.Functions, functionNames[f])
				}
			}
			turns = append(turns, turn)
		}
	}
	return slices.Clip(turns)
}
