package core

import (
	"bytes"
	"context"
	"time"
)

// Call is a request that the gateway makes by itself, for a filter, and what became of it. It has one owner, and its memory is its own:
// nothing of it lies in the buffers of a connection.
type Call struct {
	Upstream  string // name of the upstream that is asked; "": Scheme and Authority say who
	Key       string // for balancers that hash, "" for none
	Scheme    string // "http" or "https"
	Authority string // host, or host:port

	Method    string
	Path      []byte // from the first slash, as it goes out
	Query     []byte // without the question mark; nil for none
	Header    Header // checked: it goes out as it is
	Body      []byte // nil for none
	Timeout   time.Duration
	MaxAnswer int64 // bytes of the answer's body; a longer one is an error

	Answer CallAnswer
	Err    error // why there is no answer, in words for a script; nil when there is one
}

// CallAnswer is the answer to a Call, read to its end.
type CallAnswer struct {
	Status int
	Header Header
	Body   []byte
}

// Take copies a response whose body was read whole.
func (a *CallAnswer) Take(w *Response, body []byte) {
	a.Status = w.Status
	a.Header.CloneFrom(&w.Header)
	a.Body = bytes.Clone(body)
}

// Caller makes requests for filters.
type Caller interface {
	// Call makes the calls, all at once, and returns when each has its Answer or its Err. The end of ctx ends them. x is the exchange
	// for whose filter they are made, nil for none; it is only read.
	Call(ctx context.Context, x *Exchange, calls ...*Call)
}
