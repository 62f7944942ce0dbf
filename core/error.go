package core

import "fmt"

// Error is a breakage with the answer that it deserves: Status and Public are for the client, Cause is for the log alone.
type Error struct {
	Status int
	Public string
	Cause  error
	Close  bool // the client's connection cannot be used after this
}

// Fail makes an Error.
func Fail(status int, public string, cause error) *Error {
	return &Error{Status: status, Public: public, Cause: cause}
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("%d %s", e.Status, e.Public)
	}
	return fmt.Sprintf("%d %s: %v", e.Status, e.Public, e.Cause)
}

func (e *Error) Unwrap() error { return e.Cause }

// StatusClientGone is logged and counted when the client left before it was answered; it never goes on a wire.
const StatusClientGone = 499
