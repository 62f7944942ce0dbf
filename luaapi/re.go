package luaapi

import (
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.re: regular expressions of RE2, whose time grows with the text and nothing else.

var patternParam = p("pattern", "string", "RE2 syntax; a wrong one raises")

var reFuncs = []vm.Func{
	{Name: "gw.re.match",
		Doc:     "Tells whether a text has a part that fits a regular expression, and gives its groups.",
		Params:  list(p("text", "string", ""), patternParam),
		Returns: list(p("groups", "table?", groupsDoc+"; nil when nothing fits")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			a.L.Push(groupsValue(re, text, re.FindStringSubmatchIndex(text)))
			return 1
		}},
	{Name: "gw.re.test",
		Doc:     "Tells whether a text has a part that fits a regular expression.",
		Params:  list(p("text", "string", ""), patternParam),
		Returns: list(p("fits", "boolean", "")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			a.L.Push(lua.LBool(re.MatchString(text)))
			return 1
		}},
	{Name: "gw.re.find",
		Doc:     "Gives the places of the first and the last byte of the first part that fits; what fits nothing has last = first - 1.",
		Params:  list(p("text", "string", ""), patternParam),
		Returns: list(p("first", "integer?", "from 1; nil when nothing fits"), p("last", "integer?", "")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			m := re.FindStringIndex(text)
			if m == nil {
				a.L.Push(lua.LNil)
				return 1
			}
			a.L.Push(lua.LNumber(m[0] + 1))
			a.L.Push(lua.LNumber(m[1]))
			return 2
		}},
	{Name: "gw.re.gmatch",
		Doc:     "Walks all parts that fit, which do not overlap: `for groups in gw.re.gmatch(text, pattern) do`.",
		Params:  list(p("text", "string", ""), patternParam),
		Returns: list(p("next", "fun(): table?", "gives "+groupsDoc+" of each part, then nil")),
		Do:      gmatchRe},
	{Name: "gw.re.split",
		Doc:     "Cuts a text at every part that fits.",
		Params:  list(p("text", "string", ""), patternParam, opt("most", "integer", "pieces at most, the last of which is uncut")),
		Returns: list(p("pieces", "string[]", "")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			most := min(a.OptInt(3, maxItems+1), maxItems+1)
			if most < 1 {
				a.Bad(3, "at least one piece")
			}
			pieces := newTable()
			for _, piece := range re.Split(text, most) {
				appendItem(a, pieces, lua.LString(piece))
			}
			a.L.Push(pieces)
			return 1
		}},
	{Name: "gw.re.replace",
		Doc: "Replaces every part that fits. In a text `$1` and `${name}` stand for its groups and `$$` for a dollar; a function gets the groups and " +
			"gives a text, or nothing to leave the part as it is.",
		Params:  list(p("text", "string", ""), patternParam, p("by", "string|fun(groups: table): string?", ""), opt("most", "integer", "parts at most")),
		Returns: list(p("text", "string", ""), p("replaced", "integer", "how many parts")),
		Do:      replaceRe},
}

const groupsDoc = "the groups by number, those with names by name too, false for one that took no part; [0] is the whole part"

// groupsValue makes the table of a match; nil for none.
func groupsValue(re *regexp.Regexp, text string, m []int) lua.LValue {
	if m == nil {
		return lua.LNil
	}
	groups := newTable()
	for i, name := range re.SubexpNames() {
		var v lua.LValue = lua.LFalse
		if m[2*i] >= 0 {
			v = lua.LString(text[m[2*i]:m[2*i+1]])
		}
		groups.RawSet(lua.LNumber(i), v)
		if name != "" {
			groups.RawSetString(name, v)
		}
	}
	return groups
}

func gmatchRe(a vm.Args) int {
	text, re := reArgs(a)
	found := re.FindAllStringSubmatchIndex(text, maxItems+1)
	if len(found) > maxItems {
		a.Raise("%s: more than %d parts fit", a.Func.Name, maxItems)
	}
	a.VM.Charge(len(found))
	a.L.Push(goFunction(func(L *lua.LState) int {
		var m []int
		if len(found) > 0 {
			m, found = found[0], found[1:]
		}
		L.Push(groupsValue(re, text, m))
		return 1
	}))
	return 1
}

func replaceRe(a vm.Args) int {
	text, re := reArgs(a)
	most := min(a.OptInt(4, maxItems+1), maxItems+1)
	if most < 0 {
		a.Bad(4, "0 parts or more")
	}
	found := re.FindAllStringSubmatchIndex(text, most)
	if len(found) > maxItems {
		a.Raise("%s: more than %d parts fit", a.Func.Name, maxItems)
	}
	a.VM.Charge(4 * len(found))
	fn, byFunction := a.Get(3).(*lua.LFunction)
	by := ""
	if !byFunction {
		by = argText(a, 3)
		a.VM.Charge(len(found) * (1 + len(by)/64))
	}
	limit, groups := stringLimit(a), strings.Count(by, "$")
	var out []byte
	done := 0
	for _, m := range found {
		out = append(out, text[done:m[0]]...)
		done = m[1]
		switch room := limit - len(out); {
		case room < len(by)+groups*(m[1]-m[0]):
			a.Raise("%s: the text would be longer than the limit of %d bytes", a.Func.Name, limit)
		case byFunction:
			out = append(out, calledBack(a, fn, re, text, m)...)
		default:
			out = re.ExpandString(out, by, text, m)
		}
	}
	a.CheckString(len(out) + len(text) - done)
	a.L.Push(lua.LString(string(out) + text[done:]))
	a.L.Push(lua.LNumber(len(found)))
	return 2
}

// calledBack is what a script's function makes of a part.
func calledBack(a vm.Args, fn *lua.LFunction, re *regexp.Regexp, subject string, m []int) string {
	a.Call(1, fn, groupsValue(re, subject, m))
	v := a.L.Get(-1)
	a.L.Pop(1)
	if !lua.LVAsBool(v) {
		return subject[m[0]:m[1]]
	}
	by, ok := text(v)
	if !ok {
		a.Bad(3, "the function gave a %s: it gives a string, or nothing", v.Type())
	}
	return by
}

// maxWork bounds the bytes of a text times the steps of an expression: what one search may cost, since nothing can interrupt it.
// 16 M are some 100 ms at worst.
const maxWork = 16 << 20

// reArgs are the text and the expression.
func reArgs(a vm.Args) (string, *regexp.Regexp) {
	text := argText(a, 1)
	re := regexpArg(a, 2)
	if len(text)*re.steps > maxWork {
		a.Bad(1, "a text of %d bytes is too long for this expression: at most %d", len(text), maxWork/re.steps)
	}
	a.VM.Charge(8 + 2*len(text))
	return text, re.Regexp
}

// regexps are the compiled expressions of a VM; patterns are written in scripts and settings, so few are enough.
type regexps map[string]expression

// expression is a compiled one with the number of its steps.
type expression struct {
	*regexp.Regexp
	steps int
}

const (
	maxRegexps = 256
	maxPattern = 4 << 10
)

func regexpArg(a vm.Args, i int) expression {
	c := cachesOf(a.VM)
	pattern := argText(a, i)
	if re, ok := c.regexps[pattern]; ok {
		return re
	}
	if len(pattern) > maxPattern {
		a.Bad(i, "an expression of %d bytes is longer than %d", len(pattern), maxPattern)
	}
	a.VM.Charge(256 + 64*len(pattern))
	re, err := compileExpression(pattern)
	if err != nil {
		a.Bad(i, "%s", err)
	}
	if c.regexps == nil || len(c.regexps) >= maxRegexps {
		c.regexps = regexps{}
	}
	c.regexps[pattern] = re
	return re
}

// maxSteps is the largest expression: repetitions such as a{1000} count for as many.
const maxSteps = 16 << 10

// compileExpression compiles an expression unless it is so large that this alone would take long.
func compileExpression(pattern string) (expression, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return expression{}, err
	}
	steps := stepsOf(tree)
	if steps > maxSteps {
		return expression{}, fmt.Errorf("an expression of about %d steps is larger than %d: fewer repetitions", steps, maxSteps)
	}
	re, err := regexp.Compile(pattern)
	return expression{re, steps}, err
}

// stepsOf estimates how many instructions an expression has.
func stepsOf(tree *syntax.Regexp) int {
	steps := 1
	switch tree.Op {
	case syntax.OpLiteral:
		steps += len(tree.Rune)
	case syntax.OpCharClass:
		steps += bits.Len(uint(len(tree.Rune)))
	}
	for _, sub := range tree.Sub {
		steps += stepsOf(sub)
	}
	if tree.Op == syntax.OpRepeat {
		steps *= max(tree.Min, tree.Max, 1)
	}
	return min(steps, 1<<30)
}
