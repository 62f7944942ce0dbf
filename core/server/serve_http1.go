package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
)

// client is one HTTP/1.1 connection from a client. Its goroutine reads a request, has it served, and reads the next.
type client struct {
	srv    *Server
	conn   *http1.Conn
	remote netip.AddrPort
	local  netip.AddrPort
	by     *listening
	scheme string
	tls    *secured // nil without TLS
	early  []byte   // begins HTTP/2: what was read of it, for its own leg
	slot   int      // place in the server's list, guarded by Server.mu

	x         *core.Exchange
	body      http1.BodyReader
	onRead    func() error // bodyWanted, bound once
	allRead   atomic.Bool  // nothing of the body is missing; only with a body
	close     bool         // no request follows on this connection
	broken    bool         // the answer could not be brought to its end
	refused   bool         // what came was no request; who knows what follows it
	continued bool

	mu       sync.Mutex   // guards live and switched against the watcher
	live     bool         // x is being served
	busy     bool         // a request has come, and its answer may still be on the way
	switched bool         // the connection belongs to a tunnel, which hears itself when the client leaves
	began    atomic.Int64 // when, as core.Instant; 0 while idle
	armed    int64        // the began that the watcher has armed for; the sweeper's own
	id       uint64       // in the watcher, 0 when never armed
}

// keepBuffers is how long an idle connection keeps its buffers.
const keepBuffers = 1500 * time.Millisecond

func newClient(s *Server, nc net.Conn, by *listening) *client {
	c := &client{srv: s, by: by, conn: http1.NewConn(nc), scheme: "http"}
	c.remote, c.local = by.ends(nc)
	c.onRead = c.bodyWanted
	return c
}

func (c *client) run() {
	defer c.srv.forget(c)
	defer c.shut()
	defer func() {
		if p := recover(); p != nil {
			if c.broken = true; c.live {
				c.end()
			}
			c.srv.log.Error("connection ended by a fault of the gateway", "panic", p, "stack", string(debug.Stack()))
			if c.x != nil { // it is not used again: whoever panicked may still have it in hand
				c.x.ReleaseAll()
			}
		}
	}()
	for !c.close && c.await() {
		c.serveOne()
	}
	if c.early != nil {
		c.srv.serveHTTP2(c.conn.NetConn(), c.by, c.early)
	}
}

// await waits for the next request. It tells false when there will be none.
func (c *client) await() bool {
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
	if c.conn.Buffered() > 0 {
		return true
	}
	set, now := c.srv.settings.Load(), core.Now()
	c.conn.ReadWithin(now, min(keepBuffers, set.IdleTimeout))
	err := c.conn.Await()
	if errors.Is(err, http1.ErrTimeout) && set.IdleTimeout > keepBuffers {
		c.conn.Rest()
		c.srv.rested.Add(1)
		c.conn.ReadWithin(now, set.IdleTimeout)
		err = c.conn.AwaitResting()
	}
	return err == nil
}

func (c *client) serveOne() {
	set := c.srv.settings.Load()
	c.x = exchanges.Get().(*core.Exchange)
	c.continued = false
	fault := c.readHead(set)
	if fault == errGone {
		c.close = true
		c.release()
		return
	}
	c.begin()
	if fault != nil {
		c.close, c.refused = true, true
		c.srv.handler.Refuse(c.x, c, fault)
	} else {
		if rest := c.srv.handler.Serve(c.x, c); rest != nil {
			rest()
		}
	}
	if !c.x.Response.Started { // no answer: the next one would be taken for it
		c.broken = true
	}
	c.end()
	c.settleBody()
	c.release()
}

// errGone stands for a connection that ended without a request.
var errGone = &core.Error{}

func (c *client) readHead(set *limits) *core.Error {
	x := c.x
	c.conn.ReadWithin(core.Now(), set.HeadTimeout)
	head, err := c.conn.ReadRequestHead(set.Head)
	x.Times.Start = core.Now()
	x.Request.LocalAddr = c.local
	x.Request.RemoteAddr, x.Request.Scheme, x.Request.Listener = c.remote, c.scheme, c.by.Name
	if c.tls != nil {
		x.Request.TLS = c.tls.info
	}
	if err != nil {
		if errors.Is(err, http1.ErrTimeout) && c.conn.Buffered() == 0 {
			return errGone // empty lines and then nothing: an idle connection
		}
		return headFault(err)
	}
	f, err := http1.ParseRequest(head, &x.Request)
	if err != nil {
		if c.begins2(head) {
			return errGone
		}
		return headFault(err)
	}
	if c.tls != nil && c.tls.misdirected(x.Request.Host) {
		return errMisdirected
	}
	c.close = f.Close || c.srv.draining.Load() || c.by.closes()
	x.Request.Upgrade = f.Upgrade && x.Request.Proto == core.HTTP11
	c.body.Start(c.conn, f, &x.Request.Body.Trailer)
	if x.Request.Expect {
		c.body.OnRead = c.onRead
	}
	if c.body.Source() != nil {
		c.allRead.Store(false)
		c.body.AllRead = &c.allRead
	}
	x.Request.Body.Attach(c.body.Source(), f.Length)
	c.conn.Pace(&set.pace)
	return nil
}

func headFault(err error) *core.Error {
	if fault, ok := errors.AsType[*core.Error](err); ok {
		return fault
	}
	if errors.Is(err, http1.ErrTimeout) {
		return &core.Error{Status: 408, Public: "request head took too long", Close: true}
	}
	return errGone
}

// begin and end frame the time in which a client that leaves matters.
func (c *client) begin() {
	c.srv.inFlight.Add(1)
	c.mu.Lock()
	c.live, c.busy = true, true
	c.mu.Unlock()
	c.began.Store(int64(c.x.Times.Start))
}

func (c *client) end() {
	c.began.Store(0)
	c.mu.Lock()
	c.live = false
	c.mu.Unlock()
	c.srv.inFlight.Add(-1)
}

// left is called by the watcher: the client has closed its end.
func (c *client) left() { c.leave(nil) }

func (c *client) leave(why error) {
	c.mu.Lock()
	if c.live && !c.switched {
		c.x.Lifeline.BreakFor(why)
	}
	c.mu.Unlock()
}

// cut ends the connection and what an upstream does for it.
func (c *client) cut() {
	c.leave(core.ErrDrained)
	c.conn.Cut()
}

func (c *client) cutIdle() {
	c.mu.Lock()
	if !c.busy {
		c.conn.Cut()
	}
	c.mu.Unlock()
}

// drainLimit is how much of an unread body is read and thrown away to keep a connection.
const drainLimit = 64 << 10

// settleBody makes sure that the next request is read from behind this one's body, or that there is no next.
func (c *client) settleBody() {
	if c.broken || c.refused || c.close || c.body.Ended() || c.body.Source() == nil {
		c.close = c.close || c.broken
		return
	}
	if c.x.Request.Expect || c.body.Left() > drainLimit {
		c.close = true
		return
	}
	c.close = !c.drain(time.Second)
}

// drain reads what is left of the body, and comes within that time, for nobody, and tells whether it has ended.
func (c *client) drain(within time.Duration) bool {
	c.body.OnRead = nil
	c.conn.ReadWithin(core.Now(), within)
	n, err := io.CopyN(io.Discard, &c.body, drainLimit)
	return (err == io.EOF || err == nil && c.body.Ended()) && n < drainLimit
}

func (c *client) release() {
	x := c.x
	c.x = nil
	c.conn.Release()
	x.Reset()
	exchanges.Put(x)
}

// lingerFor is how long the next byte is waited for that a client sends though its last request was answered, and lingerMost how long they are read in
// all: clients that send everything before they read anything need as long as their upload takes.
const (
	lingerFor  = 2 * time.Second
	lingerMost = 30 * time.Second
)

// shut closes the connection. Bytes that the client is still sending would make the system throw away what the client has not read
// yet, so they are read for a while (RFC 9112 section 9.6).
func (c *client) shut() {
	if c.early != nil {
		c.conn.Rest()
		return
	}
	if !c.broken && (c.refused || c.conn.Buffered() > 0 || !c.body.Ended() && c.body.Source() != nil) {
		if half, ok := c.conn.NetConn().(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			c.linger()
		}
	}
	c.conn.Close()
}

// linger reads what the client still sends. An end of the server does not wait for it longer than for a byte.
func (c *client) linger() {
	nc, thrown := c.conn.NetConn(), make([]byte, 16<<10)
	for end, ends := time.Now().Add(lingerMost), false; ; {
		next := time.Now().Add(lingerFor)
		if !ends && c.srv.draining.Load() {
			end, ends = next, true
		}
		if end.Before(next) {
			next = end
		}
		_ = nc.SetReadDeadline(next)
		if _, err := nc.Read(thrown); err != nil {
			return
		}
	}
}
