// Package compress makes answers smaller on their way to the client, where the route says so. It answers one question: in which encoding does
// this client get this answer?
//
// A [Policy] is what a route says; Begin looks at an answer whose response functions have run and, when it fits, puts an encoder in front of its
// body and makes the header true. Bodies stream: what an upstream sends and then pauses is on its way, not in a buffer. What is
// encoded already, partial, or must not be changed (RFC 9110 section 8.4, RFC 9111 section 5.2) is left alone.
package compress

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/moongate/moongate/core"
)

// The encodings, as Accept-Encoding names them.
const (
	Gzip   = "gzip" // RFC 1952
	Brotli = "br"   // RFC 7932
	Zstd   = "zstd" // RFC 8878
)

// Options are what a route says.
type Options struct {
	Types     []string // media types without parameters, in lower case; "text/*" is a whole family, "*/*" is all
	MinSize   int64    // bytes; shorter answers, where the length is known, are left alone
	Encodings []string // those on offer; the first wins among those that a client likes equally
}

// Policy is what holds on a route. It is immutable and safe for concurrent use.
type Policy struct {
	opts     Options
	families []string // "text/" for "text/*"
	types    map[string]bool
}

// New makes a policy.
func New(o Options) *Policy {
	p := &Policy{opts: o, types: map[string]bool{}}
	for _, t := range o.Types {
		if family, ok := strings.CutSuffix(t, "*"); ok {
			p.families = append(p.families, strings.TrimPrefix(family, "*/"))
			continue
		}
		p.types[t] = true
	}
	return p
}

// Begin encodes x.Response, when it fits, and returns what must be ended once the answer has been sent, or nil. An answer that would be
// encoded for another client says so in Vary.
func (p *Policy) Begin(x *core.Exchange) *Encoder {
	w := &x.Response
	if w.Status == 304 {
		likeHeld(x)
	}
	if !p.fits(x) {
		return nil
	}
	addVary(&w.Header)
	if x.Request.Proto == core.HTTP10 {
		return nil
	}
	name := choose(p.opts.Encodings, &x.Request.Header)
	if name == "" {
		return nil
	}
	w.Header.Set("Content-Encoding", name)
	w.Header.DelKind(core.KindContentLength)
	w.Header.Del("Accept-Ranges")
	weaken(&w.Header)
	if x.Request.Method == "HEAD" { // which is told what GET would be; its length nobody knows
		if w.Body.Changed() {
			w.Body.Reset()
		}
		return nil
	}
	e := newEncoder(name)
	w.Body.Wrap(e.over)
	return e
}

// fits tells whether the answer may be encoded, whoever asks.
func (p *Policy) fits(x *core.Exchange) bool {
	w := &x.Response
	h := &w.Header
	if !core.BodyAllowed(w.Status) || w.Status == 206 || h.GetKind(core.KindContentEncoding) != nil || !p.takes(h.GetKind(core.KindContentType)) {
		return false
	}
	if n := length(x); n >= 0 && n < p.opts.MinSize {
		return false
	}
	for _, name := range [...]string{"Content-Range", "Digest", "Content-Digest", "Repr-Digest", "Content-MD5"} {
		if h.Has(name) { // of these very bytes
			return false
		}
	}
	return !forbids(h) && !forbids(&x.Request.Header)
}

// length is that of the answer to GET, -1 when it is not known.
func length(x *core.Exchange) int64 {
	w := &x.Response
	if x.Request.Method != "HEAD" || w.Body.Changed() {
		return w.Body.Length()
	}
	n, err := strconv.ParseInt(string(w.Header.GetKind(core.KindContentLength)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// likeHeld has a 304 name the validator that the client has, when that is the weak one of an answer that was encoded for it: a strong one would speak
// of another (RFC 9111 section 4.3.4).
func likeHeld(x *core.Exchange) {
	tag := x.Response.Header.Get("ETag")
	if len(tag) == 0 || tag[0] != '"' {
		return
	}
	weak := append([]byte("W/"), tag...)
	for _, f := range x.Request.Header.Fields() {
		if core.EqualFoldString(f.Name, "If-None-Match") && bytes.Contains(f.Value, weak) {
			weaken(&x.Response.Header)
			return
		}
	}
}

func (p *Policy) takes(contentType []byte) bool {
	if i := bytes.IndexByte(contentType, ';'); i >= 0 {
		contentType = contentType[:i]
	}
	var room [64]byte
	name := core.Trim(contentType)
	if len(name) == 0 || len(name) > len(room) {
		return false
	}
	lower := room[:0]
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 0x20
		}
		lower = append(lower, c)
	}
	if p.types[string(lower)] {
		return true
	}
	if bytes.HasPrefix(lower, []byte("application/grpc")) { // which compresses its messages by itself
		return false
	}
	for _, family := range p.families {
		if len(lower) > len(family) && string(lower[:len(family)]) == family {
			return true
		}
	}
	return false
}

// forbids tells whether Cache-Control has no-transform, which holds for every intermediary.
func forbids(h *core.Header) bool {
	for _, f := range h.Fields() {
		if core.EqualFoldString(f.Name, "Cache-Control") && core.HasItem(f.Value, "no-transform") {
			return true
		}
	}
	return false
}

func addVary(h *core.Header) {
	for _, f := range h.Fields() {
		if core.EqualFoldString(f.Name, "Vary") && (core.HasItem(f.Value, "Accept-Encoding") || core.HasItem(f.Value, "*")) {
			return
		}
	}
	h.Add("Vary", "Accept-Encoding")
}

// weaken makes a strong validator weak: it is no longer one of these very bytes (RFC 9110 section 8.8.1).
func weaken(h *core.Header) {
	if tag := h.Get("ETag"); len(tag) > 0 && tag[0] == '"' {
		h.Set("ETag", "W/"+string(tag))
	}
}
