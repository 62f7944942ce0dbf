package luaapi

import (
	"regexp"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// rules reads conditions on claims: a text, number or boolean is what the claim equals, a list what it is one of, a table says
// equals, one_of, contains or matches.
func (f *fields) rules(name string) []auth.Rule {
	var rules []auth.Rule
	f.each(name, func(claim string, v lua.LValue) {
		rule := auth.Rule{Claim: claim}
		t, isTable := v.(*lua.LTable)
		switch {
		case !isTable:
			rule.Equals = f.plain(name, claim, v)
			f.note(claim, "="+rule.Equals)
		case vm.Thaw(t).MaxN() > 0:
			rule.OneOf = f.inner(name, f.t.RawGetString(name)).list(claim)
		default:
			f.condition(&rule, name+"."+claim, t)
		}
		rules = append(rules, rule)
	})
	return rules
}

func (f *fields) plain(name, claim string, v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return vm.NumberText(float64(v))
	case lua.LBool:
		return v.String()
	}
	f.bad(name, "%s is compared with a string, number or boolean", claim)
	return ""
}

// condition reads { matches = "..." } and the like.
func (f *fields) condition(rule *auth.Rule, path string, t *lua.LTable) {
	in := f.inner(path, t)
	equals, matches := in.get("equals"), in.text("matches")
	rule.OneOf, rule.Contains = in.list("one_of"), in.list("contains")
	if equals != lua.LNil {
		rule.Equals = f.plain(path, "equals", equals)
		in.note("equals", rule.Equals)
	}
	if matches != "" {
		var err error
		if rule.Matches, err = regexp.Compile(matches); err != nil {
			in.bad("matches", "is no regular expression (RE2): %s", err)
		}
	}
	in.complete()
	if len(in.read) != 1 {
		f.bad(path, "says one of equals, one_of, contains and matches")
	}
}
