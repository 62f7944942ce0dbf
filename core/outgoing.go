package core

import (
	"strings"
	"time"
)

// Mirror is a filter's wish that a copy of the request goes to another upstream as well.
type Mirror struct {
	Upstream string // by name
	Header   Header // lines that the copy has on top, in the place of its own of those names
}

// Delayer holds requests back for filters.
type Delayer interface {
	// ReserveDelay takes one of the places for requests that are held back. It tells false when there is none.
	ReserveDelay() bool
	// Delay holds an exchange back that has a place, and gives the place back: it returns after d, or with an error once the client has
	// left. With d = 0 it only gives the place back.
	Delay(x *Exchange, d time.Duration) error
}

// Shadow copies what goes upstream of the exchange into memory of its own, but for the body and what belongs to the connection.
func (x *Exchange) Shadow() *Exchange {
	q := &x.Request
	s := &Exchange{Route: x.Route, HashKey: x.HashKey, User: x.User, RequestID: cloned(x.RequestID), TraceID: cloned(x.TraceID)}
	s.Request = Request{
		Method: strings.Clone(q.Method), Proto: q.Proto, Scheme: q.Scheme, Host: cloned(q.Host), RawPath: cloned(q.RawPath), Path: cloned(q.Path),
		RawQuery: cloned(q.RawQuery), HasQuery: q.HasQuery, TargetPath: cloned(q.TargetPath), TargetQuery: cloned(q.TargetQuery), QuerySet: q.QuerySet,
		RemoteAddr: q.RemoteAddr, LocalAddr: q.LocalAddr, Listener: q.Listener, ClientIP: q.ClientIP,
	}
	s.Request.Header.CloneFrom(&q.Header)
	s.Request.Body.Attach(nil, 0)
	return s
}

// cloned is a copy; nil stays nil.
func cloned(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}
