package luaapi

import (
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
		Returns: list(p("groups", "string[]?", "the groups by number, those with names by name too; [0] is the whole part; nil when nothing fits")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			m := re.FindStringSubmatchIndex(text)
			if m == nil {
				a.L.Push(lua.LNil)
				return 1
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
			a.L.Push(groups)
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
	{Name: "gw.re.replace",
		Doc:     "Replaces every part that fits a regular expression; `$1` and `${name}` stand for its groups.",
		Params:  list(p("text", "string", ""), patternParam, p("by", "string", "")),
		Returns: list(p("text", "string", "")),
		Do: func(a vm.Args) int {
			text, re := reArgs(a)
			by := argText(a, 3)
			checkReplacement(a, re, text, by)
			out := re.ReplaceAllString(text, by)
			a.CheckString(len(out))
			a.L.Push(lua.LString(out))
			return 1
		}},
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

// checkReplacement raises when replacing might make a string beyond the limit, before it is made. Each group is at most as long as the
// part that it stands in.
func checkReplacement(a vm.Args, re *regexp.Regexp, text, by string) {
	size, groups, limit := len(text), strings.Count(by, "$"), stringLimit(a)
	re.ReplaceAllStringFunc(text, func(part string) string {
		if size += len(by) + groups*len(part); size > limit {
			a.Raise("the text would be longer than the limit of %d bytes", limit)
		}
		return ""
	})
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

func compileExpression(pattern string) (expression, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return expression{}, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return expression{}, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return expression{}, err
	}
	return expression{re, len(prog.Inst)}, nil
}
