package luaapi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

// calling runs a body of on_request and gives the calls that it made, with the answer to the client.
func calling(t *testing.T, settings, body string, answer func(luatest.Called) luatest.Answer) (luatest.Answer, []luatest.Called) {
	t.Helper()
	b := bench(t, settings, onRequest(body))
	b.Calls = answer
	a := b.Do(luatest.Request{})
	return a, b.Called
}

func TestACallGoesOutAsItIsWritten(t *testing.T) {
	for call, want := range map[string]luatest.Called{
		`gw.http.get("http://Example.com")`:                                   {URL: "http://example.com", Method: "GET", Path: "/", Timeout: 5 * time.Second},
		`gw.http.get("https://a.example:8443/x%2Fy z?q=1&r=ä#part")`:          {URL: "https://a.example:8443", Method: "GET", Path: "/x%2Fy%20z", Query: "q=1&r=%C3%A4", Timeout: 5 * time.Second},
		`gw.http.get("http://a?x=1", { query = { y = "2 3" }, timeout = 2 })`: {URL: "http://a", Method: "GET", Path: "/", Query: "x=1&y=2%203", Timeout: 2 * time.Second},
		`gw.http.post("http://a/b", { json = { n = 1 } })`: {URL: "http://a", Method: "POST", Path: "/b", Body: `{"n":1}`, Timeout: 5 * time.Second,
			Headers: lines("Content-Type", "application/json")},
		`gw.http.post("http://a/b", { form = { a = "1 2", b = { "x", "y" } } })`: {URL: "http://a", Method: "POST", Path: "/b", Body: "a=1%202&b=x&b=y",
			Timeout: 5 * time.Second, Headers: lines("Content-Type", "application/x-www-form-urlencoded")},
		`gw.http.request { upstream = "main" }`:                                       {Upstream: "main", Method: "GET", Path: "/", Timeout: 5 * time.Second},
		`gw.http.request { upstream = "main", path = "/a?b", body = "text" }`:         {Upstream: "main", Method: "POST", Path: "/a", Query: "b", Body: "text", Timeout: 5 * time.Second},
		`gw.http.request { upstream = "main", method = "DELETE", timeout = "250ms" }`: {Upstream: "main", Method: "DELETE", Path: "/", Timeout: 250 * time.Millisecond},
		`gw.http.request { upstream = "main", headers = { ["X-A"] = { 1, "2" } } }`: {Upstream: "main", Method: "GET", Path: "/", Timeout: 5 * time.Second,
			Headers: lines("X-A", "1", "X-A", "2")},
		`gw.http.request { upstream = "main", json = gw.json.array {}, headers = { ["content-type"] = "application/x" } }`: {Upstream: "main", Method: "POST", Path: "/",
			Body: "[]", Timeout: 5 * time.Second, Headers: lines("content-type", "application/x")},
	} {
		a, calls := calling(t, "", call, nil)
		if a.Err != nil || len(calls) != 1 {
			t.Errorf("%s: %v, %d calls", call, a.Err, len(calls))
			continue
		}
		got := calls[0]
		if !slices.Equal(got.Headers, want.Headers) {
			t.Errorf("%s: headers %v, want %v", call, got.Headers, want.Headers)
		}
		got.Headers, want.Headers = nil, nil
		if got.Upstream != want.Upstream || got.URL != want.URL || got.Method != want.Method || got.Path != want.Path || got.Query != want.Query ||
			got.Body != want.Body || got.Timeout != want.Timeout {
			t.Errorf("%s: %+v, want %+v", call, got, want)
		}
	}
}

func TestAnAnswerTellsWhatCame(t *testing.T) {
	a, _ := calling(t, "", `
		local answer = assert(gw.http.get("http://a/"))
		assert(answer.status == 404 and answer.body == '{"n":12345678901234567890}')
		assert(answer.headers["x-one"] == "1" and answer.headers["X-None"] == nil and answer.headers["x-two"] == "a, b")
		assert(#answer.headers:all("X-Two") == 2 and answer.headers["Set-Cookie"] == "a=1, b")
		local n = 0
		for name, value in pairs(answer.headers) do n = n + 1 end
		assert(n == 5)
		assert(tostring(answer:json().n) == "12345678901234567890" and tostring(answer:json_get("n")) == "12345678901234567890")
		for _, wrong in ipairs { function() return answer.text end, function() answer.status = 1 end, function() answer.headers["X"] = "1" end,
			function() return answer.json() end, function() answer.headers:add("X", "1") end } do
			local ok, err = pcall(wrong)
			assert(not ok and err:find("^filter.lua:%d+: "), err)
		end
	`, func(luatest.Called) luatest.Answer {
		return luatest.Answer{Status: 404, Body: `{"n":12345678901234567890}`, Headers: lines("X-One", "1", "X-Two", "a", "x-two", "b", "Set-Cookie", "a=1, b", "Set-Cookie", "c")}
	})
	if a.Err != nil {
		t.Error(a.Err)
	}
}

func TestACallThatCannotBeMeantRaises(t *testing.T) {
	for call, want := range map[string]string{
		`gw.http.get()`:                                                                 "a URL or a table expected, got nil",
		`gw.http.get("example.com")`:                                                    "has a url that is none",
		`gw.http.get("ftp://a/")`:                                                       "has a url that is none",
		`gw.http.get("http:///x")`:                                                      "has a url whose host is none",
		`gw.http.get("http://tom:pw@a/")`:                                               "has a url whose host is none",
		`gw.http.get("http://a:0/")`:                                                    "has a url whose host is none",
		`gw.http.get("http://a:99999/")`:                                                "has a url whose host is none",
		`gw.http.get("http://a b/")`:                                                    "has a url whose host is none",
		`gw.http.get("http://a/\r\nX: 1")`:                                              "the url of gw.http.get has a line break",
		`gw.http.get("http://a/\0")`:                                                    "the url of gw.http.get has a line break",
		`gw.http.get("http://a/\r")`:                                                    "the url of gw.http.get has a line break",
		`gw.http.get("http://a/x/%2e%2E/y")`:                                            "has a segment . or ..",
		`gw.http.get("http://a/", { method = "POST" })`:                                 "has a method, which gw.http.get says already",
		`gw.http.get({ url = "http://a" }, {})`:                                         "a call that is a table says everything itself",
		`gw.http.get("http://a/", { headers = { ["X-A"] = "1\r\nB: 2" } })`:             "the value of header X-A has a line break",
		`gw.http.get("http://a/", { headers = { ["X A"] = "1" } })`:                     "no header can be named",
		`gw.http.get("http://a/", { headers = { ["X\r\nA"] = "1" } })`:                  "no header can be named",
		`gw.http.get("http://a/", { headers = { "X-A: 1" } })`:                          "headers have names, not 1",
		`gw.http.get("http://a/", { headers = { host = "b" } })`:                        "has a header host, which the gateway writes itself",
		`gw.http.get("http://a/", { headers = { ["Transfer-Encoding"] = "chunked" } })`: "has a header Transfer-Encoding",
		`gw.http.get("http://a/", { header = {} })`:                                     `has no "header": it has url or upstream`,
		`gw.http.get("http://a/", { timeout = 0 })`:                                     "has a timeout that is none",
		`gw.http.get("http://a/", { timeout = "5" })`:                                   "has a timeout that is none",
		`gw.http.get("http://a/", { timeout = -1 })`:                                    "has a timeout that is none",
		`gw.http.get("http://a/", { timeout = 0/0 })`:                                   "has a timeout that is none",
		`gw.http.request { }`:                                                           "leads nowhere",
		`gw.http.request { url = "http://a", upstream = "main" }`:                       "has a url and an upstream",
		`gw.http.request { url = "http://a", path = "/" }`:                              "has a url and a path",
		`gw.http.request { upstream = "nowhere" }`:                                      `there is no "nowhere"`,
		`gw.http.request { upstream = "main", path = "x" }`:                             "has a path that does not begin with a slash",
		`gw.http.request { upstream = "main", path = "/a\nb" }`:                         "the path of gw.http.request has a line break",
		`gw.http.request { upstream = "main", method = "GET /" }`:                       "cannot have the method",
		`gw.http.request { upstream = "main", body = "a", json = 1 }`:                   "has more than one of body, json and form",
		`gw.http.request { upstream = "main", json = print }`:                           "has json that is none",
		`gw.http.request { upstream = "main", query = "a=b" }`:                          "has a query that is a string",
		`gw.http.request { upstream = "main", query = { a = {{}} } }`:                   "a is a table: a parameter is a string or a number",
		`gw.http.request("http://a/")`:                                                  "table expected, got string",
		`gw.http.all { "http://a/" }`:                                                   "each call is a table, not a string",
		`gw.http.all { x = { url = "a" } }`:                                             `(call "x") has a url that is none`,
		`for i = 1, 17 do gw.http.get("http://a/") end`:                                 "more than 16 calls in one function",
		`local t = {} for i = 1, 17 do t[i] = { url = "http://a/" } end gw.http.all(t)`: "more than 16 calls in one function",
	} {
		a, _ := calling(t, "", call, nil)
		if a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: ") || a.Status != 500 {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

func TestEachFunctionHasItsOwnCalls(t *testing.T) {
	b := bench(t, "[scripts.http]\ncalls = 2\n", map[string]string{
		"a": `return { stage = "transform", order = 1, on_request = function() gw.http.get("http://a/") gw.http.get("http://a/") end }`,
		"b": `return { stage = "transform", order = 2, on_request = function() gw.http.get("http://a/") gw.http.get("http://a/") end,
			on_response = function() gw.http.get("http://a/") end, on_log = function() gw.http.get("http://a/") end }`,
	})
	if a := b.Do(luatest.Request{}); a.Err != nil || len(b.Called) != 6 {
		t.Errorf("%v, %d calls", a.Err, len(b.Called))
	}
}

func TestACallThatFailsGivesNilAndWhy(t *testing.T) {
	fail := func(luatest.Called) luatest.Answer { return luatest.Answer{Err: errors.New("a: timed out after 1s")} }
	a, _ := calling(t, "", `
		local answer, err = gw.http.get("http://a/")
		assert(answer == nil and err == "a: timed out after 1s")
		local answers, errs = gw.http.all { x = { url = "http://a/" }, { url = "http://b/" } }
		assert(next(answers) == nil and errs.x == err and errs[1] == err)
		answers, errs = gw.http.all {}
		assert(next(answers) == nil and next(errs) == nil)
	`, fail)
	if a.Err != nil {
		t.Error(a.Err)
	}
}

func TestManyCallsAtOnceKeepTheirAnswersApart(t *testing.T) {
	a, calls := calling(t, "", `
		local answers, errs = gw.http.all { one = { url = "http://a/1" }, two = { upstream = "main", path = "/2" }, { url = "http://a/3" } }
		assert(answers.one.body == "/1" and answers.two.body == "/2" and answers[1].body == "/3" and next(errs) == nil)
	`, func(c luatest.Called) luatest.Answer { return luatest.Answer{Status: 200, Body: c.Path} })
	if a.Err != nil || len(calls) != 3 {
		t.Error(a.Err, len(calls))
	}
}

func TestAnAnswerIsHeldToItsSize(t *testing.T) {
	a, _ := calling(t, "[scripts.http]\nmax_answer = \"10B\"\n", `
		local answer, err = gw.http.get("http://a/")
		assert(answer == nil and err ~= nil)
	`, func(luatest.Called) luatest.Answer { return luatest.Answer{Status: 200, Body: "12345678901"} })
	if a.Err != nil {
		t.Error(a.Err)
	}
}

func TestCallsAreMadeWhereRequestsAre(t *testing.T) {
	got := refusal(t, "", map[string]string{"filter": `gw.http.get("http://a/")` + "\n" + empty})
	if len(got) != 1 || !strings.Contains(got[0], "gw.http.get cannot be called in the file itself") {
		t.Errorf("%q", got)
	}
}

func TestTimersMakeCalls(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": `gw.time.every(60, function()
		local answer = assert(gw.http.get { upstream = "main", path = "/deny-list" })
		gw.shared.set("denied", "list", answer.body)
	end)
	return { stage = "transform", on_request = function() return gw.respond(200, gw.shared.get("denied", "list")) end }`})
	b.Calls = func(c luatest.Called) luatest.Answer { return luatest.Answer{Status: 200, Body: c.Path} }
	if err := b.Pipeline.Tick(); err != nil {
		t.Fatal(err)
	}
	if a := b.Do(luatest.Request{}); a.Body != "/deny-list" {
		t.Errorf("%v, %s", a.Err, a.Body)
	}
}

// waiting are services whose calls take until their context ends.
type waiting struct {
	core.Services
	began    chan struct{}
	patience time.Duration
	mu       sync.Mutex
	causes   []string
}

func (s *waiting) Patience(*core.Route) time.Duration { return s.patience }
func (s *waiting) Upstream(string) core.Upstream      { return nil }
func (s *waiting) Upstreams() []string                { return nil }

func (s *waiting) Call(ctx context.Context, _ *core.Exchange, calls ...*core.Call) {
	if s.began != nil {
		s.began <- struct{}{}
	}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		c.Err = context.Cause(ctx)
		s.causes = append(s.causes, c.Err.Error())
	}
}

// waits builds a pipeline of one filter over services that make it wait.
func waits(t *testing.T, s *waiting, settings, body string) (*luaapi.Pipeline, *core.Route) {
	t.Helper()
	b := bench(t, settings, onRequest(body))
	route := b.Route("all")
	p, err := luaapi.Build(luaapi.Options{Config: b.Config, Routes: []*core.Route{route}, Services: s})
	if err != nil {
		t.Fatal(err)
	}
	return p, route
}

func TestAClientThatLeavesEndsTheWait(t *testing.T) {
	s := &waiting{began: make(chan struct{}), patience: time.Hour}
	p, route := waits(t, s, "", `pcall(gw.http.get, "http://a/", { timeout = 3600 }) error("went on")`)
	x := &core.Exchange{Route: route}
	ended := make(chan error)
	go func() {
		_, err := p.Stages(route)[0].Request(x)
		ended <- err
	}()
	<-s.began
	x.Lifeline.Break()
	var fault *core.Error
	if err := <-ended; !errors.As(err, &fault) || fault.Status != core.StatusClientGone {
		t.Errorf("%v, want 499", err)
	}
	if len(s.causes) != 1 || s.causes[0] != "the client has left" {
		t.Errorf("%q", s.causes)
	}
	go func() { // one that has left already is not waited for
		_, err := p.Stages(route)[0].Request(x)
		ended <- err
	}()
	if err := <-ended; !errors.As(err, &fault) || fault.Status != core.StatusClientGone {
		t.Errorf("%v, want 499", err)
	}
}

func TestAllWaitsOfARequestAreBoundedByItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &waiting{patience: 10 * time.Second}
		p, route := waits(t, s, "", `
			local errs = {}
			for i = 1, 3 do local _, err = gw.http.get("http://a/", { timeout = 6 }) errs[i] = err end
			return gw.respond(200, table.concat(errs, "; "))`)
		x := &core.Exchange{Route: route}
		began := time.Now()
		reply, err := p.Stages(route)[0].Request(x)
		if err != nil {
			t.Fatal(err)
		}
		over := "the request's time is over: its filters have waited as long as the route's total"
		if got := string(reply.Body); !strings.HasSuffix(got, over+"; "+over) || time.Since(began) != 10*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

func TestAVMThatWaitsMakesRoomForOthers(t *testing.T) {
	s := &waiting{began: make(chan struct{}), patience: time.Hour}
	p, route := waits(t, s, "[scripts]\nvms = 1\nwait = \"0s\"\nmax_waiting = 2\n", `
		local _, err = gw.http.get("http://a/", { timeout = 3600 })
		if err then return gw.respond(200, err) end`)
	var all []*core.Exchange
	ended := make(chan string, 3)
	start := func() {
		x := &core.Exchange{Route: route}
		all = append(all, x)
		go func() {
			reply, err := p.Stages(route)[0].Request(x)
			if err != nil {
				ended <- err.Error()
				return
			}
			ended <- string(reply.Body)
		}()
	}
	for range 2 { // with one VM, both wait at once
		start()
		<-s.began
	}
	start() // and a third has no room to wait
	if got := <-ended; got != "too many Lua VMs are waiting" {
		t.Errorf("%s", got)
	}
	for _, x := range all {
		x.Lifeline.Break()
	}
	for range 2 {
		if got := <-ended; !strings.Contains(got, "client left") {
			t.Errorf("%s", got)
		}
	}
}
