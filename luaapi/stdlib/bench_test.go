package stdlib_test

import (
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func BenchmarkCall(b *testing.B) {
	for _, bench := range []struct{ name, body string }{
		{"Empty", ""},
		{"GlobalRead", "local f = string"},
		{"NativeCall", "return type(1)"},
		{"StringLower", "local s = string.lower(...)"},
		{"ConcatTwo", "local s = ... .. 'x'"},
		{"ConcatFive", "local s = ... .. 'x' .. 'y' .. 12 .. 'z'"},
		{"Find", "return string.find(..., 'b+')"},
		{"Match", "return string.match(..., '^(%w+)%s+(%w+)$')"},
		{"Gsub", "return string.gsub(..., '%w+', 'x')"},
		{"Format", "return string.format('%s-%d', ..., 12)"},
		{"PairsOfFive", "local n = 0 for k, v in pairs({a = 1, b = 2, c = 3, d = 4, e = 5}) do n = n + v end"},
		{"IpairsOfFive", "local n = 0 for i, v in ipairs({1, 2, 3, 4, 5}) do n = n + v end"},
		{"PcallOk", "pcall(type, 1)"},
		{"PcallError", "pcall(error, 'x')"},
		{"Coroutine", "local f = coroutine.wrap(function() coroutine.yield(1) end) f()"},
		{"Loop1000", "local n = 0 for i = 1, 1000 do n = n + i end"},
		{"TypicalFilter", "local path = ... if path:sub(1, 5) == '/api/' then return nil end local user, rest = path:match('^(%w+) (.*)$') if not user then return 401 end return user .. ':' .. rest"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			v := vm.New(base(b, vm.Options{}))
			f := function(b, v, bench.body)
			arg := lua.LString("abc def")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Call(f, arg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
