package core

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Exchange is one request and its response on their way through the gateway. One goroutine owns it at a time, from the moment the
// request's head is read until the log functions have run; then it is reset and used again, so nothing may keep a slice of it.
type Exchange struct {
	Request  Request
	Response Response

	Generation any       // the generation that this exchange began on and ends on
	Route      *Route    // nil before matching and without a match
	Upstream   string    // upstream chosen by a script; "" is the route's
	HashKey    string    // key for balancers that hash, "" when nobody gave one
	Endpoint   *Endpoint // where it went; a script may set it before forwarding

	RequestID []byte // the client's when it may be believed, else made here
	TraceID   []byte
	User      string   // who the caller is, once a filter has said so
	Vars      Vars     // what filters leave for each other (ctx)
	Mirrors   []Mirror // copies that go out with the request

	Turn    int           // filters of the route whose turn has come, in order over all stages
	Reached int           // Turn as it was when the answer began its way back
	Err     error         // why the gateway failed the exchange; for the log, never for the client
	Waited  time.Duration // filters have waited so long for others
	Times   Times

	// Filters is held while a filter's function runs, where those of the request's body could run beside others.
	Filters sync.Mutex

	Lifeline Lifeline

	held    []Releaser
	ids     [64]byte
	scratch []byte
}

// Request is the client's request as it stands: header, path and query are what filters made of them.
type Request struct {
	Method   string
	Proto    Proto
	Scheme   string // "http" or "https", after trusted proxies were heard
	Host     []byte // authority of the request without userinfo
	RawPath  []byte // as it came, from the first slash
	Path     []byte // canonical: what the matcher and scripts see
	RawQuery []byte // without the question mark
	HasQuery bool   // there was a question mark
	Header   Header
	Params   []Param
	Body     Body

	TargetPath  []byte // path for the upstream when a filter set one; nil: derived from RawPath and the route
	TargetQuery []byte // query for the upstream
	QuerySet    bool   // a filter set TargetQuery

	RemoteAddr netip.AddrPort // the peer of the connection, or whom a trusted proxy's PROXY header named
	LocalAddr  netip.AddrPort // what that peer connected to
	TLS        *TLSInfo       // of the connection; nil without TLS
	Listener   string         // name of the listener that the connection came to, "" when it has none
	ClientIP   netip.Addr     // the client, after trusted proxies were heard
	Expect     bool           // the client waits for 100 before it sends its body
	HeadSize   int64          // bytes of the request's head on the wire
	Upgrade    bool           // the client may and would switch protocols: its connection can, and Connection said so
	Extended   bool           // it came as an extended CONNECT (RFC 8441): any answer of 2xx would tell the client that it has switched

	Own bool // made by the gateway itself: no client stands behind it

	arrived      Arrived
	Uploading    bool // another goroutine is reading Body for the upstream
	ExpectPassed bool // the upstream was asked whether it wants the body
}

// Arrived is what filters can change of a request, as it came.
type Arrived struct {
	Method string
	Host   []byte
	Header Header
	kept   bool
}

// Keep notes how the request came, once. Whoever changes its method, host or header for a filter calls it first.
func (r *Request) Keep() {
	if a := &r.arrived; !a.kept {
		a.Method, a.Host, a.kept = r.Method, r.Host, true
		a.Header.CopyFrom(&r.Header)
	}
}

// AsItCame is the request before the first change that Keep was told of; nil when there was none.
func (r *Request) AsItCame() *Arrived {
	if !r.arrived.kept {
		return nil
	}
	return &r.arrived
}

// Response is the answer as it stands.
type Response struct {
	Status int // 0 before there is one
	Reason []byte
	Header Header
	Body   Body
	Source Source

	Message string // public text of an error that the gateway or a filter made; "" when it has none

	Started  bool  // the head is on the wire: nothing of it can change any more
	BodySent int64 // body bytes written to the client
}

// Proto is the version of HTTP that carried a request.
type Proto uint8

// The versions that clients may speak.
const (
	HTTP11 Proto = iota
	HTTP10
	HTTP2
)

func (p Proto) String() string { return [...]string{"HTTP/1.1", "HTTP/1.0", "HTTP/2.0"}[p] }

// Source tells who made an answer.
type Source uint8

// The makers of answers, as res.source and the access log name them.
const (
	FromNobody Source = iota
	FromUpstream
	FromFilter
	FromGateway
)

func (s Source) String() string { return [...]string{"", "upstream", "filter", "gateway"}[s] }

// Times are the borders that an exchange crossed; 0 means that it never came there.
type Times struct {
	Start     Instant // head read
	Filtered  Instant // request stages done
	Connected Instant // endpoint's connection in hand
	Sent      Instant // request head, and body when it was at hand, written
	FirstByte Instant // answer's head read
	Done      Instant // last byte written to the client
}

// Reset makes the exchange ready for another request and lets go of everything that belonged to the last one.
func (x *Exchange) Reset() {
	x.ReleaseAll()
	r, w := &x.Request, &x.Response
	r.Header.Reset()
	r.arrived.Header.Reset()
	r.Body.Reset()
	clear(r.Params)
	x.Request = Request{Header: r.Header, Body: r.Body, Params: r.Params[:0], arrived: Arrived{Header: r.arrived.Header}}
	w.Header.Reset()
	w.Body.Reset()
	x.Response = Response{Header: w.Header, Body: w.Body}
	x.Vars.reset()
	x.Mirrors = nil
	x.Generation, x.Route, x.Endpoint, x.Err = nil, nil, nil, nil
	x.Upstream, x.HashKey, x.User = "", "", ""
	x.RequestID, x.TraceID = nil, nil
	x.Turn, x.Reached, x.Waited, x.Times = 0, 0, 0, Times{}
	if cap(x.scratch) > 8<<10 {
		x.scratch = nil
	}
	x.Lifeline.reset()
}

// NewIDs gives the exchange random ids of 32 hexadecimal digits each, for whichever of the two it has not got yet.
func (x *Exchange) NewIDs() {
	if x.TraceID == nil {
		x.TraceID = hex128(x.ids[:32])
	}
	if x.RequestID == nil {
		x.RequestID = hex128(x.ids[32:])
	}
}

func hex128(dst []byte) []byte {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	hex.Encode(dst, raw[:])
	return dst
}

// Scratch lends memory that lives as long as the exchange's current request. It is lent once a request: each call takes back what the
// one before lent.
func (x *Exchange) Scratch(size int) []byte {
	if cap(x.scratch) < size {
		x.scratch = make([]byte, 0, max(size, 512))
	}
	return x.scratch[:0]
}
