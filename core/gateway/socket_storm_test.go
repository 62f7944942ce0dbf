package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/server/h2test"
)

// moody is an upstream of WebSockets that echoes, dies in the middle of a frame or at once, or says goodbye, as it is told.
func moody(nc net.Conn) {
	r := bufio.NewReader(nc)
	if _, err := accepts(nc, r, ""); err != nil {
		return
	}
	for {
		first, payload, _, err := readFrame(r)
		if err != nil {
			return
		}
		switch string(payload) {
		case "die":
			_ = nc.(*net.TCPConn).SetLinger(0)
			return
		case "half":
			_, _ = nc.Write([]byte{fin | opText, 100, 'h', 'a', 'l', 'f'})
			return
		case "bye":
			first, payload = fin|opClose, []byte{3, 232}
		}
		if _, err := nc.Write(frame(first, payload, nil)); err != nil || first == fin|opClose {
			return
		}
	}
}

// sailor is one WebSocket in the storm.
type sailor struct {
	t   *testing.T
	rng *rand.Rand
	s   *h2test.Stream
	r   *bufio.Reader
}

func (c *sailor) say(first byte, payload []byte) {
	_, _ = c.s.Write(frame(first, payload, []byte{1, 2, 3, byte(c.rng.IntN(256))}))
}

// sail says a few things and ends one way or another. What comes back is right as long as it comes.
func (c *sailor) sail() {
	for range c.rng.IntN(4) {
		payload := bytes.Repeat([]byte{byte('a' + c.rng.IntN(26))}, 4+c.rng.IntN(1<<uint(c.rng.IntN(18))))
		go c.say(fin|opBin, payload)
		wantFrame(c.t, c.r, fin|opBin, payload)
	}
	ends := [...]func(){
		func() { _ = c.s.Reset(http2.ErrCodeCancel) },
		func() { c.say(fin|opBin, make([]byte, 100_000)); _ = c.s.Reset(http2.ErrCodeCancel) },
		func() { c.ending(func() { _ = c.s.CloseWrite() }, false) },
		func() { c.ending(func() { c.say(fin|opClose, []byte{3, 232}) }, false) },
		func() { c.ending(func() { c.say(fin|opText, []byte("bye")) }, false) },
		func() { c.ending(func() { c.say(fin|opText, []byte("die")) }, true) },
		func() { c.ending(func() { c.say(fin|opText, []byte("half")) }, true) },
	}
	ends[c.rng.IntN(len(ends))]()
}

// ending does something upon which the stream comes to its end, which is a reset or not.
func (c *sailor) ending(do func(), reset bool) {
	do()
	for {
		if _, err := c.r.ReadByte(); err != nil {
			if isReset(err) != reset {
				c.t.Errorf("the stream ended with %v, want a reset: %v", err, reset)
			}
			return
		}
	}
}

func TestAStormOfSocketsOverHTTP2LeavesNothingBehind(t *testing.T) {
	url := scripted(t, moody)
	h := open(t, sockets(url))
	const connections, together, rounds = 4, 8, 6
	var fleet sync.WaitGroup
	for i := range connections {
		conn := h.dial2()
		for j := range together {
			fleet.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for range rounds {
					s, err := conn.Connect("/chat")
					if err != nil || s.Status() != 200 {
						t.Errorf("status %d, %v", s.Status(), err)
						return
					}
					(&sailor{t: t, rng: rng, s: s, r: bufio.NewReader(patiently{s})}).sail()
				}
			})
		}
	}
	for i := range 10 {
		h.write(fmt.Sprintf("%s[[route]]\nname = \"other-%d\"\npath = \"/other/%d\"\nupstream = \"http://127.0.0.1:1\"\n", sockets(url), i, i))
		if _, err := h.Reload(); err != nil {
			t.Error(err)
		}
	}
	fleet.Wait()
	h.wantMetric(`moongate_upgrade_open_connections{route="all"} 0`)
	eventually(t, "nothing is in flight", func() bool { return h.Server().InFlight() == 0 })
}

// falling is a stage that panics where it is told.
type falling struct{ logging }

func (s falling) Stages(*core.Route) []core.Stage { return []core.Stage{s} }
func (s falling) Request(x *core.Exchange) (*core.Reply, error) {
	if string(x.Request.RawQuery) == "request" {
		panic("a fault")
	}
	return nil, nil
}
func (s falling) Log(x *core.Exchange) {
	if string(x.Request.RawQuery) == "log" {
		panic("a fault")
	}
}

func TestAPanicEndsOneSocketOverHTTP2(t *testing.T) {
	url, _, gone := echoer(t)
	h := open(t, sockets(url), func(o *gateway.Options) {
		o.Pipeline = func(gateway.Parts) (gateway.Built, error) {
			return gateway.Built{Pipeline: falling{logging{make(chan string, 10)}}}, nil
		}
	})
	c := h.dial2()
	kept := h.connect(c)
	if s, err := c.Connect("/chat?request"); !isReset(err) {
		t.Errorf("status %d, %v", s.Status(), err)
	}
	s, err := c.Connect("/chat?log")
	if err != nil || s.Status() != 200 {
		t.Fatalf("status %d, %v", s.Status(), err)
	}
	_ = s.CloseWrite()
	<-gone
	eventually(t, "one is in flight", func() bool { return h.Server().InFlight() == 1 })
	_, _ = kept.Write(frame(fin|opText, []byte("still here"), []byte{1, 2, 3, 4}))
	wantFrame(t, bufio.NewReader(kept), fin|opText, []byte("still here"))
}
