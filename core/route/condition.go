package route

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// test is what a Condition asks of a value.
type test struct {
	oneOf  []string
	re     *regexp.Regexp
	exists bool
}

// holds tells whether the test accepts a value; found is false when there is none.
func (t *test) holds(value []byte, found bool) bool {
	switch {
	case t.re != nil:
		return found && t.re.Match(value)
	case t.oneOf != nil:
		if !found {
			return false
		}
		for _, s := range t.oneOf {
			if string(value) == s {
				return true
			}
		}
		return false
	}
	return found == t.exists
}

func (t *test) cost() int {
	if t.re != nil {
		return costRegexp
	}
	return 0
}

// newTest compiles a condition. key is the setting's name in errors.
func newTest(key string, c *Condition) (test, error) {
	set := 0
	for _, is := range []bool{c.OneOf != nil, c.Matches != "", c.Exists != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1 || c.OneOf != nil && len(c.OneOf) == 0:
		return test{}, wrong(key, "wants exactly one of a value, one_of, matches and exists")
	case c.OneOf != nil:
		return test{oneOf: c.OneOf}, nil
	case c.Exists != nil:
		return test{exists: *c.Exists}, nil
	}
	re, err := regexp.Compile(c.Matches)
	if err != nil {
		return test{}, wrong(key, "matches: %v", err)
	}
	return test{re: re}, nil
}

// sign spells a condition so that equal ones are spelled alike.
func (c *Condition) sign(key string) string {
	switch {
	case c.Exists != nil:
		return key + "?" + strconv.FormatBool(*c.Exists)
	case c.OneOf != nil:
		return key + "=" + signSet(c.OneOf)
	}
	return key + "~" + strconv.Quote(c.Matches)
}

// signSet spells a set of strings.
func signSet(set []string) string {
	set = slices.Clone(set)
	slices.Sort(set)
	set = slices.Compact(set)
	var b strings.Builder
	for _, s := range set {
		b.WriteString(strconv.Quote(s))
	}
	return b.String()
}
