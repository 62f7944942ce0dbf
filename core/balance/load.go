package balance

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// Load is what an endpoint has to carry: the requests that are under way there, and how long its answers take. It belongs to the endpoint, not
// to a balancer, and outlives reloads. The zero value is that of an endpoint that nobody has asked. It is safe for concurrent use, without
// locks: two that end at the same moment may count as one in the average.
type Load struct {
	active  atomic.Int64
	average atomic.Uint64 // bits of a float64: nanoseconds, as of stamp
	stamp   atomic.Int64  // core.Instant of the last answer
}

// decay is the time in which an answer's weight in the average falls to a third (1/e).
const decay = 10 * time.Second

// What an error counts as, at least and at most: each doubles the average between these two.
const (
	leastPenalty = 10 * time.Millisecond
	mostPenalty  = 5 * time.Second
)

// Enter counts a request as under way; Leave ends it.
func (l *Load) Enter() { l.active.Add(1) }

// Leave ends a request that Enter, or Take, began.
func (l *Load) Leave() { l.active.Add(-1) }

// Active counts the requests under way.
func (l *Load) Active() int64 { return l.active.Load() }

// Answered notes that the head of an answer took so long. Slower than the average replaces it; a faster one pulls it down, the more the longer
// the last one is ago.
func (l *Load) Answered(took time.Duration, now core.Instant) {
	l.update(now, func(average, rest float64) float64 {
		if sample := float64(took); sample < average {
			return average + (sample-average)*(1-rest)
		}
		return float64(took)
	})
}

// Failed notes an error that came after so long, however fast: the average doubles.
func (l *Load) Failed(took time.Duration, now core.Instant) {
	l.update(now, func(average, _ float64) float64 {
		doubled := min(max(2*average, float64(leastPenalty)), float64(mostPenalty))
		return max(float64(took), doubled, average)
	})
}

// Awaited notes that an answer has not come in so long, for a request that ended without one and without a fault of the endpoint.
func (l *Load) Awaited(took time.Duration, now core.Instant) {
	if took > l.Latency(now) {
		l.Answered(took, now)
	}
}

// update gives change the average as it has decayed to now, and how much of it is left of what it was.
func (l *Load) update(now core.Instant, change func(average, rest float64) float64) {
	rest := rest(now.Sub(core.Instant(l.stamp.Swap(int64(now)))))
	for {
		old := l.average.Load()
		fresh := math.Float64bits(change(math.Float64frombits(old)*rest, rest))
		if l.average.CompareAndSwap(old, fresh) {
			return
		}
	}
}

func rest(since time.Duration) float64 {
	return math.Exp(-float64(max(since, 0)) / float64(decay))
}

// Latency is the average as it has decayed to now; 0 before the first answer.
func (l *Load) Latency(now core.Instant) time.Duration { return time.Duration(l.latency(now)) }

func (l *Load) latency(now core.Instant) float64 {
	average := math.Float64frombits(l.average.Load())
	if average == 0 {
		return 0
	}
	return average * rest(now.Sub(core.Instant(l.stamp.Load())))
}

// unknown is the cost of a request at an endpoint that is asked for the first time and has not answered.
const unknown = 1 << 62

// cost is what one more request would have to wait, more or less.
func (l *Load) cost(now core.Instant) float64 {
	active := float64(l.active.Load())
	average := l.latency(now)
	if average == 0 && active > 0 {
		return unknown * active
	}
	return average * (active + 1)
}
