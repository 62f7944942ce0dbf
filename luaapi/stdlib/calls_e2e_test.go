//go:build e2e

package stdlib_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// calls are random calls of the library with random arguments, right and wrong, each followed by what became of a table that it was given.
func calls(n int) (out []string) {
	r := rand.New(rand.NewPCG(11, 5))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	numbers := []string{"0", "1", "2", "3", "-1", "-2", "5", "1.5", "-0.5", "10", "100", "2^31", "1e15", "'3'", "' 4 '", "'0x10'", "'x'", "nil", "true"}
	strs := []string{"''", "'a'", "'abc'", "'hello world'", "'aXbX'", "'a\\0b'", "'%d'", "'12'", "7", "nil", "{}"}
	tables := []string{"{}", "{1}", "{1, 2, 3}", "{3, 1, 2}", "{'c', 'a', 'b'}", "{1, 2, 3, x = 1}", "{'x', 10, 2.5}", "{n = 5}", "nil", "'s'"}
	patterns := []string{"'a'", "'.'", "'%a+'", "'(%w)'", "'()'", "'^a'", "'X*'", "'l+'", "'%s'", "'[^b]'", "'$'", "''", "'%b<>'"}
	for range n {
		num, s, t := func() string { return pick(numbers) }, func() string { return pick(strs) }, func() string { return pick(tables) }
		args := func(of ...func() string) string {
			var list []string
			for _, f := range of[:max(0, len(of)-r.IntN(3))] {
				list = append(list, f())
			}
			return strings.Join(list, ", ")
		}
		p := func() string { return pick(patterns) }
		switch r.IntN(26) {
		case 0:
			out = append(out, "return string.sub("+args(s, num, num)+")")
		case 1:
			out = append(out, "return string.byte("+args(s, num, num)+")")
		case 2:
			out = append(out, "return string.char("+args(num, num)+")")
		case 3:
			out = append(out, fmt.Sprintf("return string.rep(%s, %d)", s(), r.IntN(6)-2))
		case 4:
			out = append(out, "return string."+pick([]string{"len", "lower", "upper", "reverse"})+"("+args(s)+")")
		case 5:
			out = append(out, "return string.find("+args(s, p, num, func() string { return pick([]string{"true", "false", "nil"}) })+")")
		case 6:
			out = append(out, "return string.match("+args(s, p, num)+")")
		case 7:
			repl := pick([]string{"'<%0>'", "'x'", "{a = 1, b = true, X = false}", "function(c) return c .. c end", "function() end", "'%1'", "''", "function() return {} end"})
			out = append(out, fmt.Sprintf("return string.gsub(%s, %s, %s%s)", s(), p(), repl, pick([]string{"", ", 1", ", 0", ", -1", ", 2"})))
		case 8:
			out = append(out, fmt.Sprintf("local t = {} for a, b in string.gmatch(%s, %s) do t[#t + 1] = tostring(a) .. tostring(b) end return table.concat(t, ' ')", s(), p()))
		case 9:
			out = append(out, fmt.Sprintf("local t = %s table.insert(t, %s) return t, #t", pick(tables[:7]), strings.Replace(args(num), "1e15", "'v'", 1)))
		case 10:
			out = append(out, fmt.Sprintf("local t = %s table.insert(t, %d, 'n') return t, #t", pick(tables[1:4]), 1+r.IntN(2)))
		case 11:
			out = append(out, fmt.Sprintf("local t = %s local v = table.remove(t%s) return v, t, #t", pick(tables[:7]), pick([]string{"", ", 1", ", 2", ", 9", ", 0"})))
		case 12:
			out = append(out, fmt.Sprintf("local t = %s table.sort(t%s) return t", pick(tables[:6]), pick([]string{"", ", function(a, b) return a > b end", ", nil"})))
		case 13:
			from := func() string { return pick([]string{"1", "2", "0", "-1", "1.5", "'2'", "9", "'x'"}) }
			out = append(out, "return table.concat("+args(t, func() string { return pick([]string{"','", "''", "nil", "1"}) }, from, from)+")")
		case 14:
			out = append(out, "return table.maxn("+args(t)+")")
		case 15:
			out = append(out, fmt.Sprintf("return select(%s, %s, %s)", pick([]string{"1", "2", "3", "-1", "-2", "0", "'#'", "9", "1.9"}), num(), s()))
		case 16:
			out = append(out, fmt.Sprintf("return unpack(%s%s)", t(), pick([]string{"", ", 1", ", 2", ", 1, 2", ", 0, 1", ", 3, 1"})))
		case 17:
			out = append(out, fmt.Sprintf("return tonumber(%s%s)", pick([]string{"'10'", "'ff'", "'zz'", "'7'", "' 11 '", "''", "'1e1'", "'0x1F'", "'1.5'", "'.5'", "'5.'", "'1e'", "12", "nil", "{}"}), pick([]string{"", ", 10", ", 16", ", 2", ", 36", ", 8"})))
		case 18:
			out = append(out, "return math."+pick([]string{"floor", "ceil", "abs", "sqrt"})+"("+args(num)+")")
		case 19:
			out = append(out, "return math."+pick([]string{"max", "min", "fmod", "pow"})+"("+args(num, num)+")")
		case 20:
			out = append(out, "return math."+pick([]string{"modf", "frexp"})+"("+args(num)+")")
		case 21:
			out = append(out, "return type("+args(t)+"), rawequal("+args(s, s)+")")
		case 22:
			out = append(out, fmt.Sprintf("local t = %s return next(t), rawget(t, 1), rawget(t, 'x')", pick(tables[:3])))
		case 23:
			out = append(out, fmt.Sprintf("local t = setmetatable(%s, %s) return getmetatable(t) ~= nil, t.y", pick(tables[:6]), pick([]string{"{__index = {y = 1}}", "{__index = function(_, k) return k .. '!' end}", "nil", "{__metatable = 1}", "1"})))
		case 24:
			out = append(out, fmt.Sprintf("return pcall(error, %s%s)", s(), pick([]string{"", ", 0", ", 2"})))
		default:
			out = append(out, fmt.Sprintf("local co = coroutine.wrap(function(...) local a = coroutine.yield(...) return a, %s end) return co(%s), co(%s)", num(), args(num, s), args(s)))
		}
	}
	return out
}
