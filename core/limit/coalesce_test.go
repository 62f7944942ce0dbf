package limit_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// hold makes a simulator keep its answers to scripts back until release is called.
func hold(s *simulator) (release func()) {
	held := make(chan struct{})
	s.fake.Answer(func(args []string) string {
		<-held
		return s.answer(args)
	})
	return sync.OnceFunc(func() { close(held) })
}

// manyAtOnce takes so often at the same time, while Redis gives no answer, and then lets it answer. It gives the number granted.
func manyAtOnce(s *simulator, takes int, take func(i int) bool) int64 {
	release := hold(s)
	var passed atomic.Int64
	var begun, done sync.WaitGroup
	for i := range takes {
		begun.Add(1)
		done.Go(func() {
			begun.Done()
			if take(i) {
				passed.Add(1)
			}
		})
	}
	begun.Wait()
	release()
	done.Wait()
	return passed.Load()
}

func TestTakesAtTheSameTimeShareRoundTrips(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 150))
	l.Take("warm", 1)
	before := s.fake.Seen()
	n := manyAtOnce(s, 400, func(i int) bool { return l.Take("key "+strconv.Itoa(i%2), 1).OK })
	if n != 300 {
		t.Errorf("%d passed, want 150 of each key", n)
	}
	if trips := s.fake.Seen() - before; trips > 200 {
		t.Errorf("%d round trips for 400 takes at once", trips)
	}
	if n := s.keys(); n != 3 {
		t.Errorf("%d keys", n)
	}
}

func TestJoinsAndLeasesShareRoundTrips(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	p := new(limit.Registry).Plan()
	w.declare(t, p, "a", bucketOptions(1, 24*time.Hour, 60))
	w.declare(t, p, "b", bucketOptions(1, 24*time.Hour, 40))
	quota := w.declare(t, p, "q", limit.Options{Kind: limit.KindQuota, Burst: 70, Unit: limit.Month})
	all := w.declare(t, p, "all", limit.Options{Kind: limit.KindAll, Members: []string{"a", "b"}})
	first := w.declare(t, p, "first", limit.Options{Kind: limit.KindFirst, Members: []string{"b", "q"}})
	p.Commit()
	hybrid := bucketOptions(1, 24*time.Hour, 100)
	hybrid.Hybrid, hybrid.Lease = true, 1
	leases := w.limiter(t, hybrid)
	var passed [4]atomic.Int64
	manyAtOnce(s, 800, func(i int) bool {
		l := []limit.Limiter{all, first, quota, leases}[i%4]
		ok := l.Take("k", 1).OK
		if ok {
			passed[i%4].Add(1)
		}
		return ok
	})
	if n := passed[0].Load() + passed[1].Load() + passed[2].Load(); n != 40+70 {
		t.Errorf("%d, %d, %d passed, want 40 of b and 70 of the quota", passed[0].Load(), passed[1].Load(), passed[2].Load())
	}
	if n := passed[3].Load(); n != 100 {
		t.Errorf("%d passed with leases of one, want 100", n)
	}
}

func TestOneKeyUnderTwoTermsAtTheSameTime(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	o := bucketOptions(1, 24*time.Hour, 500)
	o.Tiers = map[string]limit.Terms{"gold": {Rate: rate(7, 24*time.Hour), Burst: 1000}}
	l := w.limiter(t, o).(*limit.Tiered)
	gold := l.Tier("gold")
	n := manyAtOnce(s, 200, func(i int) bool {
		if i%2 == 0 {
			return gold.Take("k", 1).OK
		}
		return l.Take("k", 1).OK
	})
	if n != 200 {
		t.Errorf("%d of 200 passed", n)
	}
	if d := gold.Peek("k", 0); d.Remaining != 800 {
		t.Errorf("%d left, want 800: what is owed under one rate is owed under another", d.Remaining)
	}
}

func TestClusterBehindOneAddressIsAskedForEachCaller(t *testing.T) {
	s := newSimulator(t)
	w := s.world(t, "")
	l := w.limiter(t, bucketOptions(1, 24*time.Hour, 3))
	l.Take("warm", 1)
	held := make(chan struct{})
	var crossed atomic.Int64
	s.fake.Answer(func(args []string) string {
		<-held
		if strings.HasPrefix(args[0], "EVAL") {
			if n, _ := strconv.Atoi(args[2]); n > 1 {
				crossed.Add(1)
				return "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
			}
		}
		return s.answer(args)
	})
	var passed atomic.Int64
	var begun, takers sync.WaitGroup
	for i := range 200 {
		begun.Add(1)
		takers.Go(func() {
			begun.Done()
			if l.Take("key "+strconv.Itoa(i%50), 1).OK {
				passed.Add(1)
			}
		})
	}
	begun.Wait()
	close(held)
	takers.Wait()
	if passed.Load() != 150 || crossed.Load() == 0 {
		t.Errorf("%d passed, want 3 of each of 50 keys; it refused %d runs", passed.Load(), crossed.Load())
	}
	before := crossed.Load()
	manyAtOnce(s, 100, func(i int) bool { return l.Take("other "+strconv.Itoa(i), 1).OK })
	if n := crossed.Load() - before; n != 0 {
		t.Errorf("%d more runs with keys of several servers", n)
	}
}

func TestSilentRedisHoldsNobodyBack(t *testing.T) {
	f := redistest.NewFake(t)
	log := &syncBuffer{}
	c, err := redis.New("main", redis.Options{Addresses: []string{f.Address}, Timeout: 100 * time.Millisecond}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	w := world{options: func(o *limit.Options) { o.Redis = c }}
	o := bucketOptions(1, 24*time.Hour, 1000)
	o.OnStoreError = limit.StoreErrorClosed
	l := w.limiter(t, o)
	redistest.Until(t, "it is there", func() bool { _, err := c.Do("PING"); return err == nil }, func() string { return "" })
	f.Silence(true)
	var takers sync.WaitGroup
	for i := range 2000 {
		takers.Go(func() {
			if d := l.Take(strconv.Itoa(i), 1); d.OK || !d.Unavailable {
				t.Errorf("%+v", d)
			}
		})
	}
	takers.Wait()
	if n := f.Seen(); n > 200 {
		t.Errorf("%d runs were sent to a Redis that answers nothing", n)
	}
	if n := l.(limit.Counted).Usage().StoreErrors; n != 2000 {
		t.Errorf("%d store errors counted, want 2000", n)
	}
	if text := log.String(); strings.Contains(text, "refuses") {
		t.Errorf("it said nothing, and the log says\n%s", text)
	}
}

// TestQuestionsTogetherAreAnsweredAsOneAfterTheOther runs the script itself: what it makes of many questions at one moment is what it makes of
// them one by one.
func TestQuestionsTogetherAreAnsweredAsOneAfterTheOther(t *testing.T) {
	text, err := os.ReadFile("remote.lua")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	together, single := newSimulator(t), newSimulator(t)
	now := together.epoch.UnixMilli()
	terms := [][]string{{"b", "1000", "7", "3", "0"}, {"b", "1", "5000000", "4", "0"}, {"b", "999983", "1000", "9", "0"},
		{"q", "5", itoa(now), itoa(now + 2000), itoa(now + 4000)}}
	modes := []string{"all", "all", "all", "first", "peek", "back", "lease"}
	for round := range 300 {
		step := time.Duration(random.IntN(2_000_000)) * time.Microsecond
		together.clock.forward(step)
		single.clock.forward(step)
		var keys, of, said []string
		for i := range 1 + random.IntN(5) {
			keys, of = append(keys, fmt.Sprintf("k%d", i)), append(of, strconv.Itoa(1+(i+round/100)%len(terms))) // their terms change now and then
		}
		head := append([]string{strconv.Itoa(len(terms))}, slices.Concat(terms...)...)
		head = append(head, of...)
		var want []string
		for range 1 + random.IntN(12) {
			mode := modes[random.IntN(len(modes))]
			about := random.Perm(len(keys))
			if mode == "back" || mode == "lease" || random.IntN(3) > 0 {
				about = about[:1]
			}
			question := []string{mode, strconv.Itoa(len(about))}
			for _, i := range about {
				question = append(question, strconv.Itoa(i+1), strconv.Itoa(random.IntN(7)))
			}
			question = append(question, strconv.Itoa(1+random.IntN(2)))
			said = append(said, question...)
			want = append(want, numbers(single.run(string(text), slices.Concat([]string{strconv.Itoa(len(keys))}, keys, head, question)))...)
		}
		got := numbers(together.run(string(text), slices.Concat([]string{strconv.Itoa(len(keys))}, keys, head, said)))
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, %v of %v: together\n%v, one by one\n%v", round, said, of, got, want)
		}
		for _, key := range keys {
			if text := together.texts[key]; text != single.texts[key] || text != "" && together.expires[key] != single.expires[key] {
				t.Fatalf("round %d, %s: together %q, one by one %q", round, key, together.texts[key], single.texts[key])
			}
		}
	}
}

// numbers are the items of an answer that is a list.
func numbers(answer string) []string {
	lines := strings.Fields(answer)
	if len(lines) == 0 || lines[0][0] != '*' {
		return []string{answer}
	}
	return lines[1:]
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
