package upstream_test

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is an endpoint that accepts connections and keeps them.
type peer struct {
	url      string
	accepted chan net.Conn
}

func listen(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{url: "http://" + l.Addr().String(), accepted: make(chan net.Conn, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p.accepted <- nc
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
		for len(p.accepted) > 0 {
			(<-p.accepted).Close()
		}
	})
	return p
}

func options(urls ...string) upstream.Options {
	o := upstream.Options{
		Name: "u", Host: "upstream", Pool: upstream.PoolOptions{Connections: 2, Wait: time.Minute},
		Health: upstream.HealthOptions{Failures: 3, Out: 10 * time.Second, Probes: 1},
	}
	for _, url := range urls {
		o.Endpoints = append(o.Endpoints, upstream.Target{URL: url, Weight: 1})
	}
	return o
}

func open(t *testing.T, o upstream.Options, prev *upstream.Upstream) *upstream.Upstream {
	t.Helper()
	u, err := upstream.New(o, prev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Retire(nil) })
	return u
}

func poolOf(t *testing.T, o upstream.Options) *upstream.Pool {
	u := open(t, o, nil)
	return u.Pool(u.Endpoints()[0])
}

func get(t *testing.T, p *upstream.Pool) *upstream.Conn {
	t.Helper()
	c, err := p.Get(patience, time.Minute, new(core.Lifeline))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// used makes the connection one that has carried an answer with a body.
func used(c *upstream.Conn) *upstream.Conn {
	c.Body.Start(c.Conn, http1.Framing{Length: -1}, new(core.Header))
	return c
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// waiter is a Get under way.
type waiter struct {
	life core.Lifeline
	done chan struct{}
	conn *upstream.Conn
	err  error
}

// wait starts a Get and returns when it waits.
func wait(t *testing.T, p *upstream.Pool) *waiter {
	t.Helper()
	before := p.Stats().Waits
	w := &waiter{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.conn, w.err = p.Get(patience, time.Minute, &w.life)
	}()
	eventually(t, "the Get waits", func() bool { return p.Stats().Waits > before })
	return w
}

func TestTheLastConnectionBackGoesOutFirst(t *testing.T) {
	p := poolOf(t, options(listen(t).url))
	a, b := get(t, p), get(t, p)
	if a.Reused || b.Reused {
		t.Error("a fresh connection counts as used")
	}
	p.Put(used(a))
	p.Put(used(b))
	if c := get(t, p); c != b || !c.Reused {
		t.Error("the pool gave another than the last one back")
	}
	if s := p.Stats(); s.Open != 2 || s.Idle != 1 || s.Dials != 2 || s.Reuses != 1 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAWaiterGetsTheConnectionThatComesBack(t *testing.T) {
	p := poolOf(t, options(listen(t).url))
	a, b := get(t, p), get(t, p)
	first := wait(t, p)
	second := wait(t, p)
	p.Put(used(b))
	<-first.done
	if first.conn != b || !first.conn.Reused {
		t.Errorf("the first waiter got %v, %v", first.conn, first.err)
	}
	p.Discard(a)
	<-second.done
	if second.err != nil || second.conn == nil || second.conn.Reused {
		t.Errorf("the room of a discarded connection was not given on: %v", second.err)
	}
	if s := p.Stats(); s.Open != 2 || s.Waits != 2 || s.Dials+s.Reuses != 4 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAFullPoolIsRefusedAfterTheWait(t *testing.T) {
	o := options(listen(t).url)
	o.Pool = upstream.PoolOptions{Connections: 1, Wait: 30 * time.Millisecond}
	p := poolOf(t, o)
	c := get(t, p)
	began := time.Now()
	if _, err := p.Get(time.Second, time.Minute, new(core.Lifeline)); !errors.Is(err, upstream.ErrPoolFull) || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	p.Put(used(c))
	if s := p.Stats(); s.Exhausted != 1 || s.Idle != 1 {
		t.Errorf("stats are %+v: who gave up must get nothing", s)
	}
}

func TestAFullPoolIsWaitedForNoLongerThanThereIsTime(t *testing.T) {
	o := options(listen(t).url)
	o.Pool = upstream.PoolOptions{Connections: 1, Wait: time.Hour}
	p := poolOf(t, o)
	c := get(t, p)
	if _, err := p.Get(time.Second, 30*time.Millisecond, new(core.Lifeline)); !errors.Is(err, upstream.ErrPoolFull) {
		t.Error(err)
	}
	p.Put(used(c))
}

func TestTheBoundHoldsUnderLoad(t *testing.T) {
	o := options(listen(t).url)
	o.Pool.Connections = 3
	p := poolOf(t, o)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 50 {
				c, err := p.Get(patience, time.Minute, new(core.Lifeline))
				if err != nil {
					t.Error(err)
					return
				}
				if open := p.Stats().Open; open > 3 {
					t.Errorf("%d connections are open", open)
				}
				if i%7 == 6 {
					p.Discard(c)
				} else {
					p.Put(used(c))
				}
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Open != s.Idle || s.Open > 3 {
		t.Errorf("afterwards %+v", s)
	}
}

func TestAClientThatLeavesEndsTheWait(t *testing.T) {
	o := options(listen(t).url)
	o.Pool.Connections = 1
	p := poolOf(t, o)
	c := get(t, p)
	w := wait(t, p)
	w.life.Break()
	<-w.done
	if !errors.Is(w.err, upstream.ErrClientGone) {
		t.Errorf("got %v", w.err)
	}
	next := wait(t, p)
	p.Put(used(c))
	<-next.done
	if next.conn != c {
		t.Error("the place of who left was not given to the next")
	}
	p.Put(used(c))
	var gone core.Lifeline
	gone.Break()
	if s := p.Stats(); s.Open != 1 || s.Idle != 1 || s.Exhausted != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAClientThatHasLeftDialsNothing(t *testing.T) {
	p := poolOf(t, options(listen(t).url))
	var gone core.Lifeline
	gone.Break()
	if _, err := p.Get(time.Second, time.Minute, &gone); !errors.Is(err, upstream.ErrClientGone) {
		t.Errorf("got %v", err)
	}
	if s := p.Stats(); s.Open != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestARefusedDialLeavesItsRoom(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	l.Close()
	p := poolOf(t, options("http://"+l.Addr().String()))
	for range 5 {
		if _, err := p.Get(time.Second, time.Minute, new(core.Lifeline)); err == nil || errors.Is(err, upstream.ErrPoolFull) {
			t.Fatalf("got %v", err)
		}
	}
	if s := p.Stats(); s.Open != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAConnectionThatEndedWhileItRestedIsNotGiven(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":              func(nc net.Conn) { nc.Close() },
		"spoke without a cue": func(nc net.Conn) { _, _ = nc.Write([]byte("HTTP/1.1 408 Request Timeout\r\n\r\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t)
			p := poolOf(t, options(s.url))
			c := get(t, p)
			theirs := <-s.accepted
			defer theirs.Close()
			p.Put(used(c))
			end(theirs)
			time.Sleep(20 * time.Millisecond) // longer than a connection is trusted
			if next := get(t, p); next == c || next.Reused {
				t.Error("the pool gave it again")
			}
			if s := p.Stats(); s.Open != 1 {
				t.Errorf("stats are %+v", s)
			}
		})
	}
}

func TestABodyThatShouldNotHaveComeIsNoAnswerToTheNext(t *testing.T) {
	s := listen(t)
	p := poolOf(t, options(s.url))
	c := get(t, p)
	theirs := <-s.accepted
	defer theirs.Close()
	c.Body.Start(c.Conn, http1.Framing{}, new(core.Header)) // as after HEAD
	p.Put(c)
	_, _ = theirs.Write([]byte("surplus")) // on loopback it has arrived when Write returns
	if next := get(t, p); next == c {
		t.Error("the next request would read it")
	}
}

func TestSweepingClosesWhatHasEnded(t *testing.T) {
	s := listen(t)
	o := options(s.url)
	u := open(t, o, nil)
	p := u.Pool(u.Endpoints()[0])
	a, b := get(t, p), get(t, p)
	theirs := <-s.accepted
	p.Put(used(a))
	p.Put(used(b))
	theirs.Close()
	eventually(t, "one is swept", func() bool {
		u.Sweep(core.Now())
		return p.Stats().Open == 1
	})
	u.Sweep(core.Now().Add(2 * time.Minute))
	if s := p.Stats(); s.Open != 0 || s.Idle != 0 {
		t.Errorf("after two minutes of rest %+v", s)
	}
}

func TestEndpointsThatStayKeepTheirConnectionsOverAReload(t *testing.T) {
	a, b := listen(t), listen(t)
	old := open(t, options(a.url, b.url), nil)
	pa, pb := old.Pool(old.Endpoints()[0]), old.Pool(old.Endpoints()[1])
	ca, cb, busy := get(t, pa), get(t, pb), get(t, pb)
	pa.Put(used(ca))
	pb.Put(used(cb))
	next := open(t, options(listen(t).url, a.url), old)
	next.Commit()
	old.Retire(next)
	if next.Pool(next.Endpoints()[1]) != pa || get(t, pa) != ca {
		t.Error("the connections of the endpoint that stayed were not taken over")
	}
	if s := pb.Stats(); s.Idle != 0 || s.Open != 1 {
		t.Errorf("the endpoint that went has %+v, want its idle connection closed", s)
	}
	late := get(t, pb) // a request that began before the reload
	pb.Put(used(late))
	pb.Put(used(busy))
	if s := pb.Stats(); s.Open != 0 {
		t.Errorf("what came back to a closed pool stays open: %+v", s)
	}
}

func TestWaitersOfAnEndpointThatGoesMayDial(t *testing.T) {
	o := options(listen(t).url)
	o.Pool.Connections = 1
	u := open(t, o, nil)
	p := u.Pool(u.Endpoints()[0])
	c := get(t, p)
	w := wait(t, p)
	u.Retire(nil)
	<-w.done
	if w.err != nil {
		t.Fatalf("got %v", w.err)
	}
	p.Put(used(w.conn))
	p.Put(used(c))
	if s := p.Stats(); s.Open != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestANewBoundHoldsAtOnce(t *testing.T) {
	s := listen(t)
	o := options(s.url)
	o.Pool.Connections = 1
	old := open(t, o, nil)
	p := old.Pool(old.Endpoints()[0])
	a := get(t, p)
	w := wait(t, p)
	o.Pool.Connections = 2
	more := open(t, o, old)
	more.Commit()
	<-w.done
	if w.err != nil {
		t.Fatalf("more room did not reach who waited: %v", w.err)
	}
	o.Pool.Connections = 1
	less := open(t, o, more)
	less.Commit()
	w2 := wait(t, p)
	p.Discard(a)
	if s := p.Stats(); s.Open != 1 {
		t.Errorf("%d connections, want the smaller bound", s.Open)
	}
	p.Put(used(w.conn))
	<-w2.done
	if w2.conn != w.conn {
		t.Error("who waited did not get the connection that stays")
	}
}
