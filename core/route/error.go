package route

import (
	"fmt"
	"strconv"
)

// Error says what is wrong with a rule. Rule and Key let the caller find the place in the file.
type Error struct {
	Rule  int    // index in the list given to New
	Name  string // the rule's name
	Key   string // the setting, as the configuration spells it: "path", "header.X-Version", "time.daily"
	Want  string // what is wrong or what would be right
	Other int    // index of the other rule when two collide, else -1
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("route %s: %s", strconv.Quote(e.Name), e.Want)
	}
	return fmt.Sprintf("route %s: %s: %s", strconv.Quote(e.Name), e.Key, e.Want)
}

// keyError is an error of a part that does not know its rule yet.
type keyError struct{ key, want string }

func (e *keyError) Error() string { return e.key + ": " + e.want }

func wrong(key, format string, args ...any) error {
	return &keyError{key, fmt.Sprintf(format, args...)}
}
