package conf

import (
	"net/netip"
	"time"
)

// ScriptHTTP bounds the requests that scripts make with gw.http.
type ScriptHTTP struct {
	Pos         Pos
	Timeout     time.Duration  // of a call that names none
	Connect     time.Duration  // to the host of a URL
	Calls       int            // of one function
	MaxAnswer   int64          `unit:"bytes"` // bytes of an answer's body
	Connections int            // to one host of URLs, idle ones included
	Hosts       int            // of URLs whose connections are kept
	Allow       []netip.Prefix // networks beside the public ones to which URLs may lead
	AllowLoops  bool           // calls may lead back into the gateway
}

// ScriptMirror bounds the copies of requests that scripts send with gw.mirror.
type ScriptMirror struct {
	Pos      Pos
	InFlight int           // copies under way at once
	MaxBody  int64         `unit:"bytes"` // bytes of a request's body that are copied
	Timeout  time.Duration // for a copy, to the last byte of its answer
}

// ScriptDelay bounds the delays that scripts ask for with gw.delay.
type ScriptDelay struct {
	Pos      Pos
	Max      time.Duration // for one stage of one request
	InFlight int           // requests that are delayed at once
}

func defaultScriptHTTP() ScriptHTTP {
	return ScriptHTTP{Timeout: 5 * time.Second, Connect: time.Second, Calls: 16, MaxAnswer: 1 << 20, Connections: 64, Hosts: 64}
}

func defaultScriptMirror() ScriptMirror {
	return ScriptMirror{InFlight: 128, MaxBody: 64 << 10, Timeout: 10 * time.Second}
}

func defaultScriptDelay() ScriptDelay { return ScriptDelay{Max: 10 * time.Second, InFlight: 1024} }

var scriptHTTPSection = section[ScriptHTTP]{
	duration("timeout", func(h *ScriptHTTP) *time.Duration { return &h.Timeout }, shortest, longest),
	duration("connect", func(h *ScriptHTTP) *time.Duration { return &h.Connect }, shortest, longest),
	integer("calls", func(h *ScriptHTTP) *int { return &h.Calls }, 1, 1024),
	size("max_answer", func(h *ScriptHTTP) *int64 { return &h.MaxAnswer }, 1, 64<<20),
	integer("connections", func(h *ScriptHTTP) *int { return &h.Connections }, 1, 1<<16),
	integer("hosts", func(h *ScriptHTTP) *int { return &h.Hosts }, 1, 1<<16),
	prefixes("allow", func(h *ScriptHTTP) *[]netip.Prefix { return &h.Allow }),
	boolean("allow_loops", func(h *ScriptHTTP) *bool { return &h.AllowLoops }),
}

var scriptMirrorSection = section[ScriptMirror]{
	integer("in_flight", func(m *ScriptMirror) *int { return &m.InFlight }, 1, 1<<16),
	size("max_body", func(m *ScriptMirror) *int64 { return &m.MaxBody }, 0, 64<<20),
	duration("timeout", func(m *ScriptMirror) *time.Duration { return &m.Timeout }, shortest, longest),
}

var scriptDelaySection = section[ScriptDelay]{
	duration("max", func(d *ScriptDelay) *time.Duration { return &d.Max }, shortest, time.Hour),
	integer("in_flight", func(d *ScriptDelay) *int { return &d.InFlight }, 1, 1<<20),
}

// Equal tells whether two say the same, wherever they stand.
func (h ScriptHTTP) Equal(other ScriptHTTP) bool { return same(h, other) }
