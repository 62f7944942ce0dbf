package stdlib_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// hostile are bodies that mean harm. Under no protection that a script has may one outlive its budget or fill the memory.
var hostile = map[string]string{
	"a string of 10 GB":        `return string.rep("x", 1e10)`,
	"forty doublings":          `local s = "x" for i = 1, 40 do s = s .. s end return s`,
	"unrolled doublings":       `local s = ("x"):rep(100) while true do s = s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s end`,
	"doublings by format":      `local s = "x" for i = 1, 40 do s = ("%s%s"):format(s, s) end return s`,
	"doublings by gsub":        `local s = "x" for i = 1, 40 do s = s:gsub(".", "%0%0") end return s`,
	"a far index":              `local t = {} for i = 1, 1e9 do t[50000000 + i] = 1 end`,
	"full arrays":              `local t = {} while true do t[#t + 1] = { [65535] = 1 } end`,
	"tail calls":               `local function f() return f() end return f()`,
	"a pattern of options":     `return (("a"):rep(30)):find(("a?"):rep(30) .. ("a"):rep(30))`,
	"a quadratic pattern":      `return (("a"):rep(9e5)):find(".-b")`,
	"a cubic pattern":          `return (("a"):rep(9e5)):match(".*.*b")`,
	"endless coroutines":       `local t = {} while true do local co = coroutine.create(function() while true do coroutine.yield() end end) coroutine.resume(co) t[#t + 1] = co end`,
	"coroutines in coroutines": `local function f() return coroutine.wrap(f)() end return f()`,
	"deep recursion":           `local function f(n) return 1 + f(n + 1) end return f(1)`,
	"a deep index":             `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "x"] end return t.x`,
	"sorting for ever":         `local t = {} for i = 1, 60000 do t[i] = -i end while true do table.sort(t, function(a, b) return a < b end) end`,
}

// shields are what a script can put around a body to outlive it.
var shields = map[string]string{
	"nothing":               `%s`,
	"pcall":                 `while true do pcall(function() %s end) end`,
	"xpcall":                `while true do xpcall(function() %s end, function(e) return tostring(e) end) end`,
	"pcall in coroutines":   `while true do coroutine.wrap(function() pcall(function() %s end) end)() end`,
	"a handler that errors": `while true do xpcall(function() %s end, function() error("again") end) end`,
}

func TestNoShieldLetsAScriptOutliveItsBudget(t *testing.T) {
	const budget = 20 * time.Millisecond
	b := base(t, vm.Options{Limits: vm.Limits{Budget: budget}})
	for name, body := range hostile {
		for shield, around := range shields {
			t.Run(name+" in "+shield, func(t *testing.T) {
				v := vm.New(b)
				f := function(t, v, fmt.Sprintf(around, body))
				before, start := allocated(), cpu(t)
				_, err := v.Call(f)
				took, grown := cpu(t)-start, allocated()-before
				if err == nil && shield != "nothing" {
					t.Error("it came to an end")
				}
				if err != nil && failure(t, err).Panic {
					t.Errorf("%+v", err)
				}
				if took > 10*time.Second || grown > 256<<20 {
					t.Errorf("%v and %d MiB", took, grown>>20)
				}
				if got, err := v.Call(function(t, v, `local s = "a" return s .. #{ 1, 2 } .. ("x"):rep(3)`)); err != nil || got != lua.LString("a2xxx") {
					t.Errorf("afterwards: %v, %v", got, err)
				}
			})
		}
	}
}

// TestHostileScriptsKeepNothingAlive holds that what a script piled up is gone when its call has ended.
func TestHostileScriptsKeepNothingAlive(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for range 3 {
		for _, body := range hostile {
			if _, err := v.Call(function(t, v, strings.Replace(body, "1e9", "1e5", 1))); err != nil && failure(t, err).Panic {
				t.Fatal(err)
			}
		}
	}
	if live := liveHeap(); live > 256<<20 {
		t.Errorf("%d MiB live", live>>20)
	}
}

// liveHeap is how many bytes the last collection left alive.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
