//go:build e2e

package stdlib_test

import (
	"fmt"
	"strings"
)

// corpus is a list of Lua snippets: hand-written ones and products of values with functions.
func corpus() []string {
	all := append([]string{}, handwritten...)
	all = append(all, formats()...)
	all = append(all, patterns()...)
	all = append(all, numbers()...)
	all = append(all, slices()...)
	all = append(all, dates()...)
	all = append(all, calls(4000)...)
	return append(all, programs(4000)...)
}

func formats() (out []string) {
	values := []string{"0", "1", "-1", "3.7", "-3.7", "255", "1e15", "123456789", "0.1", "1e-5", "1e100", "2^53", "'255'", "'abc'", "' 12 '", "1/0", "-1/0"}
	for _, flags := range []string{"", "-", "+", " ", "#", "0", "+0", "-0", "# 0"} {
		for _, width := range []string{"", "5", "12", ".0", ".3", "10.2", "08.3", ".14"} {
			for _, verb := range "dixXoeEfgG" {
				for _, v := range values {
					if strings.ContainsRune("dixXo", verb) && (strings.Contains(v, "/0") || v == "1e100") {
						continue // undefined in C
					}
					out = append(out, fmt.Sprintf("return string.format('%%%s%s%c|', %s)", flags, width, verb, v))
				}
			}
		}
	}
	for _, f := range []string{"%s", "%5s", "%-5s|", "%.2s", "%10.3s|", "%q", "%c", "%5c", "%u", "%%", "%", "%y", "%123d", "%.123d", "%-+ #0d", "%-+ #00d", "a%db"} {
		for _, v := range []string{"'hello'", "'a\\0b\\n\\r\"\\\\'", "65", "nil", "{}", "true", "1.5"} {
			if strings.Contains(v, "\\0") && strings.Contains(f, "s") {
				continue // PUC Lua cuts at NUL, which the manual does not say
			}
			out = append(out, fmt.Sprintf("return string.format('%s', %s)", f, v), fmt.Sprintf("return string.format('%s')", f))
		}
	}
	return out
}

func patterns() (out []string) {
	subjects := []string{"", "a", "abc", "hello world", "THE (quick) fox", "a,b,,c", "key = value", "  trim  ", "x=1, y=2", "f(a(b)c)d", "aaab", "\x00a\x00", "2026-11-29", "[tag]", "a.b.c", "\xff\xfe", "%d", "^a$"}
	list := []string{"", ".", "a", "a*", "a-", "a+", "a?", ".*", ".-", "^a", "a$", "^a*$", "%a+", "%d+", "%s*", "%w+", "(%w+)", "(%w+)%s*=%s*(%w+)", "()", "()a()", "%f[%w]%w+", "%f[%A]", "[abc]+", "[^,]*", "[^%s]+", "%b()", "%((.-)%)", "^%s*(.-)%s*$", "(a*(.)%w(%s*))", "(.)%1", "[a-c]", "[]]", "[^]]", "[%]]", "[a-]", "[-a]", "%%", "%.", "%z", "[%z]", "(", ")", "%", "[", "[^", "[a", "%f", "%b", "%bx", "%1", "(%1)", "((a)(b))", "a-b", ".-b", "$", "^", "^$", "a^", "a$b", "(%d+)-(%d+)-(%d+)", "%u%l*", "%x+", "%p", "%c", "[%w_]+", "[%a%d]", "\xff", "[\x80-\xff]", "%S+", "%D", "l+", "x*", "[+-]?%d", "%-"}
	for _, p := range list {
		for _, s := range subjects {
			ps, ss := luaQuote(p), luaQuote(s)
			if strings.Contains(p, "\x00") {
				continue
			}
			out = append(out,
				fmt.Sprintf("return string.find(%s, %s)", ss, ps),
				fmt.Sprintf("return string.match(%s, %s, 2)", ss, ps),
				fmt.Sprintf("return string.gsub(%s, %s, '<%%0>')", ss, ps),
				fmt.Sprintf("return string.gsub(%s, %s, '%%1-', 2)", ss, ps),
				fmt.Sprintf("return string.gsub(%s, %s, function(...) return select('#', ...) end)", ss, ps),
				fmt.Sprintf("return string.gsub(%s, %s, {a = 1, b = false, hello = 'H'})", ss, ps),
				fmt.Sprintf("local t = {} for a, b in string.gmatch(%s, %s) do t[#t + 1] = tostring(a) t[#t + 1] = tostring(b) end return t", ss, ps))
		}
	}
	return out
}

func numbers() (out []string) {
	texts := []string{"", " ", "0", "10", " 10 ", "010", "0x10", "0XfF", "-0x10", "1e2", "2E2", "1e", "e1", "1.5", ".5", "5.", ".", "-1", "+1", "--1", "1 2", "0x", "abc", "1e999", "-1e999", "1_000", "9007199254740993", "0.1", "\\t7\\n", "1a", "0b1", "1e+5", "1e-5", "1e+"}
	for _, s := range texts {
		out = append(out, fmt.Sprintf("return tonumber('%s')", s), fmt.Sprintf("return '%s' + 0", s), fmt.Sprintf("return -'%s'", s),
			fmt.Sprintf("return '%s' * '2', 10 - '%s'", s, s))
		if !strings.Contains(s, "-") && !strings.Contains(s, "+") {
			for _, base := range []int{2, 8, 10, 16, 36} {
				if base == 36 && len(s) > 12 {
					continue // beyond 64 bits PUC Lua gives the largest integer
				}
				out = append(out, fmt.Sprintf("return tonumber('%s', %d)", s, base))
			}
		}
	}
	for _, n := range []string{"0", "-0", "1", "1.5", "0.1 + 0.2", "1/3", "100/2", "1e13", "-1e13", "123456.789", "1e-5", "0.0001", "1e21", "1e100", "1.5e300", "-1e25", "2^31", "1e-300", "12345678.9", "1/0", "-1/0"} {
		out = append(out, fmt.Sprintf("return tostring(%s)", n), fmt.Sprintf("return %s .. ''", n))
		for _, f := range []string{"abs", "ceil", "floor", "sqrt", "exp", "log", "sin", "cos", "modf", "frexp", "deg", "rad", "tanh"} {
			out = append(out, fmt.Sprintf("return string.format('%%.12g %%.12g', math.%s(%s), (select(2, math.%s(%s))) or 0)", f, n, f, n))
		}
		for _, m := range []string{"3", "-3", "0.5", "7"} {
			if strings.HasSuffix(n, "e25") || strings.HasSuffix(n, "e300") || n == "1e21" || n == "1e100" {
				continue // the machine's own % is exact, PUC Lua's is not
			}
			out = append(out, fmt.Sprintf("return (%s) %% %s", n, m), fmt.Sprintf("return math.fmod(%s, %s)", n, m),
				fmt.Sprintf("return math.max(%s, %s), math.min(%s, %s)", n, m, n, m))
		}
	}
	return out
}

func slices() (out []string) {
	positions := []string{"0", "1", "2", "3", "5", "6", "100", "-1", "-2", "-5", "-6", "-100", "1.9", "'2'", "nil"}
	for _, i := range positions {
		for _, j := range positions {
			out = append(out, fmt.Sprintf("return ('hello'):sub(%s, %s)", i, j), fmt.Sprintf("return ('hello'):byte(%s, %s)", i, j),
				fmt.Sprintf("return ('hello'):find('l', %s, %s)", i, j), fmt.Sprintf("return unpack({1, 2, 3}, %s, %s)", i, j),
				fmt.Sprintf("return table.concat({1, 2, 'c'}, '-', %s, %s)", i, j), fmt.Sprintf("return select(%s, 1, 2, %s)", i, j))
		}
	}
	return out
}

func dates() (out []string) {
	for _, at := range []string{"0", "1e9", "1796000000", "951782400", "978307199", "-86400", "1234567890.7"} {
		for _, c := range "aAbBcdDeFgGhHIjmMnprRStTuUVwWxXyYZ%C" {
			out = append(out, fmt.Sprintf("return os.date('!%%%c', %s)", c, at))
		}
		out = append(out, fmt.Sprintf("local t = os.date('!*t', %s) return t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday, t.isdst", at))
	}
	return append(out, "return os.time{year=2026, month=11, day=29, hour=12}", "return os.time{year=2026, month=14, day=-3, hour=0}",
		"return os.time{year=2026, month=1}", "return os.time{year='2026', month='2', day='3'}", "return os.difftime(10, 3)")
}
