package luaapi

import (
	"context"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.http: requests of a script's own. They go through core.Services, which knows upstreams, their health and their connections; the VM
// waits meanwhile (outside.go).

const callOptions = "`url`, or `upstream` (a name; unknown ones raise) with `path` and, for balancers that hash, `key`; `method` (default GET, " +
	"with a body POST), `query` (a table), `headers`, one of `body` (text), `json` (any value) and `form` (a table); `timeout` (seconds, or a text " +
	"such as \"500ms\")"

var httpFuncs = []vm.Func{
	{Name: "gw.http.request", Phases: phaseOutside,
		Doc: "Makes a request and waits for the whole answer, of any status. Redirections are answers like others. nil and why when there is none: refused, too " +
			"slow, too long, or an address that URLs may not lead to.",
		Params:  list(p("call", "gw.Call", callOptions)),
		Returns: list(p("answer", "gw.Answer?", ""), errParam),
		Do: func(a vm.Args) int {
			return callOne(a, readCall(a, "call", a.Readable(1)))
		}},
	{Name: "gw.http.get", Phases: phaseOutside,
		Doc:     "Makes a GET request, as gw.http.request does.",
		Params:  list(p("target", "string|gw.Call", "a URL, or a call"), opt("call", "gw.Call", "what else to say beside a URL")),
		Returns: list(p("answer", "gw.Answer?", ""), errParam),
		Do:      func(a vm.Args) int { return callOne(a, readTarget(a, "GET")) }},
	{Name: "gw.http.post", Phases: phaseOutside,
		Doc:     "Makes a POST request, as gw.http.request does.",
		Params:  list(p("target", "string|gw.Call", "a URL, or a call"), opt("call", "gw.Call", "what else to say beside a URL, such as `json`")),
		Returns: list(p("answer", "gw.Answer?", ""), errParam),
		Do:      func(a vm.Args) int { return callOne(a, readTarget(a, "POST")) }},
	{Name: "gw.http.all", Phases: phaseOutside,
		Doc: "Makes several requests at once and waits for all of them. Answers and reasons stand under the keys of their calls: a call has one or " +
			"the other.",
		Params:  list(p("calls", "table<any, gw.Call>", "a list, or calls by name")),
		Returns: list(p("answers", "table<any, gw.Answer>", ""), p("errs", "table<any, string>", "empty when all were answered")),
		Do:      callAll},
}

var answerFields = []vm.Param{
	p("status", "integer", ""),
	p("headers", "gw.Headers", "read-only; as req.headers"),
	p("body", "string", ""),
}

var answerMethods = []vm.Func{
	{Name: "answer:json",
		Doc:     "Reads the answer's body as gw.json.decode does.",
		Returns: list(p("value", "any", ""), p("err", "string?", "why it is no JSON")),
		Do: func(a vm.Args) int {
			return pushDecoded(a, answerOf(a).call.Answer.Body, nil)
		}},
	{Name: "answer:json_get",
		Doc:     "Reads one value of the answer's JSON body, as req:json_get does.",
		Params:  list(p("path", "string", "such as `user.roles.0`")),
		Returns: list(p("value", "any", "nil when the path leads nowhere"), p("err", "string?", "why it is no JSON")),
		Do: func(a vm.Args) int {
			return pushFound(a, answerOf(a).call.Answer.Body, nil)
		}},
}

// readTarget reads the arguments of gw.http.get and post.
func readTarget(a vm.Args, method string) *core.Call {
	if t, ok := a.Get(1).(*lua.LTable); ok {
		if a.Has(2) {
			a.Bad(2, "a call that is a table says everything itself")
		}
		return readMethod(a, method, "call", vm.Thaw(t), "")
	}
	url, ok := text(a.Get(1))
	if !ok {
		a.Bad(1, "a URL or a table expected, got %s", a.Get(1).Type())
	}
	if !a.Has(2) {
		return readMethod(a, method, "call", newTable(), url)
	}
	return readMethod(a, method, "call", a.Readable(2), url)
}

func callOne(a vm.Args, c *core.Call) int {
	if err := makeCalls(a, c); err != nil {
		return pushFailure(a, err)
	}
	if c.Err != nil {
		return pushFailure(a, c.Err)
	}
	a.L.Push(newAnswer(a, c))
	return 1
}

func callAll(a vm.Args) int {
	of := a.Readable(1)
	var keys []lua.LValue
	var calls []*core.Call
	for key, v := of.Next(lua.LNil); key != lua.LNil; key, v = of.Next(key) {
		t, ok := v.(*lua.LTable)
		if !ok {
			a.Bad(1, "each call is a table, not a %s (%s)", v.Type(), describe(key))
		}
		if len(calls) >= callLimit(a) {
			a.Raise("more than %d calls in one function ([scripts.http] calls)", callLimit(a))
		}
		keys, calls = append(keys, key), append(calls, readCall(a, "call "+describe(key), vm.Thaw(t)))
	}
	answers, errs := newTable(), newTable()
	if len(calls) > 0 {
		err := makeCalls(a, calls...)
		for i, c := range calls {
			switch {
			case err != nil:
				errs.RawSet(keys[i], lua.LString(err.Error()))
			case c.Err != nil:
				errs.RawSet(keys[i], lua.LString(c.Err.Error()))
			default:
				answers.RawSet(keys[i], newAnswer(a, c))
			}
		}
	}
	a.L.Push(answers)
	a.L.Push(errs)
	return 2
}

// makeCalls makes the calls while the VM waits. The error says why none was made.
func makeCalls(a vm.Args, calls ...*core.Call) error {
	s := services(a)
	countCalls(a, len(calls))
	var x *core.Exchange
	if f, ok := a.VM.Slot.(*frame); ok {
		x = f.x
	}
	longest := time.Duration(0)
	for _, c := range calls {
		longest = max(longest, c.Timeout)
	}
	return outside(a, longest+time.Second, func(ctx context.Context) { s.Call(ctx, x, calls...) }) // each has its own limit
}

// counted is how many calls the function in work has made.
type counted struct {
	turn  *turn
	calls int
}

func callLimit(a vm.Args) int { return worldOf(a.VM).limitsHTTP.Calls }

// countCalls raises when the function in work makes more calls than it may.
func countCalls(a vm.Args, n int) {
	var made *counted
	switch in := a.VM.Slot.(type) {
	case *frame:
		if made = &in.calls; made.turn != in.turn {
			*made = counted{turn: in.turn}
		}
	case *timerRun:
		made = &in.calls
	default:
		made = new(counted)
	}
	if made.calls += n; made.calls > callLimit(a) {
		a.Raise("more than %d calls in one function ([scripts.http] calls)", callLimit(a))
	}
}
