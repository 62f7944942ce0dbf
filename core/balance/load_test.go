package balance

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/core"
)

// Time of these tests: the moment at which the endpoints were made, and later ones.
const start core.Instant = 1

func after(d time.Duration) core.Instant { return start.Add(d) }

func TestLatencyRisesAtOnceAndFallsSlowly(t *testing.T) {
	var l Load
	l.Answered(10*time.Millisecond, start)
	if got := l.Latency(start); got != 10*time.Millisecond {
		t.Fatalf("after the first answer it is %s", got)
	}
	l.Answered(time.Second, after(time.Millisecond))
	if got := l.Latency(after(time.Millisecond)); got != time.Second {
		t.Fatalf("after a slow answer it is %s", got)
	}
	l.Answered(10*time.Millisecond, after(2*time.Millisecond))
	if got := l.Latency(after(2 * time.Millisecond)); got < 900*time.Millisecond || got >= time.Second {
		t.Fatalf("one fast answer made it %s", got)
	}
	now := 2 * time.Millisecond
	for range 1000 {
		now += 100 * time.Millisecond
		l.Answered(10*time.Millisecond, after(now))
	}
	if got := l.Latency(after(now)); got < 9*time.Millisecond || got > 12*time.Millisecond {
		t.Errorf("after fast answers for 100 s it is %s", got)
	}
}

func TestLatencyDecaysWhileNobodyAsks(t *testing.T) {
	var l Load
	l.Answered(time.Second, start)
	if got := l.Latency(after(decay)); got < 367*time.Millisecond || got > 368*time.Millisecond { // 1/e
		t.Errorf("after the time of decay it is %s", got)
	}
	if got := l.Latency(after(time.Hour)); got > time.Millisecond {
		t.Errorf("after an hour it is %s", got)
	}
}

func TestErrorsDoNotLookFast(t *testing.T) {
	var l Load
	for i := range 30 {
		before := l.Latency(after(time.Duration(i) * time.Microsecond))
		l.Failed(50*time.Microsecond, after(time.Duration(i)*time.Microsecond))
		got := l.Latency(after(time.Duration(i) * time.Microsecond))
		if got < leastPenalty || got < before || got > mostPenalty {
			t.Fatalf("error %d made it %s of %s", i, got, before)
		}
	}
	if got := l.Latency(after(30 * time.Microsecond)); got < mostPenalty*9/10 {
		t.Errorf("nothing but errors made it %s", got)
	}
	l.Failed(8*time.Second, after(time.Second))
	if got := l.Latency(after(time.Second)); got != 8*time.Second {
		t.Errorf("an error that took 8 s made it %s", got)
	}
}

func TestWhoNeverAnsweredCountsOnlyUpwards(t *testing.T) {
	var l Load
	l.Answered(100*time.Millisecond, start)
	l.Awaited(time.Millisecond, start)
	if got := l.Latency(start); got != 100*time.Millisecond {
		t.Errorf("a client that left at once made it %s", got)
	}
	l.Awaited(time.Second, start)
	if got := l.Latency(start); got != time.Second {
		t.Errorf("a client that gave up after a second made it %s", got)
	}
}

// TestLatencyIsNoFurtherThanWhatWasSeen holds the average to the samples that went into it, whatever their order.
func TestLatencyIsNoFurtherThanWhatWasSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var l Load
		most, now := time.Duration(0), start
		for range 50 {
			now = now.Add(time.Duration(r.Int64N(int64(3 * time.Second))))
			took := time.Duration(r.Int64N(int64(time.Second)))
			most = max(most, took)
			l.Answered(took, now)
			if got := l.Latency(now); got < 0 || got > most {
				t.Fatalf("%s of samples up to %s", got, most)
			}
		}
	}
}

func TestLeastConnKeepsRequestsUnderWayEven(t *testing.T) {
	list, carried := endpoints(3, 1, 2), loads(3)
	b := NewLeastConn(carried)
	for n := 1; n <= 600; n++ {
		b.Take(list, "")
		for i, one := range list {
			for j, other := range list {
				// nobody was given a request when another had fewer for its weight
				if (carried[i].Active()-1)*int64(other.Weight) > carried[j].Active()*int64(one.Weight) {
					t.Fatalf("after %d requests endpoint %d has %d, endpoint %d has %d", n, i, carried[i].Active(), j, carried[j].Active())
				}
			}
		}
	}
	if a, b, c := carried[0].Active(), carried[1].Active(), carried[2].Active(); a != 300 || b != 100 || c != 200 {
		t.Errorf("600 requests under way are %d %d %d", a, b, c)
	}
}

func TestLeastConnIsExactUnderConcurrency(t *testing.T) {
	list, carried := endpoints(1, 1, 1, 1), loads(4)
	b := NewLeastConn(carried)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				b.Take(list, "")
			}
		})
	}
	wg.Wait()
	for i, l := range carried {
		if l.Active() != 1000 {
			t.Errorf("endpoint %d has %d of 4000", i, l.Active())
		}
	}
}

func TestLeastConnAsksAnotherThanWhoHoldsRequests(t *testing.T) {
	list, carried := endpoints(1, 1), loads(2)
	b := NewLeastConn(carried)
	carried[0].Enter() // a WebSocket, say
	for range 10 {
		e := b.Take(list, "")
		if e.Index != 1 {
			t.Fatal("asked who has more")
		}
		carried[1].Leave()
	}
	if got := b.Take(list[:1], ""); got.Index != 0 {
		t.Error("asked who was not offered")
	}
}

// p2c plays so many requests one after the other, each of which takes what times says, and counts them.
func p2c(list []*core.Endpoint, n int, times ...time.Duration) []int {
	carried := loads(len(list))
	b := NewP2CEWMA(carried)
	count := make([]int, len(list))
	for range n {
		e := b.Take(list, "")
		count[e.Index]++
		time.Sleep(times[e.Index])
		carried[e.Index].Answered(times[e.Index], core.Now())
		carried[e.Index].Leave()
	}
	return count
}

func TestP2CPrefersWhoAnswersSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		count := p2c(endpoints(1, 1, 1), 3000, 2*ms, 2*ms, 50*ms)
		if count[2] > 100 || count[2] == 0 || count[0] < 800 || count[1] < 800 {
			t.Errorf("the slow third got %v", count)
		}
	})
}

func TestP2CTriesAnEndpointAgainThatWasSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, carried := endpoints(1, 1), loads(2)
		b := NewP2CEWMA(carried)
		carried[0].Answered(time.Second, core.Now())
		carried[1].Answered(time.Millisecond, core.Now())
		for range 1000 { // for 100 s
			e := b.Take(list, "")
			if carried[e.Index].Leave(); e.Index == 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
			carried[1].Answered(time.Millisecond, core.Now())
		}
		t.Error("it was never asked again")
	})
}

func TestP2CAsksANewEndpointOnceUntilItHasAnswered(t *testing.T) {
	list, carried := endpoints(1, 1), loads(2)
	b := NewP2CEWMA(carried)
	carried[0].Answered(time.Second, core.Now())
	if e := b.Take(list, ""); e.Index != 1 {
		t.Fatal("who was never asked is not asked")
	}
	for range 20 {
		if e := b.Take(list, ""); e.Index == 1 {
			t.Fatal("the herd follows before the first answer")
		}
	}
	carried[1].Answered(time.Millisecond, core.Now())
	if e := b.Take(list, ""); e.Index != 1 {
		t.Error("who is fast is not asked")
	}
}

func TestP2CCountsRequestsUnderWayByWeight(t *testing.T) {
	list, carried := endpoints(3, 1), loads(2)
	b := NewP2CEWMA(carried)
	now := core.Now()
	for _, l := range carried {
		l.Answered(10*time.Millisecond, now)
	}
	for range 400 {
		b.Take(list, "")
	}
	if n := carried[1].Active(); n < 80 || n > 120 {
		t.Errorf("of 400 requests under way the one of weight 1 has %d", n)
	}
}

// Where nobody has answered yet, as when all that is asked is slow, requests under way are all that is known: they do not all go to the same one.
func TestP2CSpreadsByWeightBeforeAnybodyHasAnswered(t *testing.T) {
	for _, weights := range [][]int{{3, 1}, {1, 1}} {
		list, carried := endpoints(weights...), loads(2)
		b := NewP2CEWMA(carried)
		for range 400 {
			b.Take(list, "")
		}
		want := int64(400 / (weights[0] + weights[1]))
		if n := carried[1].Active(); n < want-20 || n > want+20 {
			t.Errorf("of 400 requests under way the last of weights %v has %d", weights, n)
		}
	}
}

func TestLoadIsSafeForAll(t *testing.T) {
	var l Load
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				l.Enter()
				l.Answered(time.Millisecond, core.Now())
				l.Failed(time.Millisecond, core.Now())
				l.Awaited(time.Millisecond, core.Now())
				if l.Latency(core.Now()) < 0 {
					t.Error("less than nothing")
				}
				l.Leave()
			}
		})
	}
	wg.Wait()
	if l.Active() != 0 {
		t.Errorf("%d are left", l.Active())
	}
}
