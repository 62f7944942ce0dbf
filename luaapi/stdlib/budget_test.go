package stdlib_test

import (
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

// runaways are functions that would run for ever, or take all memory. Each ends in an error that holds want.
var runaways = []struct{ name, body, want string }{
	{"loop", `while true do end`, "time budget"},
	{"empty for", `for i = 1, 1e18 do end`, "time budget"},
	{"goto-like repeat", `repeat until false`, "time budget"},
	{"pcall loop", `while true do pcall(error) end`, "time budget"},
	{"pcall around a loop", `while true do pcall(function() while true do end end) end`, "time budget"},
	{"nested pcall", `local function f() pcall(f) f() end f()`, ""},
	{"error in handler", `while true do xpcall(error, error) end`, "time budget"},
	{"tail calls", `local function f() return f() end return f()`, "time budget"},
	{"mutual tail calls", `local g local function f() return g() end g = function() return f() end return f()`, "time budget"},
	{"recursion", `local function f() return 1 + f() end return f()`, "stack overflow"},
	{"recursion through pcall", `local function f() local ok, e = pcall(f) error(e, 0) end f()`, "stack overflow"},
	{"recursion through metamethods", `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "x"] end return t.x`, ""},
	{"recursion through tostring", `local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)`, "stack overflow"},
	{"recursion through gsub", `local function f() return ("a"):gsub("a", f) end return f()`, "stack overflow"},
	{"recursion through sort", `local function f() table.sort({1, 2, 3}, f) return true end return f()`, "stack overflow"},
	{"deep varargs", `local function f(...) return f(1, ...) end return f()`, ""},
	{"wide recursion", `local function f(n, ...) return 1 + f(unpack({...}, 1, 200)) end return f(1)`, "overflow"},
	{"closures", `local t = {} while true do t = function() return t end end`, "time budget"},
	{"coroutine loop", `coroutine.wrap(function() while true do end end)()`, "time budget"},
	{"coroutine yields", `local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end`, "time budget"},
	{"coroutine in coroutine", `local function f() return coroutine.wrap(f)() end return f()`, ""},
	{"nested resumes", `local function f() local co = coroutine.create(f) local ok, e = coroutine.resume(co) if not ok then error(e, 0) end end f()`, ""},
	{"many coroutines", `local t = {} while true do t[#t + 1] = coroutine.create(function() end) end`, "unfinished coroutines"},
	{"finished coroutines", `while true do coroutine.wrap(function() end)() end`, "time budget"},
	{"pcall in coroutine", `coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()`, "time budget"},
	{"doubling", `local s = "x" while true do s = s .. s end`, "longer than the limit"},
	{"doubling by many", `local s = ("x"):rep(1000) while true do s = s .. s .. s .. s .. s .. s .. s .. s end`, "longer than the limit"},
	{"rep", `return ("x"):rep(1e9)`, "longer than the limit"},
	{"rep of much", `return ("x"):rep(1e6):rep(1e15)`, "longer than the limit"},
	{"rep of nothing", `return (""):rep(1e18)`, "nothing"},
	{"concat of strings", `local t = {} for i = 1, 1000 do t[i] = ("x"):rep(10000) end return table.concat(t)`, "longer than the limit"},
	{"concat with separator", `local t = {} for i = 1, 100 do t[i] = "" end return table.concat(t, ("x"):rep(1e5))`, "longer than the limit"},
	{"concat of a far range", `return table.concat({}, "", 1, 1e15)`, "invalid value"},
	{"gsub grows", `return (("a"):rep(1e5):gsub("a", ("x"):rep(1e5)))`, "longer than the limit"},
	{"gsub by captures", `return (("a"):rep(1e6):gsub("(a+)", "%1%1%1%1"))`, "longer than the limit"},
	{"format grows", `return ("%s%s"):format(("x"):rep(1e6), ("x"):rep(1e6))`, "longer than the limit"},
	{"quote grows", `return ("%q"):format(("\0"):rep(1e6))`, "longer than the limit"},
	{"many strings", `local t = {} for i = 1, 1e6 do t[i] = ("x"):rep(1e6) end`, ""},
	{"upper of much", `local s = ("x"):rep(1e6) while true do s:upper() end`, ""},
	{"date grows", `return os.date(("%c"):rep(4e5))`, "longer than the limit"},
	{"optional items", `return (("a"):rep(30)):find(("a?"):rep(30) .. ("a"):rep(30))`, "time budget"},
	{"quadratic search", `return (("a"):rep(9e5)):find(".-b")`, "time budget"},
	{"quadratic stars", `return (("a"):rep(9e5)):find("a*b")`, "time budget"},
	{"cubic stars", `return (("a"):rep(9e5)):match("a*a*b")`, "time budget"},
	{"quadratic gsub", `return (("a"):rep(2e5)):gsub("a*b", "")`, "time budget"},
	{"gmatch", `for _ in (("a"):rep(9e5)):gmatch(".-b") do end`, "time budget"},
	{"balance", `return (("("):rep(9e5)):find("%b()")`, "time budget"},
	{"back reference", `return (("a"):rep(9e5)):find("(a*)%1b")`, "time budget"},
	{"deep pattern", `return (("a"):rep(1000)):find(("(a"):rep(500))`, "too"},
	{"deep pattern of options", `return (("a"):rep(1000)):find(("a?"):rep(500))`, "too complex"},
	{"large sets", `return (("a"):rep(9e5)):find("[" .. ("b"):rep(1e5) .. "]")`, "time budget"},
	{"far index", `local t = {} t[5e7] = 1 t[2^53] = 1 t[1e300] = 1 return #t`, "nothing"},
	{"full arrays", `local t = {} while true do t[#t + 1] = {[65535] = 1} end`, "time budget"},
	{"growing table", `local t = {} local i = 0 while true do i = i + 1 t[i] = i end`, "time budget"},
	{"growing keys", `local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i end`, ""},
	{"insert at front", `local t = {} while true do table.insert(t, 1, 0) end`, ""},
	{"unpack", `return unpack({}, 1, 1e8)`, "too many results"},
	{"unpack to the end", `return unpack({}, 1, 1e300)`, "too many results"},
	{"byte", `return (("x"):rep(1e5)):byte(1, -1)`, "too long"},
	{"select", `local function f(...) return select(2, f(..., ...)) end return f(1, 2)`, ""},
	{"sort", `local t = {} for i = 1, 60000 do t[i] = -i end while true do table.sort(t, function(a, b) return a < b end) end`, "time budget"},
	{"sort without order", `local t = {} for i = 1, 20000 do t[i] = i end while true do table.sort(t, function() return true end) end`, "time budget"},
	{"metamethod loop", `local t = setmetatable({}, {__index = function() while true do end end}) return t.x`, "time budget"},
	{"index chain", `local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a}) return a.x`, "recursion"},
	{"iterator", `for _ in function() return 1 end do end`, "time budget"},
	{"next for ever", `local t = {a = 1} while next(t) do end`, "time budget"},
	{"tostring for ever", `while true do tostring({}) end`, "time budget"},
}

func TestRunawayScriptsEnd(t *testing.T) {
	b := base(t, vm.Options{})
	for _, r := range runaways {
		t.Run(r.name, func(t *testing.T) {
			v := vm.New(b)
			f := function(t, v, r.body)
			before := allocated()
			start := cpu(t)
			_, err := v.Call(f)
			took := cpu(t) - start
			grown := allocated() - before
			switch {
			case err == nil && r.want != "nothing" && r.want != "":
				t.Errorf("passed, want %q", r.want)
			case err != nil && !strings.Contains(err.Error(), r.want) && !failure(t, err).Timeout: // a slow machine is there first
				t.Errorf("%v, want %q", err, r.want)
			}
			if err != nil {
				if e := failure(t, err); e.Panic || e.Script != "s.lua" {
					t.Errorf("%+v", e)
				}
			}
			if took > 10*time.Second { // 50 ms, and the race detector on a slow machine
				t.Errorf("took %v", took)
			}
			if grown > 256<<20 {
				t.Errorf("allocated %d MiB", grown>>20)
			}
			if testing.Verbose() {
				t.Logf("%v, %d KiB: %v", took.Round(time.Millisecond), grown>>10, err)
			}
			if got, err := v.Call(function(t, v, `return ("x"):rep(3) .. #{1, 2}`)); err != nil || got != lua.LString("xxx2") {
				t.Errorf("afterwards: %v, %v", got, err)
			}
			if v.L().GetTop() != 0 {
				t.Errorf("the stack holds %d values", v.L().GetTop())
			}
		})
	}
}

// cpu is the time that the process has had a processor: how long it waited for one among others tells nothing.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// allocated is how many bytes have been allocated since the start of the process.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestABusyMachineFailsNoScript counts time in slices: a goroutine that now and then waits for a processor is not charged for it.
// In the bubble only stall takes time.
func TestABusyMachineFailsNoScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := vm.New(base(t, vm.Options{Funcs: []vm.Func{{Name: "stall", Do: func(vm.Args) int { time.Sleep(10 * time.Millisecond); return 0 }}}}))
		start := time.Now()
		if _, err := v.Call(function(t, v, `for i = 1, 50 do stall() for j = 1, 5000 do end end`)); err != nil {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		_, err := v.Call(function(t, v, `while true do stall() end`))
		if took := time.Since(start); !failure(t, err).Timeout || took > time.Second {
			t.Errorf("work in heavy steps: %v after %v", err, took)
		}
	})
}
