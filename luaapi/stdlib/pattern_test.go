package stdlib_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/vm"
	lua "github.com/yuin/gopher-lua"
)

func TestPatternsAndTheirErrors(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, test := range []struct{ body, want string }{
		{`return ("THE (quick) fox"):find("%((%a+)%)")`, "5"},
		{`return (("THE (quick) fox"):gsub("%f[%a]%a+", "w"))`, "w (w) w"},
		{`return (("a\0b"):gsub("%z", "0"))`, "a0b"},
		{`return (("a\0b"):gsub("\0", "0"))`, "a0b"},
		{`return (("\255\254"):gsub("[\128-\255]", "x"))`, "xx"},
		{`return ("key = value"):match("^(%w+)%s*=%s*(%w+)$")`, "key"},
		{`return (("abc"):gsub("%w", "%0%0", 2))`, "aabbc"},
		{`return ("x"):find("x", 1, true)`, "1"},
		{`return ("a.b"):find(".", 2, true)`, "2"},
		{`return ("x"):match("(")`, "unfinished capture"},
		{`return ("x"):match(")")`, "invalid pattern capture"},
		{`return ("x"):match("%")`, "malformed pattern (ends with '%')"},
		{`return ("x"):match("[x")`, "malformed pattern (missing ']')"},
		{`return ("x"):match("[%")`, "malformed pattern (missing ']')"},
		{`return ("x"):match("%f")`, "missing '[' after '%f' in pattern"},
		{`return ("x"):match("%b")`, "unbalanced pattern"},
		{`return ("x"):match("%1")`, "invalid capture index"},
		{`return ("x"):gsub("x", "%9")`, "invalid capture index"},
		{`return ("x"):gsub("x", function() return {} end)`, "invalid replacement value (a table value)"},
		{`return ("x"):gsub("x", nil)`, "string/function/table expected"},
		{`return ("x"):rep()`, "bad argument #2 to 'string.rep' (number expected, got no value)"},
	} {
		got, err := v.Call(function(t, v, test.body))
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = got.String()
		}
		if !strings.Contains(text, test.want) {
			t.Errorf("%s: %s; want %s", test.body, text, test.want)
		}
	}
}

// FuzzPattern wants that no pattern does worse than raise, and that simple ones agree with Go's regular expressions.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"a*b", "%f[%w]%w+", "([^,]*),", "%b()", "(.)%1", "[%a-z]", "^x-$", "[]]", "%"} {
		f.Add("hello, (world) xx", p, "<%1>")
	}
	v := vm.New(base(f, vm.Options{}))
	call := function(f, v, `local s, p, r = ...
		local from, to = s:find(p)
		for a in s:gmatch(p) do local _ = a end
		local ok, out = pcall(string.gsub, s, p, r)
		return tostring(from) .. "," .. tostring(to)`)
	simple := regexp.MustCompile(`^[a-z., ]*$`)
	f.Fuzz(func(t *testing.T, s, p, r string) {
		got, err := v.Call(call, lua.LString(s), lua.LString(p), lua.LString(r))
		if err != nil {
			if e := failure(t, err); e.Panic {
				t.Fatalf("%q %q: %s\n%s", s, p, e.Message, e.Stack)
			}
			return
		}
		if simple.MatchString(p) && !strings.Contains(p, "..") {
			want := "nil,nil"
			if at := regexp.MustCompile("(?s)" + strings.ReplaceAll(p, ".", `[\x00-\x{10FFFF}]`)).FindStringIndex(s); at != nil && isASCII(s) {
				want = vm.TextOf(lua.LNumber(at[0]+1)) + "," + vm.TextOf(lua.LNumber(at[1]))
			}
			if isASCII(s) && got.String() != want {
				t.Errorf("%q find %q: %v, want %s", s, p, got, want)
			}
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"%d", "%5.2f|%-8s", "%q", "%c%x%o", "%%", "%123d", "%.f", "%#.3g", "%", "% +0-#5d"} {
		f.Add(s, "text", 3.75)
	}
	v := vm.New(base(f, vm.Options{}))
	call := function(f, v, `local f, s, n = ... return string.format(f, n, n, s), string.format(f, s, s)`)
	f.Fuzz(func(t *testing.T, format, s string, n float64) {
		_, err := v.Call(call, lua.LString(format), lua.LString(s), lua.LNumber(n))
		if err == nil {
			return
		}
		if e := failure(t, err); e.Panic {
			t.Fatalf("%q: %s\n%s", format, e.Message, e.Stack)
		}
	})
}

// TestFormatAsUsersExpect is what users reported of gopher-lua's string.format (Anaminus/rbxmk#43).
func TestFormatAsUsersExpect(t *testing.T) {
	v := vm.New(base(t, vm.Options{}))
	for _, test := range []struct{ args, want string }{
		{`'%.2f', '3.14159'`, "3.14"}, {`'%u', 5`, "5"}, {`'%x', '255'`, "ff"}, {`'%d', 3.7`, "3"},
		{`'%q', 'a\0b"\n'`, "\"a\\000b\\\"\\\n\""}, {`'%5s|%-5s|', 'a', 'b'`, "    a|b    |"},
		{`'%d', 'abc'`, "bad argument #2 to 'string.format' (number expected, got string)"},
		{`'%d'`, "bad argument #2 to 'string.format' (no value)"},
		{`'%y', 1`, "invalid option '%y' to 'format'"},
	} {
		got, err := v.Call(function(t, v, "return string.format("+test.args+")"))
		text := ""
		if err != nil {
			text = failure(t, err).Message
		} else {
			text = got.String()
		}
		if text != test.want {
			t.Errorf("%s: %q; want %q", test.args, text, test.want)
		}
	}
}
