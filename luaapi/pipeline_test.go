package luaapi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

// traces are scripts that note in the access line in which order they ran.
func trace(stage string, order string, extra string) string {
	return `return { stage = "` + stage + `", order = ` + order + `,
		on_request = function(req, ctx, conf) ctx.trace = (ctx.trace or "") .. " " .. conf.name ` + extra + ` end,
		on_response = function(res, ctx, conf) res.headers:add("X-Trace", conf.name) end,
		on_log = function(entry, ctx, conf) gw.log.info("trace", { log = conf.name, trace = ctx.trace }) end,
		config = { name = { "string", required = true } } }`
}

const named = `
[filter.a]
name = "a"
[filter.b]
name = "b"
[filter.c]
name = "c"
[filter.d]
name = "d"
enabled = false
[filter.e]
script = "a"
stage = "transform"
order = 99
name = "e"
[[route]]
name = "other"
path = "/other"
upstream = "main"
[route.filter.d]
[route.filter.b]
enabled = false
[route.filter.a]
name = "A"
`

func traces(t *testing.T, deny string) *luatest.Bench {
	return bench(t, named, map[string]string{
		"a": trace("auth", "10", ""), "b": trace("auth", "20", deny), "c": trace("transform", "1", ""), "d": trace("auth", "5", ""),
	})
}

func values(a luatest.Answer, name string) (all []string) {
	for _, line := range a.Headers {
		if line[0] == name {
			all = append(all, line[1])
		}
	}
	return all
}

func TestFiltersRunInOrderAndAnswersInReverse(t *testing.T) {
	b := traces(t, "")
	for route, want := range map[string]string{"all": "a b c e", "other": "d A c e"} {
		a := b.Do(luatest.Request{Route: route})
		names := strings.Fields(want)
		if log := b.Log(); strings.Count(log, "\n") != 4 || strings.Count(log, `"trace":" `+want+`"`) != 4 {
			t.Errorf("%s: logged %s, want %s", route, log, want)
		}
		slices.Reverse(names)
		if got := values(a, "X-Trace"); !slices.Equal(got, names) {
			t.Errorf("%s: responses ran %v, want %v", route, got, names)
		}
	}
}

func TestAnEarlyAnswerPassesTheFiltersWhoseTurnHadCome(t *testing.T) {
	for _, deny := range []string{`; return gw.respond(403, "no")`, `; error("broken")`} {
		b := traces(t, deny)
		b.Upstream = func(luatest.Forwarded) luatest.Answer { t.Error("the upstream was asked"); return luatest.Answer{} }
		x := b.Exchange(luatest.Request{})
		a := b.Serve(x)
		if got := values(a, "X-Trace"); !slices.Equal(got, []string{"b", "a"}) {
			t.Errorf("%s: status %d, responses ran %v, want b a", deny, a.Status, got)
		}
		if log := b.Log(); strings.Count(log, `"msg":"trace"`) != 4 {
			t.Errorf("%s: not all 4 log functions ran: %s", deny, log)
		}
	}
}

func TestTurnCountsTheFiltersOfTheRoute(t *testing.T) {
	b := traces(t, "")
	x := b.Exchange(luatest.Request{})
	var turns []int
	for _, s := range b.Pipeline.Stages(x.Route) {
		if _, err := s.Request(x); err != nil {
			t.Fatal(err)
		}
		turns = append(turns, x.Turn)
	}
	if !slices.Equal(turns, []int{2, 4}) {
		t.Errorf("turns %v, want 2 4", turns)
	}
}

func TestWithoutARouteTheFiltersOfAllRoutesSeeTheAnswer(t *testing.T) {
	b := traces(t, "")
	a := b.Do(luatest.Request{Route: "-"})
	if got := values(a, "X-Trace"); a.Status != 404 || !slices.Equal(got, []string{"e", "c", "b", "a"}) || strings.Count(b.Log(), `"msg":"trace"`) != 4 {
		t.Errorf("status %d, responses ran %v", a.Status, got)
	}
}

func TestAStageWithoutFiltersOnARouteIsNotThere(t *testing.T) {
	b := bench(t, `
[filter.a]
enabled = false
[[route]]
name = "other"
path = "/other"
upstream = "main"
[route.filter.a]
`, map[string]string{"a": `return { stage = "auth", on_request = function() end }`})
	for route, want := range map[string]int{"all": 0, "other": 1} {
		if got := b.Pipeline.Stages(b.Route(route)); len(got) != want {
			t.Errorf("%s: %d stages, want %d", route, len(got), want)
		}
	}
	if got := b.Pipeline.Stages(nil); len(got) != 0 {
		t.Errorf("without a route: %d stages", len(got))
	}
}

func TestAFailedResponseFunctionIsFollowedByThoseThatRemain(t *testing.T) {
	b := bench(t, "", map[string]string{
		"a": `return { stage = "transform", order = 1, on_response = function(res) res.headers["X-Security"] = "on" end }`,
		"b": `return { stage = "transform", order = 2, on_response = function() error("broken") end }`,
	})
	x := b.Exchange(luatest.Request{})
	stage := b.Pipeline.Stages(x.Route)[0]
	if _, err := stage.Request(x); err != nil {
		t.Fatal(err)
	}
	x.Response.Status = 200
	var fault *core.Error
	if err := stage.Response(x); !errors.As(err, &fault) || fault.Status != 500 || x.Response.Header.Has("X-Security") {
		t.Fatalf("%v", err)
	}
	if err := stage.Response(x); err != nil || !x.Response.Header.Has("X-Security") {
		t.Errorf("the second call: %v, headers %v", err, x.Response.Header.Fields())
	}
}

func TestAFilterMayChooseThatItsErrorsLetGoOn(t *testing.T) {
	for _, how := range []struct{ settings, script string }{
		{"[filter.filter]\non_error = \"continue\"\n", `return { stage = "transform", on_request = function(req) error("broken") end }`},
		{"", `return { stage = "transform", on_error = "continue", on_request = function(req) gw.respond(403) end }`},
	} {
		b := bench(t, how.settings, map[string]string{"filter": how.script})
		a := b.Do(luatest.Request{})
		log := b.Log()
		if a.Status != 200 || !strings.Contains(log, "filter.lua:1:") || !strings.Contains(log, `"request_id":"request-1"`) || strings.Count(log, "\n") != 1 {
			t.Errorf("status %d, log %s", a.Status, log)
		}
	}
}

func TestALogFunctionThatFailsHurtsNobody(t *testing.T) {
	b := bench(t, "", map[string]string{
		"a": `return { stage = "log", order = 1, on_log = function(entry) error("broken") end }`,
		"b": `return { stage = "log", order = 2, on_log = function(entry) entry:write() end }`,
	})
	a := b.Do(luatest.Request{})
	if log := b.Log(); a.Status != 200 || len(b.Lines) != 1 || !strings.Contains(log, "a.lua:1: broken") || !strings.Contains(log, "request-1") {
		t.Errorf("status %d, lines %q, log %s", a.Status, b.Lines, log)
	}
}

// slowServices block who asks for the upstreams until they are let go.
type slowServices struct {
	core.Services
	asked, letGo chan struct{}
}

func (s slowServices) Upstreams() []string {
	close(s.asked)
	<-s.letGo
	return nil
}

func TestARequestHasOneLine(t *testing.T) {
	b := bench(t, "", map[string]string{
		"a": `return { stage = "log", order = 1, on_log = function(entry) entry:write({ a = 1 }) end }`,
		"b": `return { stage = "transform", order = 2, on_log = function(entry) entry:write({ b = 2 }) end }`,
	})
	b.Do(luatest.Request{})
	if log := b.Log(); len(b.Lines) != 1 || b.Lines[0] != `,"a":1` || !strings.Contains(log, "a request has one line") {
		t.Errorf("lines %q, log %s", b.Lines, log)
	}
}

func TestABusyPoolIs503(t *testing.T) {
	b := bench(t, "[scripts]\nvms = 1\nwait = \"1ms\"\n", onRequest(`gw.upstream.names()`))
	services := slowServices{asked: make(chan struct{}), letGo: make(chan struct{})}
	route := b.Route("all")
	p, err := luaapi.Build(luaapi.Options{Config: b.Config, Routes: []*core.Route{route}, Services: services})
	if err != nil {
		t.Fatal(err)
	}
	request := func() error {
		x := new(core.Exchange)
		x.Route = route
		_, err := p.Stages(route)[0].Request(x)
		return err
	}
	done := make(chan error)
	go func() { done <- request() }()
	<-services.asked
	var fault *core.Error
	if err := request(); !errors.As(err, &fault) || fault.Status != 503 {
		t.Errorf("error %v, want 503", err)
	}
	close(services.letGo)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestATimeOutMayHaveAChoiceOfItsOwn(t *testing.T) {
	const late, broken = `while true do end`, `error("broken")`
	for _, c := range []struct {
		settings, fields, body string
		want                   int
	}{
		{"", `on_timeout = "continue"`, late, 200},
		{"", `on_timeout = "continue"`, broken, 500},
		{"", `on_error = "continue"`, late, 200},
		{"", `on_error = "continue", on_timeout = "fail"`, late, 500},
		{"", `on_error = "continue", on_timeout = "fail"`, broken, 200},
		{"[filter.filter]\non_timeout = \"fail\"\n", `on_timeout = "continue"`, late, 500},
		{"[filter.filter]\non_error = \"continue\"\n", `order = 1`, late, 200},
	} {
		b := bench(t, "[scripts]\nbudget = \"5ms\"\n"+c.settings, map[string]string{"filter": `return { stage = "transform", ` + c.fields + `, on_request = function() ` + c.body + ` end }`})
		if a := b.Do(luatest.Request{}); a.Status != c.want {
			t.Errorf("%s%s, %s: status %d, want %d", c.settings, c.fields, c.body, a.Status, c.want)
		}
	}
}
