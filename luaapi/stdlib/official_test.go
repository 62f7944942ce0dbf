package stdlib_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// official are the files of Lua 5.1's own test suite, which gopher-lua brings along, with what is taken out of each before it runs: the
// lines from the first that begins so up to and without the next that begins otherwise ("": that line alone), and why.
var official = map[string][]cut{
	"calls": {
		{from: "-- test for generic load", to: "-- test for dump/undump", why: "no load, no debug"},
	},
	"closure": {
		{from: "-- tests for global environment", to: "-- tests for multiple yield/resume", why: "no setfenv"},
		{from: "  assert(debug.getinfo(1)", to: "  coroutine.yield(3)", why: "no debug"},
		{from: "-- coroutine environments", to: "print'OK'", why: "no setfenv"},
	},
	"constructs": {
		{from: "  assert(debug.getinfo", to: "  return a,2,3", why: "no debug"},
		{from: "  i = i+1", why: "one of 20 is enough", put: "  i = i+20"},
		{from: "until i==c", why: "one of 20 is enough", put: "until i >= c"},
	},
	"events": {
		{from: "X = 20; B = 30", to: "assert(getmetatable{} == nil)", why: "no setfenv"},
		{from: "assert(_G.X == 20)", to: "print 'OK'", why: "no setfenv, no debug.setmetatable"},
	},
	"literals": {
		{from: "-- testing line ends", to: "-- testing comments", why: "no debug"},
	},
	"math": {
		{from: "assert(tonumber('\\n  -10", why: "the manual: only unsigned integers are accepted"},
		{from: "assert(tonumber('-fFfa'", why: "likewise"},
		{from: "assert(tonumber('-fffffFFFFF'", why: "likewise"},
	},
	"locals": {
		{from: "-- testing globals", to: "-- testing limits for special instructions", why: "no setfenv"},
	},
	"nextvar": {
		{from: "a = 0; for i=\"10\"", why: "for wants numbers"},
		{from: "  for i=1,10000 do _G[i] = i end", why: "walking many globals is slow, for they are guarded"},
		{from: "-- remove those 10000", to: "local function checknext", why: "no setfenv, and globals cannot be taken away"},
	},
	"pm": {
		{from: "  local function setglobal", to: "end", why: "globals are not set by rawset"},
		{from: "assert(string.gfind", why: "a name of Lua 5.0"},
	},
	"vararg": {
		{from: "function f(a, ...)", to: "function c12", why: "arg is Lua 5.0"},
		{from: "assert(f() == 0)", to: "assert(c12(1,2)==55)", why: "arg is Lua 5.0"},
		{from: "function t:f (...)", to: "print('+')", why: "arg is Lua 5.0"},
	},
}

type cut struct {
	from, to, why string
	put           string // in the place of the first line
}

// TestTheOfficialSuite runs the parts of Lua 5.1's own test suite that test what scripts have.
func TestTheOfficialSuite(t *testing.T) {
	dir := suiteDir(t)
	for _, name := range []string{"calls", "closure", "constructs", "events", "locals", "literals", "math", "nextvar", "pm", "sort", "strings", "vararg"} {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, name+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			text := string(source)
			for _, c := range official[name] {
				text = c.apply(t, text)
			}
			o := vm.Options{Funcs: suiteFuncs(), Values: map[string]lua.LValue{"_soft": lua.LTrue}, Limits: vm.Limits{LoadBudget: time.Minute, Budget: time.Minute, String: 64 << 20, Calls: 250, Registers: 1 << 18}}
			v := vm.New(base(t, o))
			if _, err := v.Load(mustCompile(t, name+".lua", text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// suiteDir is where gopher-lua's module keeps the suite.
func suiteDir(t *testing.T) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/gopher-lua").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "_lua5.1-tests")
}

// apply takes the lines out and leaves their number as it was.
func (c cut) apply(t *testing.T, text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if !strings.HasPrefix(lines[i], c.from) {
			continue
		}
		for first := i; i < len(lines); i++ {
			if c.to != "" && strings.HasPrefix(lines[i], c.to) {
				return strings.Join(lines, "\n")
			}
			if lines[i] = ""; i == first {
				lines[i] = c.put
			}
			if c.to == "" {
				return strings.Join(lines, "\n")
			}
		}
	}
	t.Fatalf("no lines from %q to %q", c.from, c.to)
	return ""
}

// suiteFuncs are functions that the suite needs of its surroundings and scripts do not have.
func suiteFuncs() []vm.Func {
	return []vm.Func{
		{Name: "loadstring", Do: func(a vm.Args) int {
			fn, err := a.L.Load(strings.NewReader(a.String(1)), "=loaded")
			if err != nil {
				a.L.Push(lua.LNil)
				a.L.Push(lua.LString(err.Error()))
				return 2
			}
			fn.Env = callerEnv(a.L)
			a.L.Push(fn)
			return 1
		}},
		{Name: "table.getn", Do: func(a vm.Args) int { return a.Return(lua.LNumber(a.L.ObjLen(a.Get(1)))) }},
		{Name: "table.foreach", Do: forEach(func(t *lua.LTable, n int, last lua.LValue) (lua.LValue, lua.LValue) { return t.Next(last) })},
		{Name: "table.foreachi", Do: forEach(func(t *lua.LTable, n int, _ lua.LValue) (lua.LValue, lua.LValue) {
			if size := t.RawGetString("n"); n > t.MaxN() && (size == lua.LNil || lua.LNumber(n) > size.(lua.LNumber)) {
				return lua.LNil, lua.LNil
			}
			return lua.LNumber(n), t.RawGetInt(n)
		})},
		{Name: "math.mod", Do: func(a vm.Args) int { return a.Return(lua.LNumber(math.Mod(a.Number(1), a.Number(2)))) }},
		{Name: "os.setlocale", Do: func(a vm.Args) int { return a.Return(lua.LNil) }},
		{Name: "collectgarbage", Do: func(a vm.Args) int { return a.Return(lua.LNumber(0)) }},
	}
}

func callerEnv(L *lua.LState) *lua.LTable {
	frame, ok := L.GetStack(1)
	if !ok {
		return L.Env
	}
	fn, err := L.GetInfo("f", frame, lua.LNil)
	if f, is := fn.(*lua.LFunction); err == nil && is {
		return f.Env
	}
	return L.Env
}

// forEach is a function of Lua 5.0 that the suite still uses.
func forEach(next func(t *lua.LTable, n int, last lua.LValue) (lua.LValue, lua.LValue)) func(vm.Args) int {
	return func(a vm.Args) int {
		t, last := a.Table(1), lua.LValue(lua.LNil)
		for n := 1; ; n++ {
			k, v := next(t, n, last)
			if k == lua.LNil {
				return 0
			}
			last = k
			a.Call(1, a.Function(2), k, v)
			if r := a.L.Get(-1); r != lua.LNil {
				return 1
			}
			a.L.Pop(1)
		}
	}
}
