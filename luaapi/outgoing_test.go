package luaapi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

func TestDelaysOfAStageAddUp(t *testing.T) {
	b := bench(t, "", map[string]string{
		"a": `return { stage = "limit", order = 1, on_request = function() assert(gw.delay(0.25)) assert(gw.delay("250ms")) end }`,
		"b": `return { stage = "limit", order = 2, on_request = function() assert(gw.delay(1)) assert(gw.delay(0)) return gw.respond(429, "slowly") end }`,
	})
	if a := b.Do(luatest.Request{}); a.Status != 429 || b.Delayed != 1500*time.Millisecond {
		t.Errorf("status %d, delayed by %v", a.Status, b.Delayed)
	}
}

func TestADelayThatCannotBeMeantRaises(t *testing.T) {
	for call, want := range map[string]string{
		`gw.delay()`: "got nil", `gw.delay(-1)`: "got -1", `gw.delay(0/0)`: "got", `gw.delay("5")`: `got "5"`, `gw.delay(1e300)`: "got",
		`gw.delay(11)`:               "a stage delays a request by at most 10s",
		`gw.delay(6) gw.delay("5s")`: "a stage delays a request by at most 10s",
	} {
		a, _ := run(t, call, luatest.Request{})
		if a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: bad argument #1 to 'gw.delay'") {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

// holding are services with few places for requests that are held back.
type holding struct {
	core.Services
	places int
	asked  []time.Duration
	err    error
}

func (s *holding) ReserveDelay() bool {
	s.places--
	return s.places >= 0
}

func (s *holding) Delay(_ *core.Exchange, d time.Duration) error {
	s.places++
	s.asked = append(s.asked, d)
	return s.err
}

func heldBack(t *testing.T, s *holding, body string) (*core.Reply, error) {
	t.Helper()
	b := bench(t, "", onRequest(body))
	route := b.Route("all")
	p, err := luaapi.Build(luaapi.Options{Config: b.Config, Routes: []*core.Route{route}, Services: s})
	if err != nil {
		t.Fatal(err)
	}
	return p.Stages(route)[0].Request(&core.Exchange{Route: route})
}

func TestADelayHasAPlaceAndGivesItBack(t *testing.T) {
	s := &holding{}
	if reply, err := heldBack(t, s, `local ok, err = gw.delay(1) return gw.respond(503, err)`); err != nil || reply.Message != "too many requests are delayed" || len(s.asked) > 0 {
		t.Errorf("%+v, %v, %v", reply, err, s.asked)
	}
	s = &holding{places: 1}
	if _, err := heldBack(t, s, `assert(gw.delay(1)) error("broken")`); err == nil || s.places != 1 || s.asked[0] != 0 {
		t.Errorf("a filter that broke: %v, %d places, held back by %v", err, s.places, s.asked)
	}
	s = &holding{places: 1, err: core.Fail(core.StatusClientGone, "client left", nil)}
	if reply, err := heldBack(t, s, `assert(gw.delay(1)) return gw.respond(200)`); !errors.Is(err, s.err) || reply != nil || s.places != 1 {
		t.Errorf("a client that left: %v, %v, %d places", reply, err, s.places)
	}
}

func TestACopyIsWishedForOrNot(t *testing.T) {
	b := bench(t, "", onRequest(`
		assert(gw.mirror("canary") == true)
		assert(gw.mirror("canary", { fraction = 0 }) == false)
		assert(gw.mirror("main", { fraction = 1, headers = { ["X-Shadow"] = "1" } }) == true)`))
	if a := b.Do(luatest.Request{}); a.Err != nil || strings.Join(b.Mirrored, " ") != "canary main" {
		t.Errorf("%v, %v", a.Err, b.Mirrored)
	}
	chosen := 0
	b = bench(t, "", onRequest(`gw.mirror("canary", { fraction = 0.5 })`))
	for range 1000 {
		b.Do(luatest.Request{})
	}
	if chosen = len(b.Mirrored); chosen < 300 || chosen > 700 {
		t.Errorf("%d of 1000, want about half", chosen)
	}
}

func TestACopyThatCannotBeMeantRaises(t *testing.T) {
	for call, want := range map[string]string{
		`gw.mirror("nowhere")`:                                    `there is no upstream "nowhere"`,
		`gw.mirror("canary", { fraction = 2 })`:                   "fraction is a number from 0 to 1",
		`gw.mirror("canary", { fraction = 0/0 })`:                 "fraction is a number from 0 to 1",
		`gw.mirror("canary", { share = 1 })`:                      `there is no option "share"`,
		`gw.mirror("canary", { headers = { Host = "x" } })`:       "header Host is written by the gateway",
		`gw.mirror("canary", { headers = { ["X-A"] = "\r\n" } })`: "line break",
		`for i = 1, 5 do gw.mirror("canary") end`:                 "more than 4 copies of one request",
		`gw.mirror()`: "string expected, got nil",
	} {
		a, _ := run(t, call, luatest.Request{})
		if a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: ") {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

func TestEndpointsTellTheirState(t *testing.T) {
	holds(t, `
		local states = gw.upstream.endpoints("main")
		assert(#states >= 1)
		for _, s in ipairs(states) do
			assert(s.ready == true and s.weight >= 0 and s.url == s.endpoint.url and s.endpoint.upstream == "main")
			ctx.endpoint = s.endpoint
		end
		local ok, err = pcall(gw.upstream.endpoints, "nowhere")
		assert(not ok and err:find("there is no upstream"))
	`, luatest.Request{})
}
