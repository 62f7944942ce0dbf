package auth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule is one condition on what a proof says. One of the four is set.
type Rule struct {
	// Claim is the claim's name, or a path of names joined by dots; a claim that has dots in its own name is found too.
	Claim string
	// Equals is the claim's text: of a string or number, or true or false.
	Equals string
	// OneOf lists texts one of which the claim, or an item of it when it is a list, is equal to.
	OneOf []string
	// Contains lists texts all of which are items of the list, or words of the string as in scope (RFC 8693 section 4.2).
	Contains []string
	// Matches is a regular expression (RE2) that the claim's text, or that of an item, fits.
	Matches *regexp.Regexp
}

// Check says whether claims fulfil the rule; the error names the rule and nothing of the claims.
func (r *Rule) Check(claims Value) error {
	value, ok := claims.Find(r.Claim)
	if !ok || value.Kind() == Null {
		return fmt.Errorf("claim %s is missing", r.Claim)
	}
	var good bool
	var want string
	switch {
	case r.Matches != nil:
		good, want = value.some(r.Matches.MatchString), "does not match"
	case r.Contains != nil:
		good, want = value.containsAll(r.Contains), "does not contain what is asked for"
	case r.OneOf != nil:
		good, want = value.some(func(text string) bool { return slices.Contains(r.OneOf, text) }), "is none of those that are accepted"
	default:
		text, plain := value.plain()
		good, want = plain && text == r.Equals, "is another"
	}
	if !good {
		return fmt.Errorf("claim %s %s", r.Claim, want)
	}
	return nil
}

// Find gives the member of a map by its name, or by a path of names joined by dots.
func (v Value) Find(path string) (Value, bool) {
	if found, ok := v.Get(path); ok {
		return found, true
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if inner, ok := v.Get(path[:i]); ok {
			if found, ok := inner.Find(path[i+1:]); ok {
				return found, true
			}
		}
	}
	return Value{}, false
}

// plain is the text of a string, number or boolean.
func (v Value) plain() (text string, ok bool) {
	if v.kind == String || v.kind == Number || v.kind == Bool {
		return v.text, true
	}
	return "", false
}

// some tells whether the value, or an item of it when it is a list, passes.
func (v Value) some(pass func(text string) bool) bool {
	if v.kind == List {
		return slices.ContainsFunc(v.members, func(m member) bool {
			text, ok := m.value.plain()
			return ok && pass(text)
		})
	}
	text, ok := v.plain()
	return ok && pass(text)
}

// containsAll tells whether a list has all of the texts, or a string has all of them as words.
func (v Value) containsAll(wanted []string) bool {
	var items []string
	switch v.kind {
	case String:
		items = strings.Fields(v.text)
	case List:
		for _, m := range v.members {
			if text, ok := m.value.plain(); ok {
				items = append(items, text)
			}
		}
	}
	for _, w := range wanted {
		if !slices.Contains(items, w) {
			return false
		}
	}
	return len(items) > 0 || len(wanted) == 0
}

// checkRules checks all rules; the error is a refusal for want of rights.
func checkRules(rules []Rule, claims Value) *Refusal {
	for i := range rules {
		if err := rules[i].Check(claims); err != nil {
			return &Refusal{kind: ErrForbidden, reason: err.Error()}
		}
	}
	return nil
}
