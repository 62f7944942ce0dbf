package http1

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// beats are what a client does: after each pause it moves some bytes.
type beats []struct {
	pause time.Duration
	bytes int
	times int
}

func (b beats) play(move func(n int) bool) {
	for _, beat := range b {
		for range beat.times {
			time.Sleep(beat.pause)
			if !move(beat.bytes) {
				return
			}
		}
	}
}

// ending is how a message went: nil, ErrTimeout or "slow", and when.
type ending struct {
	slow, idle bool
	after      time.Duration
}

func endingOf(err error, began time.Time) ending {
	e := ending{after: time.Since(began).Round(time.Millisecond)}
	slow, ok := errors.AsType[*SlowError](err)
	e.slow = ok && slow.Rate == 100 && errors.Is(err, ErrTimeout)
	e.idle = !ok && errors.Is(err, ErrTimeout)
	return e
}

var hundred = Pace{Idle: 30 * time.Second, Rate: 100, Grace: 5 * time.Second}

func TestABodyMayBeLateByItsGraceAndNoMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		pace  Pace
		beats beats
		eased bool
		want  ending
	}{
		{"nothing comes", hundred, nil, false, ending{slow: true, after: 5 * time.Second}},
		{"a byte a second", hundred, beats{{time.Second, 1, 1000}}, false, ending{slow: true, after: 6060 * time.Millisecond}},
		{"a little less than asked", hundred, beats{{time.Second, 90, 1000}}, false, ending{slow: true, after: 51900 * time.Millisecond}},
		{"as much as asked", hundred, beats{{time.Second, 100, 200}}, false, ending{after: 200 * time.Second}},
		{"as much as asked, in large pieces", hundred, beats{{4500 * time.Millisecond, 450, 100}}, false, ending{after: 450 * time.Second}},
		{"what was fast may pause", hundred, beats{{0, 4000, 4}, {14 * time.Second, 4000, 5}}, false, ending{after: 70 * time.Second}},
		{"but not for ever", hundred, beats{{0, 4000, 4}, {16 * time.Second, 4000, 1}}, false, ending{slow: true, after: 15 * time.Second}},
		{"the answer has begun", hundred, beats{{20 * time.Second, 1, 5}}, true, ending{after: 100 * time.Second}},
		{"and then nothing comes", hundred, nil, true, ending{idle: true, after: 30 * time.Second}},
		{"no pace is asked", Pace{Idle: 30 * time.Second, Grace: 5 * time.Second}, beats{{20 * time.Second, 1, 5}}, false, ending{after: 100 * time.Second}},
		{"a grace longer than a read may take", Pace{Idle: 2 * time.Second, Rate: 100, Grace: 5 * time.Second}, nil, false, ending{idle: true, after: 2 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := ends(t)
				var player sync.WaitGroup
				player.Go(func() {
					c.beats.play(func(n int) bool {
						_, err := peer.Write(make([]byte, n))
						return err == nil
					})
					if !c.want.slow && !c.want.idle {
						peer.Close()
					}
				})
				conn.Pace(&c.pace)
				if c.eased {
					conn.EaseReads()
				}
				began := time.Now()
				buf := make([]byte, 1<<10)
				var err error
				for err == nil {
					_, err = conn.readBody(buf)
				}
				if got := endingOf(err, began); got != c.want {
					t.Errorf("%v: %+v, want %+v", err, got, c.want)
				}
				peer.Close()
				player.Wait()
			})
		})
	}
}

func TestABodyIsEasedWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := ends(t)
		conn.Pace(&hundred)
		began := time.Now()
		time.AfterFunc(time.Second, conn.EaseReads)
		if _, err := conn.readBody(make([]byte, 1)); errors.As(err, new(*SlowError)) || time.Since(began).Round(time.Millisecond) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// slack is what the check of a write's pace may come late.
const slack = 1250 * time.Millisecond

func TestAnAnswerIsReadAtItsPaceOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		pace  Pace
		size  int
		beats beats
		want  ending
	}{
		{"nothing is taken", hundred, 100, nil, ending{slow: true, after: 5 * time.Second}},
		{"a byte a second", hundred, 1000, beats{{time.Second, 1, 1000}}, ending{slow: true, after: 5 * time.Second}},
		{"more than asked", hundred, 20_000, beats{{time.Second, 200, 100}}, ending{after: 100 * time.Second}},
		{"what was fast may pause", hundred, 20_000, beats{{0, 10_000, 1}, {14 * time.Second, 10_000, 1}}, ending{after: 14 * time.Second}},
		{"but not for ever", hundred, 20_000, beats{{0, 10_000, 1}}, ending{slow: true, after: 15 * time.Second}},
		{"no pace is asked", Pace{Idle: 30 * time.Second, Grace: 5 * time.Second}, 5, beats{{20 * time.Second, 1, 5}}, ending{after: 100 * time.Second}},
		{"a grace longer than a write may stand still", Pace{Idle: 2 * time.Second, Rate: 100, Grace: 5 * time.Second}, 10, nil, ending{idle: true, after: 2 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := ends(t)
				var player sync.WaitGroup
				player.Go(func() {
					c.beats.play(func(n int) bool {
						_, err := io.ReadFull(peer, make([]byte, n))
						return err == nil
					})
				})
				conn.Pace(&c.pace)
				began := time.Now()
				n, err := conn.Write(make([]byte, c.size))
				got := endingOf(err, began)
				if late := got.after - c.want.after; got.slow != c.want.slow || got.idle != c.want.idle || late < 0 || late > slack {
					t.Errorf("%d bytes, %v: %+v, want %+v", n, err, got, c.want)
				}
				peer.Close()
				player.Wait()
			})
		})
	}
}

// TestASmallAnswerHasNoPace: what fits into the kernel's buffers is written, whoever reads it; a stream with nothing to say is never slow.
func TestAQuietStreamIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := ends(t)
		go io.Copy(io.Discard, peer)
		conn.Pace(&hundred)
		for range 100 {
			time.Sleep(time.Minute)
			if _, err := conn.Write([]byte("event")); err != nil {
				t.Fatal(err)
			}
		}
		peer.Close()
	})
}

func TestAnotherMessageHasItsOwnGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := ends(t)
		for range 3 {
			go func() {
				time.Sleep(4 * time.Second)
				_, _ = peer.Write([]byte("x"))
				time.Sleep(4 * time.Second)
				_, _ = peer.Write([]byte("x"))
			}()
			conn.Pace(&hundred)
			for range 2 {
				if _, err := conn.readBody(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestMovedBodiesHaveAPaceToo has bodies that go from socket to socket in the kernel.
func TestMovedBodiesHaveAPaceToo(t *testing.T) {
	quick := Pace{Idle: time.Minute, Rate: 1 << 20, Grace: 100 * time.Millisecond}
	t.Run("a sender in drops", func(t *testing.T) {
		p := newPassage(t, 1<<20, "early")
		p.from.Pace(&quick)
		go io.Copy(io.Discard, p.receiver)
		go drip(p.sender)
		_, err := p.send()
		if read := new(ReadError); !errors.As(err, &read) || !errors.As(err, new(*SlowError)) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a reader that takes nothing", func(t *testing.T) {
		p := newPassage(t, 64<<20, "early")
		p.to.Pace(&quick)
		go feed(p.sender, 64<<20)
		_, err := p.send()
		if !errors.As(err, new(*SlowError)) || errors.As(err, new(*ReadError)) {
			t.Errorf("%v", err)
		}
	})
}

func drip(nc net.Conn) {
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := nc.Write([]byte("x")); err != nil {
			return
		}
	}
}

func feed(nc net.Conn, n int) {
	for piece := make([]byte, 64<<10); n > 0; n -= len(piece) {
		if _, err := nc.Write(piece); err != nil {
			return
		}
	}
}
