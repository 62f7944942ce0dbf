package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Unavailable says that Redis could not be asked: whether it did what it was told is not known.
type Unavailable struct{ Cause error }

func (e *Unavailable) Error() string { return "redis is unavailable: " + e.Cause.Error() }

// Unwrap gives the cause.
func (e *Unavailable) Unwrap() error { return e.Cause }

// Timeout tells whether the time limit was reached.
func (e *Unavailable) Timeout() bool { return e.Cause == errTimeout }

// Perhaps tells whether Redis may have done all the same what it was told.
func (e *Unavailable) Perhaps() bool {
	_, refusal := errors.AsType[*ServerError](e.Cause)
	return !refusal && e.Cause != errDown && e.Cause != errClosed
}

// broken tells that a connection failed, as idle ones do when a server restarts.
func (e *Unavailable) broken() bool {
	return e.Cause != errTimeout && e.Perhaps()
}

// ErrTimeout is what a call says when the time limit was reached.
var ErrTimeout error = &Unavailable{errTimeout}

var (
	errTimeout = errors.New("no answer within the time limit")
	errDown    = errors.New("it did not answer lately")
	errClosed  = errors.New("the client is closed")
)

// ServerError is what Redis says when it will not do what it was told: "WRONGTYPE Operation against a key ...".
type ServerError struct{ Message string }

func (e *ServerError) Error() string { return e.Message }

// CommandError says that a command cannot be sent over a connection that others share.
type CommandError struct{ Message string }

func (e *CommandError) Error() string { return e.Message }

// OptionError is an option that is of no use.
type OptionError struct {
	Option string // "address", "ca", "cert", ...
	Err    error
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s: %s", e.Option, e.Err) }

// Unwrap gives the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// states are the errors of a server that cannot serve for a while, or not us: it loads, it has lost its master, it is none any more, its
// disk or memory is full, a script runs for ever, it does not know the password.
var states = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF", "NOREPLICAS", "BUSY", "OOM", "NOAUTH", "WRONGPASS",
	"UNKILLABLE", "MOVED", "ASK"}

// failure turns an error of the driver into one of this package.
func failure(err error) error {
	if e, ok := rueidis.IsRedisErr(err); ok {
		text := e.Error()
		said := &ServerError{text}
		code, _, _ := strings.Cut(text, " ")
		if slices.Contains(states, code) {
			return &Unavailable{said}
		}
		return said
	}
	switch network, _ := errors.AsType[net.Error](err); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), network != nil && network.Timeout():
		return &Unavailable{errTimeout}
	case errors.Is(err, context.Canceled), errors.Is(err, rueidis.ErrClosing):
		return &Unavailable{errClosed}
	}
	return &Unavailable{err}
}
