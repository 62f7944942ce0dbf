package limit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

func TestTakeIsOneRoundTrip(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	p := new(limit.Registry).Plan()
	one := w.declare(t, p, "a", bucketOptions(1, time.Hour, 100))
	w.declare(t, p, "b", bucketOptions(1, time.Hour, 100))
	w.declare(t, p, "q", limit.Options{Kind: limit.KindQuota, Burst: 100, Unit: limit.Month})
	all := w.declare(t, p, "all", limit.Options{Kind: limit.KindAll, Members: []string{"a", "b", "q"}})
	first := w.declare(t, p, "first", limit.Options{Kind: limit.KindFirst, Members: []string{"a", "q"}})
	p.Commit()
	one.Take("warm", 1) // the script is not there yet, and the gateway tells of itself
	redistest.Until(t, "it has told", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.told > 0
	}, func() string { return "" })
	trips := func() int { // without those that tell of the gateway, as it does now and then
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.fake.Seen() - s.told
	}
	for _, l := range []limit.Limiter{one, all, first} {
		before := trips()
		l.Take("k", 1)
		if n := trips() - before; n != 1 {
			t.Errorf("%T: %d round trips", l, n)
		}
	}
}

func TestKeysOfOneCallerShareAServer(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	l := w.limiter(t, bucketOptions(1, time.Hour, 5))
	for _, key := range []string{"ip:10.0.0.1", "}x{", ""} {
		l.Take(key, 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.texts {
		if !strings.HasPrefix(key, "moongate:{") || strings.Count(key, "}") != 1 || !strings.HasSuffix(key, "}:limiter") {
			t.Errorf("key %q", key)
		}
	}
	if _, ok := s.texts["moongate:{ip:10.0.0.1}:limiter"]; !ok {
		t.Errorf("keys %v", s.texts)
	}
}

func TestStateInRedisExpiresWhenItIsFull(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	bucket := w.limiter(t, bucketOptions(1, time.Minute, 5))
	quota := w.limiter(t, limit.Options{Kind: limit.KindQuota, Burst: 5, Unit: limit.Hour})
	bucket.Take("a", 2)
	quota.Take("b", 2)
	if n := s.keys(); n != 2 {
		t.Fatalf("%d keys", n)
	}
	s.clock.forward(2*time.Minute - time.Second)
	if n := s.keys(); n != 2 {
		t.Errorf("%d keys before the bucket is full", n)
	}
	s.clock.forward(2 * time.Second)
	if n := s.keys(); n != 1 {
		t.Errorf("%d keys after the bucket is full", n)
	}
	s.clock.forward(time.Hour)
	if n := s.keys(); n != 0 {
		t.Errorf("%d keys after the window", n)
	}
}

func TestClockOfTheServerThatStepsLocksNobodyOut(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	l := w.limiter(t, bucketOptions(6, time.Minute, 6))
	l.Take("a", 3)
	s.clock.forward(-5 * time.Hour)
	if d := l.Take("a", 1); d.OK || d.RetryAfter > 10*time.Second {
		t.Errorf("after a step back: %+v, want at most one interval", d)
	}
	s.clock.forward(10 * time.Second)
	if d := l.Take("a", 1); !d.OK {
		t.Errorf("an interval later: %+v", d)
	}
	q := w.limiter(t, limit.Options{Kind: limit.KindQuota, Burst: 2, Unit: limit.Hour})
	q.Take("b", 2)
	s.clock.forward(-5 * time.Hour)
	if d := q.Take("b", 1); d.OK || d.RetryAfter > time.Hour {
		t.Errorf("quota after a step back: %+v", d)
	}
	s.clock.forward(time.Hour)
	if d := q.Take("b", 1); !d.OK {
		t.Errorf("quota an hour later: %+v", d)
	}
}

func TestOnStoreErrorDecides(t *testing.T) {
	f := redistest.NewFake(t)
	f.Down()
	log := &syncBuffer{}
	c, err := redis.New("main", redis.Options{Addresses: []string{f.Address}, Timeout: 50 * time.Millisecond}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	for _, hybrid := range []bool{false, true} {
		make := func(policy limit.OnStoreError, gateways int64) limit.Limiter {
			w := world{options: func(*limit.Options) {}}
			return w.limiter(t, limit.Options{Rate: rate(1, 24*time.Hour), Burst: 12, Redis: c, Hybrid: hybrid, OnStoreError: policy, Gateways: gateways})
		}
		open := make(limit.StoreErrorOpen, 1)
		if n := granted(open, "a", 50, 1); n != 50 {
			t.Errorf("open: %d of 50 passed", n)
		}
		closed := make(limit.StoreErrorClosed, 1)
		if d := closed.Take("a", 1); d.OK || !d.Unavailable || d.RetrySeconds() != 1 {
			t.Errorf("closed: %+v", d)
		}
		if n := granted(make(limit.StoreErrorLocal, 1), "a", 50, 1); n != 12 {
			t.Errorf("local, one gateway: %d passed, want 12", n)
		}
		if n := granted(make(limit.StoreErrorLocal, 3), "a", 50, 1); n != 4 {
			t.Errorf("local, three gateways: %d passed, want 4", n)
		}
		u := closed.(limit.Counted).Usage()
		if u.StoreErrors == 0 || u.Refused != 1 {
			t.Errorf("usage %+v", u)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines for one episode:\n%s", n, log)
	}
}

func TestJoinsGoOnWithoutTheirStore(t *testing.T) {
	f := redistest.NewFake(t)
	f.Down()
	c := connect(t, redis.Options{Addresses: []string{f.Address}, Timeout: 50 * time.Millisecond})
	w := world{options: func(o *limit.Options) { o.Redis = c }}
	p := new(limit.Registry).Plan()
	a := w.declare(t, p, "a", bucketOptions(1, 24*time.Hour, 5))
	w.declare(t, p, "b", bucketOptions(1, 24*time.Hour, 3))
	all := w.declare(t, p, "all", limit.Options{Kind: limit.KindAll, Members: []string{"a", "b"}})
	first := w.declare(t, p, "first", limit.Options{Kind: limit.KindFirst, Members: []string{"a", "b"}})
	p.Commit()
	if n := granted(all, "k", 9, 1); n != 3 {
		t.Errorf("all: %d passed, want 3", n)
	}
	if d := a.Peek("k", 0); d.Remaining != 2 {
		t.Errorf("a has %d left, want 2", d.Remaining)
	}
	if n := granted(first, "other", 20, 1); n != 8 {
		t.Errorf("first: %d passed, want 8", n)
	}
}

func TestRedisThatIsFlushedBeginsAnew(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 2))
	l.Take("a", 2)
	s.mu.Lock()
	clear(s.texts)
	clear(s.scripts) // SCRIPT FLUSH as well
	s.mu.Unlock()
	if n := granted(l, "a", 5, 1); n != 2 {
		t.Errorf("%d passed, want 2", n)
	}
}

func TestRedisThatRefusesTheScriptIsAStoreError(t *testing.T) {
	f := redistest.NewFake(t)
	f.Answer(func(args []string) string {
		if strings.HasPrefix(args[0], "EVAL") {
			return "-NOPERM this user has no permissions to run the 'eval' command\r\n"
		}
		return ""
	})
	log := &syncBuffer{}
	c, err := redis.New("main", redis.Options{Addresses: []string{f.Address}, Timeout: time.Minute}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	w := world{options: func(*limit.Options) {}}
	l := w.limiter(t, limit.Options{Rate: rate(1, time.Hour), Burst: 2, Redis: c, OnStoreError: limit.StoreErrorClosed})
	for range 5 {
		if d := l.Take("a", 1); d.OK || !d.Unavailable {
			t.Errorf("%+v", d)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "NOPERM") {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

func TestKeysFromRedisHaveTheirTier(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	s.mu.Lock()
	s.texts["tiers/tom"], s.texts["tiers/ann"], s.texts["tiers/eve"] = "gold", "7/d", "nonsense"
	s.mu.Unlock()
	o := bucketOptions(1, 24*time.Hour, 1)
	o.Tiers, o.KeysFrom = map[string]limit.Terms{"gold": {Rate: rate(5, 24*time.Hour), Burst: 5}}, "tiers"
	l := w.limiter(t, o)
	for key, want := range map[string]int{"tom": 5, "ann": 7, "eve": 1, "bob": 1} {
		if n := granted(l, key, 9, 1); n != want {
			t.Errorf("%s: %d passed, want %d", key, n, want)
		}
	}
}

// syncBuffer is a log that may be written from anywhere.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
