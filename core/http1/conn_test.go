package http1

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core"
)

// ends are the two ends of a connection in memory: ours, and the peer's.
func ends(t *testing.T) (*Conn, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return NewConn(ours), theirs
}

func TestALimitIsExactThoughItsDeadlineIsLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := ends(t)
		c.ReadWithin(core.Now(), 10*time.Second)
		go io.WriteString(peer, "x")
		if err := c.Await(); err != nil {
			t.Fatal(err)
		}
		c.r = c.w
		time.Sleep(9 * time.Second) // the armed deadline is one second away, the next limit ten
		began := time.Now()
		c.ReadWithin(core.Now(), 10*time.Second)
		if err := c.Await(); !errors.Is(err, ErrTimeout) || time.Since(began).Round(time.Millisecond) != 10*time.Second {
			t.Errorf("%v after %s, want a timeout after 10s", err, time.Since(began))
		}
		began = time.Now()
		c.ReadWithin(core.Now(), time.Second)
		if err := c.Await(); !errors.Is(err, ErrTimeout) || time.Since(began).Round(time.Millisecond) != time.Second {
			t.Errorf("%v after %s, want a timeout after 1s: a shorter limit holds at once", err, time.Since(began))
		}
	})
}

func TestIdleReadsEndAtTheHardLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := ends(t)
		began := time.Now()
		c.ReadIdle(2*time.Second, core.Now().Add(5*time.Second))
		go func() {
			for range 4 {
				time.Sleep(time.Second)
				_, _ = io.WriteString(peer, "x")
			}
		}()
		var b [1]byte
		for {
			if _, err := c.readBody(b[:]); err != nil {
				if took := time.Since(began).Round(time.Millisecond); !errors.Is(err, ErrTimeout) || took != 5*time.Second {
					t.Errorf("%v after %s, want a timeout after 5s", err, took)
				}
				break
			}
		}
	})
}

func TestAnInterruptedReadEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := ends(t)
		c.ReadIdle(time.Minute, 0)
		began := time.Now()
		var read atomic.Bool
		go func() {
			_, err := c.readBody(make([]byte, 1))
			read.Store(errors.Is(err, ErrTimeout))
		}()
		synctest.Wait()
		c.Interrupt()
		synctest.Wait()
		if !read.Load() || time.Since(began) != 0 {
			t.Error("the read did not end")
		}
		if _, err := c.readBody(make([]byte, 1)); !errors.Is(err, ErrTimeout) {
			t.Errorf("a read after it gave %v", err)
		}
	})
}

func TestASlowReaderIsNotADeadOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := ends(t)
		c.WriteIdle(10 * time.Second)
		go func() {
			var b [1]byte
			for range 20 {
				time.Sleep(9 * time.Second)
				_, _ = peer.Read(b[:])
			}
		}()
		if n, err := c.Write(make([]byte, 20)); err != nil || n != 20 {
			t.Errorf("a byte every nine of ten seconds: wrote %d, %v", n, err)
		}
		began := time.Now()
		if _, err := c.Write(make([]byte, 20)); !errors.Is(err, ErrTimeout) || time.Since(began).Round(time.Millisecond) != 10*time.Second {
			t.Errorf("no byte: %v after %s", err, time.Since(began))
		}
	})
}

func TestFieldsOutliveTheirConnectionWhenDetached(t *testing.T) {
	large := strings.Repeat("v", 3000)
	first := "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nX: " + large + "\r\n\r\n" + strings.Repeat("b", 5000)
	c, w := connOf(first, 0)
	var r core.Response
	head, err := c.ReadResponseHead(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseResponse(head, "GET", &r)
	if err != nil {
		t.Fatal(err)
	}
	var body BodyReader
	body.Start(c, f, &r.Body.Trailer)
	if _, err := io.Copy(io.Discard, &body); err != nil {
		t.Fatal(err)
	}
	held := c.Detach()
	w.data = []byte(strings.ReplaceAll(strings.ReplaceAll(first, "v", "w"), "b", "c"))
	var next core.Response
	if head, err = c.ReadResponseHead(64 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err = ParseResponse(head, "GET", &next); err != nil {
		t.Fatal(err)
	}
	if got := string(r.Header.Get("X")); got != large {
		t.Errorf("the field changed to %.20q", got)
	}
	held.Release()
	c.Close()
}
