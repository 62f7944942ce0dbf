package core

import (
	"regexp"
	"time"
)

// PathPolicy says what happens to a path with dot segments or empty segments.
type PathPolicy uint8

// The three policies of the `path` setting.
const (
	PathStrict    PathPolicy = iota // such a path is refused with 400
	PathNormalise                   // resolved for matcher, scripts and upstream alike
	PathRaw                         // forwarded as it came, matched as PathNormalise would
)

// Limits are the time limits of one way to an upstream. Zero means: not set here.
type Limits struct {
	Connect   time.Duration // to a usable connection, TLS included
	FirstByte time.Duration // from the request sent to the answer's head
	IdleRead  time.Duration // between two reads of the answer
	Total     time.Duration // from the end of the request stages, over all tries, to the answer's head
	BodyTotal time.Duration // from the head to the answer's last byte

	UpgradeIdle time.Duration // without a byte either way on a connection that has switched protocols
}

// Over returns l with what it leaves unset taken from base.
func (l Limits) Over(base Limits) Limits {
	pick := func(a, b time.Duration) time.Duration {
		if a != 0 {
			return a
		}
		return b
	}
	return Limits{pick(l.Connect, base.Connect), pick(l.FirstByte, base.FirstByte), pick(l.IdleRead, base.IdleRead),
		pick(l.Total, base.Total), pick(l.BodyTotal, base.BodyTotal), pick(l.UpgradeIdle, base.UpgradeIdle)}
}

// Route is what the matcher chose for a request: its name, where it sends and what holds on it. It is immutable and belongs to
// one generation.
type Route struct {
	ID         int    // dense index within the generation, from 1; 0 stands for "no route"
	Name       string // as configured
	Upstream   string // name of the upstream it sends to unless a script chooses another
	Path       PathPolicy
	MaxBody    int64 // largest request body in bytes
	BodyBuffer int64 // largest body that scripts and body predicates see, in bytes
	Limits     Limits
	WebSocket  bool // connections may switch to WebSocket

	StripSegments int            // so many leading segments are taken from the path
	StripPrefix   string         // or this prefix, in whole segments
	Rewrite       *regexp.Regexp // nil: no rewrite
	RewriteTo     string         // replacement with $1 groups
}

// Param is one {name} of the route's path with the segment that it stood for, as the matcher saw it.
type Param struct {
	Name  string
	Value []byte
}
