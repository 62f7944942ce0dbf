package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// gw.metric: series of scripts, declared while the script is loaded.

var metricDeclaration = list(p("name", "string", "lower case, digits and `_`; it is shown behind `moongate_script_`"),
	opt("labels", "string[]", "names of labels, at most eight"), opt("help", "string", "what it counts"))

const metricBound = " Of each metric there are at most 1000 series; beyond, all count as `overflow`."

var metricFuncs = []vm.Func{
	{Name: "gw.metric.counter", Phases: phaseLoad | phaseInit,
		Doc:    "Declares a counter: `:inc(label values...)` adds one, `:add(n, label values...)` adds n." + metricBound,
		Params: metricDeclaration, Returns: list(p("counter", "gw.Metric", "")),
		Do: func(a vm.Args) int { return declareMetric(a, metrics.Counter) }},
	{Name: "gw.metric.gauge", Phases: phaseLoad | phaseInit,
		Doc:    "Declares a gauge: `:set(n, label values...)` and `:add(n, label values...)`." + metricBound,
		Params: metricDeclaration, Returns: list(p("gauge", "gw.Metric", "")),
		Do: func(a vm.Args) int { return declareMetric(a, metrics.Gauge) }},
	{Name: "gw.metric.histogram", Phases: phaseLoad | phaseInit,
		Doc:    "Declares a histogram of seconds, from 0.5 ms to 10 s: `:observe(seconds, label values...)`." + metricBound,
		Params: metricDeclaration, Returns: list(p("histogram", "gw.Metric", "")),
		Do: func(a vm.Args) int { return declareMetric(a, metrics.Histogram) }},
}

// metricMethods are the functions of what they return.
var metricMethods = []vm.Func{
	{Name: "metric:inc", Doc: "Adds one to a counter.", Params: list(p("...", "string", "a value for each label")),
		Do: func(a vm.Args) int {
			return useMetric(a, func(m *metrics.ScriptMetric, labels []string) error { return m.Add(1, labels...) }, 2)
		}},
	{Name: "metric:add", Doc: "Adds to a counter or a gauge.", Params: list(p("n", "number", ""), p("...", "string", "a value for each label")),
		Do: func(a vm.Args) int {
			n := a.Number(2)
			return useMetric(a, func(m *metrics.ScriptMetric, labels []string) error { return m.Add(n, labels...) }, 3)
		}},
	{Name: "metric:set", Doc: "Sets a gauge.", Params: list(p("n", "number", ""), p("...", "string", "a value for each label")),
		Do: func(a vm.Args) int {
			n := a.Number(2)
			return useMetric(a, func(m *metrics.ScriptMetric, labels []string) error { return m.Set(n, labels...) }, 3)
		}},
	{Name: "metric:observe", Doc: "Counts a value in a histogram.", Params: list(p("seconds", "number", ""), p("...", "string", "a value for each label")),
		Do: func(a vm.Args) int {
			n := a.Number(2)
			return useMetric(a, func(m *metrics.ScriptMetric, labels []string) error { return m.Observe(n, labels...) }, 3)
		}},
}

// metricMeta is the metatable of all metrics.
var metricMeta = handleMeta("a metric", metricMethods)

func declareMetric(a vm.Args, kind metrics.ScriptKind) int {
	m := a.VM.Data.(*machine)
	o := metrics.ScriptOptions{Script: m.loading, Name: argText(a, 1), Kind: kind}
	if a.Has(2) {
		labels := a.Readable(2)
		if o.Labels = stringsOf(labels); len(o.Labels) != labels.MaxN() {
			a.Bad(2, "a list of label names expected")
		}
	}
	if a.Has(3) {
		o.Help = argText(a, 3)
	}
	metric, err := m.stage.metrics.Script(o)
	if err != nil {
		a.Raise("%s", err)
	}
	a.L.Push(&lua.LUserData{Value: metric, Metatable: metricMeta})
	return 1
}

// useMetric calls a method with the label values from argument first on.
func useMetric(a vm.Args, use func(*metrics.ScriptMetric, []string) error, first int) int {
	ud, _ := a.Get(1).(*lua.LUserData)
	if ud == nil {
		a.Raise("call it with a colon: %s(...)", a.Func.Name)
	}
	m, ok := ud.Value.(*metrics.ScriptMetric)
	if !ok {
		a.Raise("call it with a colon: %s(...)", a.Func.Name)
	}
	var room [8]string
	labels := room[:0]
	for i := first; i <= a.Len(); i++ {
		labels = append(labels, argText(a, i))
	}
	if err := use(m, labels); err != nil {
		a.Raise("%s", err)
	}
	return 0
}
