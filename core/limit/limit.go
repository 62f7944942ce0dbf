// Package limit answers how often: may this key be served now, and if not, when.
//
// A [TokenBucket] holds one bucket for each key. Exactly burst takes pass at once, then one for each 1/rate. Takes from any
// number of goroutines never grant more than that, and never less: they are exact, lock-free and do not allocate. A
// [Registry] keeps limiters by name while generations of the configuration come and go, so that a reload refills nothing.
//
//	bucket, err := limit.NewTokenBucket(limit.Options{Rate: limit.Rate{Count: 5, Per: time.Second}, Burst: 10})
//	if d := bucket.Take(clientIP, 1); !d.OK {
//		retryAfter := d.RetrySeconds()
//	}
//
// The package decides and counts. It never waits, never talks to a network, and never knows what a key means or how a
// refusal is answered.
package limit

import (
	"math"
	"time"
)

// Limiter decides whether a key may be served. Implementations are safe for concurrent use.
type Limiter interface {
	// Take charges cost to key and says whether it was granted; a refused take charges nothing. A cost of 0 asks without
	// charging. A cost that can never be granted, above the limit or below 0, is refused with RetryAfter [Never].
	// The key is not kept: it may be a view of a buffer that is reused after the call.
	Take(key string, cost int64) Decision
}

// Never is the RetryAfter of a take that no waiting will let pass.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one take.
type Decision struct {
	// OK says that the take was granted and charged.
	OK bool
	// Limit is what the key may take at once when it has rested: the burst.
	Limit int64
	// Remaining is what the key could still take at once after this decision, whole tokens only.
	Remaining int64
	// RetryAfter is 0 when granted, else the shortest wait after which the same take passes if nobody else takes from
	// the key meanwhile; exact, rounded up to a nanosecond. [Never] when it cannot pass.
	RetryAfter time.Duration
}

// RetrySeconds gives the value of a Retry-After header (RFC 9110, section 10.2.3): RetryAfter in whole seconds, rounded up,
// at least 1. It is 0 when there is nothing to send: the take was granted, or no waiting helps.
func (d Decision) RetrySeconds() int64 {
	if d.OK || d.RetryAfter == Never {
		return 0
	}
	seconds := int64(d.RetryAfter / time.Second)
	if d.RetryAfter%time.Second != 0 || seconds == 0 {
		seconds++
	}
	return seconds
}
