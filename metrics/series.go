package metrics

import (
	"sync/atomic"
	"time"
)

// classes are the values of the label class; a Series counts each on its own.
var classes = [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

// bounds are the upper ends of a histogram's buckets.
type bounds [maxBuckets - 1]time.Duration

const maxBuckets = 14

var (
	requestBounds = bounds{
		500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
		25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 10 * time.Second,
	}
	filterBounds = bounds{
		2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
		100 * time.Microsecond, 250 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond,
		100 * time.Millisecond, time.Second, 10 * time.Second,
	}
)

// histogram counts durations: two atomic additions each. Its total is the sum of its buckets, so no reader sees them differ.
type histogram struct {
	buckets [maxBuckets]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

func (h *histogram) observe(b *bounds, took time.Duration) {
	i := 0
	for i < len(b) && took > b[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(max(took, 0)))
}

func (h *histogram) count() uint64 {
	sum := uint64(0)
	for i := range h.buckets {
		sum += h.buckets[i].Load()
	}
	return sum
}

// Series counts the requests of one route that went to one upstream. Observe may be called by any number of goroutines; a
// series that is gone may still be observed, it only counts for nobody.
type Series struct {
	class [len(classes)]histogram
}

// Observe counts one answer by its status and the time it took, without a look-up and without an allocation. A status that is
// none counts as 5xx.
func (s *Series) Observe(status int, took time.Duration) {
	class := status/100 - 1
	if class < 0 || class >= len(classes) {
		class = len(classes) - 1
	}
	s.class[class].observe(&requestBounds, took)
}

// Filter counts the runs of one script's functions in one stage. It is safe for concurrent use.
type Filter struct {
	time                    histogram
	errors, timeouts, trips atomic.Uint64
}

// Observe counts a run by the time it took, whatever its end.
func (f *Filter) Observe(took time.Duration) { f.time.observe(&filterBounds, took) }

// Error counts a run that ended in an error.
func (f *Filter) Error() { f.errors.Add(1) }

// Timeout counts a run that spent its time budget.
func (f *Filter) Timeout() { f.timeouts.Add(1) }

// Trip counts that the script was put to rest.
func (f *Filter) Trip() { f.trips.Add(1) }

// FilterCounts are what a Filter has counted.
type FilterCounts struct{ Runs, Errors, Timeouts, Trips uint64 }

// Counts reads them.
func (f *Filter) Counts() FilterCounts {
	return FilterCounts{f.time.count(), f.errors.Load(), f.timeouts.Load(), f.trips.Load()}
}
