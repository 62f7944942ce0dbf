package luaapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

// cached builds a bench whose time stands in *clock.
func cachedBench(t *testing.T, clock *time.Duration, before *luatest.Bench, settings string, scripts map[string]string) *luatest.Bench {
	t.Helper()
	files := map[string]string{"gateway.toml": config + settings}
	for name, source := range scripts {
		files["scripts/"+name+".lua"] = source
	}
	b, err := luatest.New(luatest.Options{Files: files, Before: before, Clock: func() time.Duration { return *clock }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask sends a request and gives its answer's body.
func ask(t *testing.T, b *luatest.Bench, target string) string {
	t.Helper()
	a := b.Do(luatest.Request{Target: target})
	if a.Err != nil {
		return a.Err.Error()
	}
	return a.Body
}

// answering is a filter that answers with what an expression gives.
func answering(before, expression string) map[string]string {
	return map[string]string{"filter": "local loads = 0\n" + filter("on_request", "req", before+"\nlocal v, err = "+expression+`
	return gw.respond(200, tostring(v) .. "," .. tostring(err))`)}
}

// counting is a loader that gives how often it has run.
const counting = `function() return gw.shared.incr("test", "loads") end`

func TestACachedValueIsLoadedOnceInItsTime(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, "", answering("", `gw.cache.get_or(req.path, 10, `+counting+`)`))
	for _, step := range []struct {
		path string
		wait time.Duration
		want string
	}{{"/a", 0, "1,nil"}, {"/a", 9 * time.Second, "1,nil"}, {"/b", 0, "2,nil"}, {"/a", time.Second, "3,nil"}, {"/b", 0, "2,nil"}} {
		clock += step.wait
		if got := ask(t, b, step.path); got != step.want {
			t.Errorf("%s: %s, want %s", step.path, got, step.want)
		}
	}
}

func TestWhatALoaderGivesDecides(t *testing.T) {
	for name, test := range map[string]struct {
		call  string
		steps []string // answers, five seconds apart
	}{
		"nil is kept for negative": {`gw.cache.get_or("k", 60, function() gw.shared.incr("test", "n") return nil, gw.shared.get("test", "n") .. " none" end, { negative = 7 })`,
			[]string{"nil,1 none", "nil,1 none", "nil,2 none"}},
		"nil without a reason": {`gw.cache.get_or("k", 60, function() return nil end)`, []string{"nil,nil", "nil,nil"}},
		"a ttl of its own":     {`gw.cache.get_or("k", 60, function() return gw.shared.incr("test", "n"), nil, 8 end)`, []string{"1,nil", "1,nil", "2,nil"}},
		"a ttl of 0":           {`gw.cache.get_or("k", 60, function() return gw.shared.incr("test", "n"), nil, 0 end)`, []string{"1,nil", "2,nil"}},
		"false is a value":     {`gw.cache.get_or("k", 60, function() gw.shared.incr("test", "n") return false end)`, []string{"false,nil", "false,nil"}},
		"an old value stands in": {`gw.cache.get_or("k", 4, function()
			local n = gw.shared.incr("test", "n")
			if n == 2 then error("broken " .. n) elseif n == 3 then return nil, "refused" end
			return n
		end, { stale = 60 })`, []string{"1,nil", "1,filter.lua:7: broken 2", "1,refused", "4,nil"}},
		"an old value stands in for so long only": {`gw.cache.get_or("k", 4, function()
			local n = gw.shared.incr("test", "n")
			if n > 1 then return nil, "refused" end
			return n
		end, { stale = 5 })`, []string{"1,nil", "1,refused", "nil,refused"}},
		"that there is none now is no failure": {`gw.cache.get_or("k", 4, function()
			if gw.shared.incr("test", "n") == 1 then return "v" end
		end, { stale = 60, negative = 20 })`, []string{"v,nil", "nil,nil", "nil,nil"}},
		"tables":          {`gw.json.encode(gw.cache.get_or("k", 60, function() return { list = gw.json.array {}, n = gw.shared.incr("test", "n") } end))`, []string{`{"list":[],"n":1},nil`, `{"list":[],"n":1},nil`}},
		"not a function":  {`pcall(gw.cache.get_or, "k", 60, function() return print end)`, []string{"false,filter.lua:5: what the loader gives holds plain values, not a function"}},
		"not a handle":    {`pcall(gw.cache.get_or, "k", 60, function() return req end)`, []string{"false,filter.lua:5: what the loader gives holds plain values, not handles: they end with their request"}},
		"read-only":       {`pcall(function() gw.cache.get_or("k", 60, function() return { a = 1 } end).a = 2 end)`, []string{"false,filter.lua:5: what the loader gives is read-only: cannot set 'a'"}},
		"asks for itself": {`pcall(gw.cache.get_or, "k", 60, function() return gw.cache.get_or("k", 60, print) end)`, []string{"false,filter.lua:5: gw.cache.get_or: the loader of this key asks for the key itself"}},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Duration
			b := cachedBench(t, &clock, nil, "", answering("", test.call))
			for i, want := range test.steps {
				if got := ask(t, b, "/"); !strings.HasPrefix(got, want) {
					t.Errorf("step %d: %s, want %s", i, got, want)
				}
				clock += 5 * time.Second
			}
		})
	}
}

func TestARaisedErrorIsTheRequestsOwnWithScriptAndLine(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, "", answering("", "gw.cache.get_or('k', 60, function()\n error({ code = gw.shared.incr('test', 'n') })\n end)"))
	for i, want := range []string{`{"code":1}`, `{"code":1}`, `{"code":2}`} {
		a := b.Do(luatest.Request{})
		if a.Status != 500 || !strings.Contains(fmt.Sprint(a.Err), want) || strings.Contains(a.Body, "code\":1") && strings.Contains(a.Body, "filter") {
			t.Errorf("request %d: %+v", i, a)
		}
		clock += 600 * time.Millisecond
	}
}

func TestJitterShortensTheTime(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, "", answering("", `gw.cache.get_or(req.path, 100, `+counting+`, { jitter = 0.5 })`))
	for i := range 50 {
		ask(t, b, fmt.Sprint("/", i))
	}
	clock = 49 * time.Second
	for i := range 50 {
		if got, want := ask(t, b, fmt.Sprint("/", i)), fmt.Sprintf("%d,nil", i+1); got != want {
			t.Errorf("before half its time: %s, want %s", got, want)
		}
	}
	clock = 99 * time.Second
	kept := 0
	for i := range 50 {
		if ask(t, b, fmt.Sprint("/", i)) == fmt.Sprintf("%d,nil", i+1) {
			kept++
		}
	}
	if kept > 25 { // 1 of 50 as a rule
		t.Errorf("%d of 50 are as old as they may be", kept)
	}
}

// together lets n requests with different targets run at once, each in a goroutine, and gives their answers or errors.
func together(b *luatest.Bench, n int) []string {
	answers := make([]string, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			x := new(core.Exchange)
			x.Route = b.Route("all")
			x.Request.Path = []byte(fmt.Sprint("/", i))
			for _, stage := range b.Pipeline.Stages(x.Route) {
				reply, err := stage.Request(x)
				if err != nil {
					answers[i] = err.Error()
				} else if reply != nil {
					answers[i] = string(reply.Body)
				}
			}
		})
	}
	wait.Wait()
	return answers
}

func TestOfManyWhoWantAKeyOneLoadsIt(t *testing.T) {
	var clock time.Duration
	const n = 12
	b := cachedBench(t, &clock, nil, patient, answering(`gw.shared.incr("test", "here")`, fmt.Sprintf(`gw.cache.get_or("k", 60, function()
		while gw.shared.get("test", "here") < %d do end
		return gw.shared.incr("test", "loads")
	end)`, n)))
	for i, got := range together(b, n) {
		if got != "1,nil" {
			t.Errorf("request %d got %s", i, got)
		}
	}
}

func TestWhoWaitsHoldsNoVMOfThePool(t *testing.T) {
	var clock time.Duration
	// Of two VMs one loads, until all five have asked; so four come through the other, though three of them wait by then.
	b := cachedBench(t, &clock, nil, patient+"vms = 2\n", answering(`gw.shared.incr("test", "asked")`, `gw.cache.get_or("k", 60, function()
		while gw.shared.get("test", "asked") < 5 do end
		return "value"
	end)`))
	for i, got := range together(b, 5) {
		if got != "value,nil" {
			t.Errorf("request %d got %s", i, got)
		}
	}
}

func TestNobodyWaitsLongerThanItMay(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, patient, answering("", `gw.cache.get_or("k", 60, function()
		while not gw.shared.get("test", "late") do end
		return "value"
	end, { wait = 0.02 })
	if err then gw.shared.set("test", "late", true) end`))
	got := together(b, 2)
	if got[0] > got[1] {
		got[0], got[1] = got[1], got[0]
	}
	if got[0] != "nil,timed out while another request loads it" || got[1] != "value,nil" {
		t.Errorf("got %v", got)
	}
}

func TestALoaderThatSpendsItsBudgetLeavesTheTaskToAnother(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, "[scripts]\nbudget = \"20ms\"\nwait = \"10s\"\n", answering("", `gw.cache.get_or("k", 60, function()
		if gw.shared.add("test", "first", true) then while true do end end
		return "value"
	end)`))
	failed := 0
	for _, got := range together(b, 4) {
		if strings.Contains(got, "time budget") || strings.Contains(got, "internal error") {
			failed++
		} else if got != "value,nil" {
			t.Errorf("got %s", got)
		}
	}
	if failed != 1 {
		t.Errorf("%d failed", failed)
	}
}

func TestWhileOneLoadsAnewTheOthersGetTheOldValue(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, patient, answering("", `gw.cache.get_or("k", 1, function()
		local n = gw.shared.incr("test", "n")
		while n == 2 and (gw.shared.get("test", "old") or 0) < 3 do end
		return n
	end, { stale = 60 })
	if v == 1 and req.path ~= "/" then gw.shared.incr("test", "old") end`))
	ask(t, b, "/")
	clock = 2 * time.Second
	counts := map[string]int{}
	for _, got := range together(b, 4) {
		counts[got]++
	}
	if counts["1,nil"] != 3 || counts["2,nil"] != 1 {
		t.Errorf("got %v", counts)
	}
}

func TestACacheBelongsToTheFilterAsItIs(t *testing.T) {
	var clock time.Duration
	script := answering("", `gw.cache.get_or("k", 600, `+counting+`)`)
	script["filter"] = strings.Replace(script["filter"], `stage = "transform"`, `stage = "transform", config = { url = "string" }`, 1)
	step := func(before *luatest.Bench, settings, want string, scripts map[string]string) *luatest.Bench {
		t.Helper()
		b := cachedBench(t, &clock, before, settings, scripts)
		if got := ask(t, b, "/"); got != want {
			t.Errorf("%s: got %s, want %s", settings, got, want)
		}
		return b
	}
	one := "[filter.filter]\nurl = \"http://one\"\n"
	b := step(nil, one, "1,nil", script)
	b = step(b, one+"[limiter.other]\nrate = 1\n", "1,nil", script)                // nothing of it has changed
	b = step(b, "[filter.filter]\nurl = \"http://two\"\n", "2,nil", script)        // its settings have
	b = step(b, one, "3,nil", map[string]string{"filter": script["filter"] + " "}) // its script has
	step(b, one, "4,nil", map[string]string{"filter": script["filter"] + " ", "lib/x": "return 1"})
}

func TestFiltersDoNotShareACache(t *testing.T) {
	var clock time.Duration
	script := answering("", `gw.cache.get_or("k", 600, `+counting+`)`)["filter"]
	script = strings.Replace(script, `return gw.respond(200, tostring(v) .. "," .. tostring(err))`, `req.headers["X-" .. conf.name] = v`, 1)
	script = strings.Replace(script, `stage = "transform"`, `stage = "transform", config = { name = "string" }`, 1)
	b := cachedBench(t, &clock, nil, "[filter.filter]\nname = \"A\"\n[filter.second]\nscript = \"filter\"\nname = \"B\"\n[[route]]\nname = \"other\"\npath = \"/x\"\n"+
		"upstream = \"main\"\n[route.filter.filter]\nname = \"C\"\n", map[string]string{"filter": script})
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	for range 2 {
		if a := b.Do(luatest.Request{}); a.Err != nil || seen.Header("X-A") != "1" || seen.Header("X-B") != "2" {
			t.Errorf("%v %v", a.Err, seen.Headers)
		}
		if a := b.Do(luatest.Request{Route: "other"}); a.Err != nil || seen.Header("X-C") != "3" || seen.Header("X-B") != "2" {
			t.Errorf("%v %v", a.Err, seen.Headers)
		}
	}
}

func TestACacheForgetsWhatWasUsedLongestAgo(t *testing.T) {
	var clock time.Duration
	b := cachedBench(t, &clock, nil, "[scripts]\nbudget = \"10s\"\ncache_capacity = \"1MiB\"\n", onRequest(`
		for i = 1, 2000 do
			assert(gw.cache.set("key" .. i, { text = ("x"):rep(1000) }, 60))
		end
		assert(gw.cache.get("key2000").text == ("x"):rep(1000) and gw.cache.get("key1") == nil)
		local ok, err = gw.cache.set("huge", ("x"):rep(2 ^ 17), 60)
		assert(ok == nil and err == "too large")
		assert(gw.cache.get_or("huge", 60, function() return ("x"):rep(2 ^ 17) end) == ("x"):rep(2 ^ 17))`))
	if a := b.Do(luatest.Request{}); a.Err != nil {
		t.Error(a.Err)
	}
}
