package luaapi

import (
	"errors"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
	"github.com/moongate/moongate/luaapi/vm"
)

// Where bodies and the functions that work on their chunks meet, and what their heads say then. Nobody knows before its end what a body
// becomes: its length is left out, and with it all that speaks of bytes that will not be the same. Where all functions belong to scripts
// that leave bodies as they are, and there is no coding to be taken off, heads stay as they are.

// Streams implements core.BodyStage.
func (s *stage) Streams(route *core.Route) bool {
	p := s.plan(route)
	return p.has[onRequestChunk] || p.has[onResponseChunk]
}

// StreamRequest implements core.BodyStage. Where answers are worked on the upstream is asked for all of them: a part of one could not be
// told from the whole.
func (s *stage) StreamRequest(x *core.Exchange) error {
	p := s.plan(x.Route)
	r := &x.Request
	if p.has[onResponseChunk] && hasField(&r.Header, asksForPart) {
		r.Keep()
		r.Header.DelFunc(asksForPart)
	}
	if !p.has[onRequestChunk] || r.Body.None() {
		return nil
	}
	passing := s.passage(x, p, onRequestChunk, phaseRequestChunk, p.turns)
	if passing.leaves && !isCoded(&r.Header) {
		r.Body.Watch(passing.over)
		return nil
	}
	if err := decode(&r.Header, &r.Body); err != nil {
		return core.Fail(415, "request body's content encoding is not supported", err)
	}
	r.Keep()
	r.Header.DelFunc(describesBody)
	r.Body.Wrap(passing.over)
	return nil
}

// StreamResponse implements core.BodyStage.
func (s *stage) StreamResponse(x *core.Exchange) error {
	p := s.plan(x.Route)
	turns := p.turns
	if x.Route != nil {
		turns = turns[:max(0, min(len(turns), x.Reached-p.before))]
	}
	w := &x.Response
	passing := s.passage(x, p, onResponseChunk, phaseResponseChunk, turns)
	if len(passing.turns) == 0 || !core.BodyAllowed(w.Status) || w.Body.None() && x.Request.Method != "HEAD" {
		return nil
	}
	if w.Status == 206 {
		return core.Fail(502, "upstream sent a part of an answer", errPart)
	}
	if passing.leaves && !isCoded(&w.Header) {
		if x.Request.Method != "HEAD" {
			w.Body.Watch(passing.over)
		}
		return nil
	}
	if x.Request.Method != "HEAD" {
		if err := decode(&w.Header, &w.Body); err != nil {
			return core.Fail(502, "upstream's content encoding is not supported", err)
		}
	}
	w.Header.DelFunc(func(h *core.Field) bool { return describesBody(h) || validatesBody(h) })
	if x.Request.Method != "HEAD" {
		w.Body.Wrap(passing.over)
	}
	return nil
}

var errPart = errors.New("the upstream sent 206 unasked, and on_response_chunk works on whole answers")

// passage is made for the filters that have the function; answers see them in reverse.
func (s *stage) passage(x *core.Exchange, p *plan, function int, phase vm.Phase, turns []turn) *passage {
	m := &passage{stage: s, x: x, phase: phase, function: function, shared: p.shared, leaves: true}
	for i := range turns {
		if function == onResponseChunk {
			i = len(turns) - 1 - i
		}
		if turns[i].filter.script.has[function] {
			m.turns = append(m.turns, &turns[i])
			m.leaves = m.leaves && turns[i].filter.script.leaves
		}
	}
	m.kept = m.weigh()
	return m
}

// decode takes the content coding off a body that functions shall read.
func decode(h *core.Header, b *core.Body) error {
	coding := h.GetKind(core.KindContentEncoding)
	switch {
	case !isCoded(h):
		return nil
	case h.CountKind(core.KindContentEncoding) > 1 || !compress.Decode(b, coding):
		return errors.New("Content-Encoding " + visible(string(coding)) + ": what is encoded so cannot be given to a filter")
	}
	return nil
}

// isCoded tells whether a body has a content coding.
func isCoded(h *core.Header) bool {
	coding := h.GetKind(core.KindContentEncoding)
	return len(coding) > 0 && !core.EqualFoldString(coding, "identity") || h.CountKind(core.KindContentEncoding) > 1
}

func asksForPart(h *core.Field) bool { return isOneOf(h.Name, "range", "if-range") }

func hasField(h *core.Header, is func(*core.Field) bool) bool {
	for _, f := range h.Fields() {
		if is(&f) {
			return true
		}
	}
	return false
}
