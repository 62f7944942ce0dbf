package luaapi_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
)

// timed builds a bench that goes on where another stood. Its filter answers with what gw.shared counts.
func timed(t *testing.T, before *luatest.Bench, settings, declarations string) *luatest.Bench {
	t.Helper()
	b, err := luatest.New(luatest.Options{Before: before, Files: map[string]string{
		"gateway.toml": config + settings,
		"scripts/filter.lua": declarations + `
local M = { stage = "transform", config = { name = "string" } }
function M.init(conf) if declare then declare(conf) end end
function M.on_request(req) return gw.respond(200, gw.shared.get("test", req.path:sub(2)) or "0") end
return M`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// running runs the timers of a bench as long as do takes, in a time of its own.
func running(t *testing.T, first func(t *testing.T) *luatest.Bench, do func(t *testing.T, b *luatest.Bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := first(t)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); b.Timers.Run(ctx) }()
		synctest.Wait()
		do(t, b)
		stop()
		<-ended
	})
}

func counts(t *testing.T, b *luatest.Bench, name, want string) {
	t.Helper()
	synctest.Wait()
	if got := ask(t, b, "/"+name); got != want {
		t.Errorf("%s is %s, want %s", name, got, want)
	}
}

const everySecond = `gw.time.every(1, function() gw.shared.incr("test", "n") end)`

func TestATimerRunsAtOnceAndThenEachInterval(t *testing.T) {
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, "", everySecond) }, func(t *testing.T, b *luatest.Bench) {
		counts(t, b, "n", "1")
		time.Sleep(999 * time.Millisecond)
		counts(t, b, "n", "1")
		time.Sleep(time.Millisecond)
		counts(t, b, "n", "2")
		time.Sleep(10 * time.Second)
		counts(t, b, "n", "12")
	})
}

// Reloads neither double a timer nor stop its rhythm, however many come.
func TestReloadsKeepATimersRhythm(t *testing.T) {
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, "", everySecond) }, func(t *testing.T, b *luatest.Bench) {
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			b = timed(t, b, fmt.Sprintf("[limiter.l%d]\nrate = 1\n", i), everySecond)
		}
		counts(t, b, "n", "11")
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			b = timed(t, b, "", fmt.Sprint("-- ", i, "\n", everySecond)) // another script: it runs at once
			synctest.Wait()
		}
		counts(t, b, "n", "111")
		time.Sleep(9 * time.Second)
		counts(t, b, "n", "120")
	})
}

func TestATimerOfAReplacedGenerationIsNoMore(t *testing.T) {
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, "", everySecond) }, func(t *testing.T, b *luatest.Bench) {
		time.Sleep(1500 * time.Millisecond)
		b = timed(t, b, "", "")
		time.Sleep(time.Minute)
		counts(t, b, "n", "2")
		seen := 0
		b.Timers.Each(func(string, *luaapi.TimerCounts) { seen++ })
		if seen != 0 {
			t.Error("its counts are still shown")
		}
	})
}

func TestInitDeclaresATimerForEachSettings(t *testing.T) {
	declare := `function declare(conf)
		gw.time.every(10, function() gw.shared.incr("test", conf.name) gw.cache.set("name", conf.name, 100) end)
	end`
	settings := "[filter.filter]\nname = \"a\"\n[filter.second]\nscript = \"filter\"\nname = \"b\"\n[filter.third]\nscript = \"filter\"\nname = \"a\"\n"
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, settings, declare) }, func(t *testing.T, b *luatest.Bench) {
		counts(t, b, "a", "1")
		counts(t, b, "b", "1")
		time.Sleep(time.Minute)
		counts(t, b, "a", "7")
		// other settings run at once, those that stay keep their rhythm
		b = timed(t, b, strings.Replace(settings, `"b"`, `"c"`, 1), declare)
		counts(t, b, "a", "7")
		counts(t, b, "b", "7")
		counts(t, b, "c", "1")
	})
}

func TestATimerThatFailsGoesOn(t *testing.T) {
	fails := "gw.time.every(1, function()\n  local n = gw.shared.incr('test', 'n')\n  if n < 10 then error('no list') end\nend)"
	running(t, func(t *testing.T) *luatest.Bench { return timed(t, nil, "", fails) }, func(t *testing.T, b *luatest.Bench) {
		time.Sleep(15 * time.Second)
		counts(t, b, "n", "16")
		log := b.Log()
		if n := strings.Count(log, "timer failed"); n != 1 || !strings.Contains(log, `"error":"filter.lua:3: no list (stage transform, filter filter)"`) {
			t.Errorf("%d lines:\n%s", n, log)
		}
		if !strings.Contains(log, "timer works again") {
			t.Error(log)
		}
		b.Timers.Each(func(filter string, c *luaapi.TimerCounts) {
			if filter != "filter" || c.Failed.Load() != 9 || c.Succeeded.Load() != 7 || c.Skipped.Load() != 0 {
				t.Errorf("%s: %d failed, %d succeeded, %d skipped", filter, c.Failed.Load(), c.Succeeded.Load(), c.Skipped.Load())
			}
		})
	})
}

func TestALineOfATimerSaysWhereItComesFrom(t *testing.T) {
	running(t, func(t *testing.T) *luatest.Bench {
		return timed(t, nil, "", `gw.time.every(60, function() gw.log.info("refreshed") end)`)
	},
		func(t *testing.T, b *luatest.Bench) {
			if log := b.Log(); !strings.Contains(log, `"msg":"refreshed","stage":"transform","script":"filter"`) {
				t.Error(log)
			}
		})
}

// slow is a log whose lines take long.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(2500 * time.Millisecond)
	return s.Buffer.Write(p)
}

func TestATimerNeverOverlapsWithItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := conf.Load("gateway.toml", conf.Options{Files: source.Map(map[string]string{"gateway.toml": config, "scripts/filter.lua": `
			gw.time.every(1, function()
				assert(gw.shared.incr("test", "inside") == 1)
				gw.log.info("slow")
				gw.shared.incr("test", "inside", -1)
			end)
			return { stage = "transform" }`})})
		if err != nil {
			t.Fatal(err)
		}
		timers := luaapi.NewTimers(slog.Default())
		p, err := luaapi.Build(luaapi.Options{Config: cfg, Routes: []*core.Route{{ID: 1, Name: "all"}}, Timers: timers,
			Log: slog.New(slog.NewTextHandler(new(slow), nil))})
		if err != nil {
			t.Fatal(err)
		}
		p.Commit()
		ctx, stop := context.WithTimeout(context.Background(), 29900*time.Millisecond)
		defer stop()
		timers.Run(ctx)
		timers.Each(func(_ string, c *luaapi.TimerCounts) {
			if c.Failed.Load() != 0 || c.Succeeded.Load() != 10 || c.Skipped.Load() != 20 { // one begins each third second
				t.Errorf("%d failed, %d succeeded, %d skipped", c.Failed.Load(), c.Succeeded.Load(), c.Skipped.Load())
			}
		})
	})
}

func TestATimerHasABudget(t *testing.T) {
	b := timed(t, nil, "[scripts]\nbudget = \"10ms\"\n", `gw.time.every(1, function() while true do end end)`)
	if err := b.Pipeline.Tick(); err == nil || !strings.Contains(err.Error(), "filter.lua:1: time budget of 10ms spent") {
		t.Error(err)
	}
}

func TestTimersAreDeclaredAtLoadOnly(t *testing.T) {
	for name, test := range map[string]struct{ script, lib, want string }{
		"too often": {script: `gw.time.every(0.01, function() end)`, want: "an interval is seconds, at least 0.1"},
		"no number": {script: `gw.time.every(0/0, function() end)`, want: "an interval is seconds"},
		"native":    {script: `gw.time.every(1, print)`, want: "a function of the script expected"},
		"too many":  {script: `for i = 1, 33 do gw.time.every(1, function() end) end`, want: "more than 32 timers"},
		"a library": {script: `require("lib")`, lib: `gw.time.every(1, function() end)`, want: "the file of a library declares no timers"},
	} {
		_, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config, "scripts/lib/lib.lua": test.lib,
			"scripts/filter.lua": test.script + "\nreturn { stage = \"transform\" }"}})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), ".lua:1") {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if a, _ := run(t, `gw.time.every(1, function() end)`, luatest.Request{}); a.Err == nil || !strings.Contains(a.Err.Error(), "gw.time.every cannot be called in on_request") {
		t.Error(a.Err)
	}
	b, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config, "scripts/lib/ticks.lua": "return { start = function() " +
		everySecond + " end }", "scripts/filter.lua": "require('ticks').start()\nreturn { stage = 'transform' }"}})
	if err != nil || b.Pipeline.Tick() != nil {
		t.Error(err)
	}
}

func TestLoadingChangesNothingThatIsShared(t *testing.T) {
	for _, call := range []string{`gw.shared.set("s", "k", 1)`, `gw.shared.incr("s", "k")`, `gw.shared.rpush("s", "k", 1)`, `gw.cache.set("k", 1, 1)`} {
		_, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config,
			"scripts/filter.lua": call + "\nreturn { stage = \"transform\" }"}})
		if err == nil || !strings.Contains(err.Error(), "cannot be called in the file itself") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
