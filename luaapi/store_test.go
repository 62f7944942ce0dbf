package luaapi_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/luaapi/store"
)

func TestSharedValuesAreSeenByAllVMsAndSurviveAReload(t *testing.T) {
	scripts := map[string]string{
		"gateway.toml":       config,
		"scripts/writer.lua": `return { stage = "auth", on_request = function(req) gw.shared.set("s", "k", req.path) gw.shared.incr("s", "n") end }`,
		"scripts/reader.lua": `return { stage = "transform", on_request = function(req) req.headers["X-Seen"] = gw.shared.get("s", "k") .. gw.shared.get("s", "n") end }`,
	}
	b, err := luatest.New(luatest.Options{Files: scripts})
	if err != nil {
		t.Fatal(err)
	}
	var seen luatest.Forwarded
	upstream := func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	for n, want := range []string{"/a1", "/b2"} {
		b.Upstream = upstream
		if a := b.Do(luatest.Request{Target: want[:2]}); a.Err != nil || seen.Header("X-Seen") != want {
			t.Errorf("request %d: %v, saw %q", n, a.Err, seen.Header("X-Seen"))
		}
		if b, err = luatest.New(luatest.Options{Files: scripts, Before: b}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSharedCountersAreExact(t *testing.T) {
	b := bench(t, patient, onRequest(`for i = 1, 10 do gw.shared.incr("s", "n") end
		if gw.shared.add("s", "first", true) then gw.shared.incr("s", "firsts") end`))
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			x := new(core.Exchange)
			x.Route = b.Route("all")
			for range 50 {
				if _, err := b.Pipeline.Stages(x.Route)[0].Request(x); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	after, err := luatest.New(luatest.Options{Before: b, Files: map[string]string{"gateway.toml": config, "scripts/f.lua": filter("on_request", "req",
		`assert(gw.shared.get("s", "n") == 10000 and gw.shared.get("s", "firsts") == 1)`)}})
	if err != nil {
		t.Fatal(err)
	}
	if a := after.Do(luatest.Request{}); a.Err != nil {
		t.Error(a.Err)
	}
}

func TestSharedKeepsItsTypesAndRules(t *testing.T) {
	holds(t, `
		local s = gw.shared
		s.set("t", "s", "text") s.set("t", "n", 1.5) s.set("t", "b", false)
		assert(s.get("t", "s") == "text" and s.get("t", "n") == 1.5 and s.get("t", "b") == false)
		assert(s.get("other", "s") == nil)
		assert(s.add("t", "s", "x") == false and s.get("t", "s") == "text")
		local sum, err = s.incr("t", "s")
		assert(sum == nil and err == "not a number")
		assert(s.incr("t", "c", 5) == 5 and s.incr("t", "c", -2) == 3)
		assert(s.set("t", "s", nil) and s.get("t", "s") == nil and s.delete("t", "n") and not s.delete("t", "n"))
		assert(not pcall(s.set, "t", "k", "v", -1) and not pcall(s.set, "t", "k", "v", 0))
		for i = 1, 62 do s.set("store" .. i, "k", 1) end
		assert(not pcall(s.set, "one too many", "k", 1))
	`, luatest.Request{})
}

func TestAFullStoreForgetsWhatWasUsedLongestAgo(t *testing.T) {
	b := bench(t, "[scripts]\nbudget = \"10s\"\n", onRequest(`
		local value = ("x"):rep(2 ^ 16)
		for i = 1, 1000 do
			gw.shared.set("big", "key" .. i, value)
			assert(gw.shared.get("big", "key1") == value, i) -- always in use
		end
		assert(gw.shared.get("big", "key1000") == value and gw.shared.get("big", "key2") == nil)
	`))
	if a := b.Do(luatest.Request{}); a.Err != nil {
		t.Fatal(a.Err)
	}
	b.Shared.Each(func(name string, st store.Stats) {
		if name != "big" || st.Entries > 512 || st.Evicted < 400 || st.Bytes > st.Capacity {
			t.Errorf("%s: %+v", name, st)
		}
	})
}

func TestSharedValuesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench(t, "", onRequest(`
			if req.path == "/set" then
				gw.shared.set("s", "k", "v", 10)
				assert(gw.shared.incr("s", "n", 1, 10) == 1)
			elseif req.path == "/there" then
				assert(gw.shared.get("s", "k") == "v" and gw.shared.incr("s", "n", 1, 10) == 2)
			else
				assert(gw.shared.get("s", "k") == nil and gw.shared.add("s", "k", 1) and gw.shared.incr("s", "n") == 1)
			end`))
		for _, step := range []struct {
			path string
			wait time.Duration
		}{{"/set", 9 * time.Second}, {"/there", time.Second}, {"/gone", 0}} {
			if a := b.Do(luatest.Request{Target: step.path}); a.Err != nil {
				t.Error(step.path, a.Err)
			}
			time.Sleep(step.wait)
		}
	})
}
