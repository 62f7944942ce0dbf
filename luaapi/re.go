package luaapi

import (
	"regexp"

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
			text := reText(a)
			re := regexpArg(a, 2)
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
			text := reText(a)
			a.L.Push(lua.LBool(regexpArg(a, 2).MatchString(text)))
			return 1
		}},
	{Name: "gw.re.replace",
		Doc:     "Replaces every part that fits a regular expression; `$1` and `${name}` stand for its groups.",
		Params:  list(p("text", "string", ""), patternParam, p("by", "string", "")),
		Returns: list(p("text", "string", "")),
		Do: func(a vm.Args) int {
			text := reText(a)
			out := regexpArg(a, 2).ReplaceAllString(text, argText(a, 3))
			a.CheckString(len(out))
			a.L.Push(lua.LString(out))
			return 1
		}},
}

func reText(a vm.Args) string {
	s := argText(a, 1)
	a.VM.Charge(8 + 2*len(s))
	return s
}

// regexps are the compiled expressions of a VM; patterns are written in scripts and settings, so few are enough.
type regexps map[string]*regexp.Regexp

const maxRegexps = 256

func regexpArg(a vm.Args, i int) *regexp.Regexp {
	c := cachesOf(a.VM)
	pattern := argText(a, i)
	if re := c.regexps[pattern]; re != nil {
		return re
	}
	a.VM.Charge(256 + 64*len(pattern))
	re, err := regexp.Compile(pattern)
	if err != nil {
		a.Bad(i, "%s", err)
	}
	if c.regexps == nil || len(c.regexps) >= maxRegexps {
		c.regexps = regexps{}
	}
	c.regexps[pattern] = re
	return re
}
