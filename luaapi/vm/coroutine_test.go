package vm_test

import (
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func TestACoroutineEndsWithTheCallThatMadeIt(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	f := function(t, v, `local co, get return function()
		if co then
			local ok, err = coroutine.resume(co)
			return err .. " " .. coroutine.status(co) .. " " .. get()
		end
		co = coroutine.create(function() local secret = 5 get = function() return secret end coroutine.yield() secret = 6 end)
		coroutine.resume(co)
		return get()
	end`)
	if got, err := v.Call(f); err != nil || got != lua.LNumber(5) {
		t.Fatal(got, err)
	}
	if got, err := v.Call(f); err != nil || got != lua.LString("cannot resume dead coroutine dead 5") {
		t.Fatal(got, err)
	}
}

func TestYieldAndResumePassAnyNumberOfValues(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, test := range []struct {
		body string
		want lua.LValue
	}{
		{`local co = coroutine.wrap(function() local a, b, c = coroutine.yield() return c == nil and b == nil and a end) co() return co(1)`, lua.LNumber(1)},
		{`local co = coroutine.wrap(function() local a, b = coroutine.yield() return b end) co() return co(1, 2, 3, 4)`, lua.LNumber(2)},
		{`local co = coroutine.wrap(function() coroutine.yield() local x = 7 return x end) co() return co(1, 2, 3, 4)`, lua.LNumber(7)},
		{`local co = coroutine.wrap(function() local x = 7 coroutine.yield(1, 2, 3) return x end) co() return co()`, lua.LNumber(7)},
		{`local co = coroutine.wrap(function() local t = {coroutine.yield()} return #t end) co() return co(1, 2, 3)`, lua.LNumber(3)},
		{`local co = coroutine.wrap(function() return (coroutine.yield()) end) co() return co(9, 8)`, lua.LNumber(9)},
		{`local co = coroutine.wrap(function() if coroutine.yield() then return "y" else return "n" end end) co() return co()`, lua.LString("n")},
		{`local co = coroutine.wrap(function() local s = "" for i = 1, 3 do s = s .. tostr(coroutine.yield()) end return s end) co() co(1) co() return co(3)`, lua.LString("1nil3")},
	} {
		got, err := v.Call(function(t, v, "local function tostr(v) return v == nil and 'nil' or v .. '' end return function() "+test.body+" end"))
		if err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", test.body, got, err, test.want)
		}
	}
}
