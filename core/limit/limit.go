// Package limit answers how often: may this key be served now, and if not, when.
//
// A [TokenBucket] holds one bucket for each key. Exactly burst takes pass at once, then one for each 1/rate. Takes from any
// number of goroutines never grant more than that, and never less: they are exact, lock-free and do not allocate. A [Quota] counts by the
// calendar, a [Concurrency] what is under way; [All] and [First] join limiters; [Tiered] gives keys rates of their own. A [Remote] keeps
// its state in Redis, where all gateways see it, a [RemoteConcurrency] its slots, and a [Hybrid] takes from there in advance. A [Registry] keeps limiters by name while
// generations of the configuration come and go, so that a reload refills nothing.
//
//	bucket, err := limit.NewTokenBucket(limit.Options{Rate: limit.Rate{Count: 5, Per: time.Second}, Burst: 10})
//	if d := bucket.Take(clientIP, 1); !d.OK {
//		retryAfter := d.RetrySeconds()
//	}
//
// The package decides and counts. It never knows what a key means or how a refusal is answered, and waits for nothing but Redis.
package limit

import (
	"math"
	"time"
)

// Limiter decides whether a key may be served. Implementations are safe for concurrent use and keep no key that they are given: it may
// be a view of a buffer that is reused after the call.
type Limiter interface {
	// Take charges cost to key and says whether it was granted; a refused take charges nothing. A cost of 0 asks without
	// charging. A cost that can never be granted, above the limit or below 0, is refused with RetryAfter [Never].
	// It waits for a store that is asked through a network, for as long as the store's time limit at most.
	Take(key string, cost int64) Decision
	// Try is Take when it can be decided without waiting; else decided is false and nothing has happened.
	Try(key string, cost int64) (d Decision, decided bool)
	// Peek says what Take would, and charges nothing.
	Peek(key string, cost int64) Decision
	// Return gives back what a granted take has charged, because it was not used. It never gives a key more than it has taken.
	Return(key string, cost int64)
	// Reset makes a key as good as new. The error says that the store could not be asked.
	Reset(key string) error
}

// Never is the RetryAfter of a take that no waiting will let pass.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one take.
type Decision struct {
	// OK says that the take was granted and charged.
	OK bool
	// Unavailable says that it was refused because the store could not be asked: the caller is not to blame.
	Unavailable bool
	// Limit is what the key may take at once when it has rested: the burst, the quota, the slots.
	Limit int64
	// Remaining is what the key could still take at once after this decision, whole tokens only.
	Remaining int64
	// RetryAfter is 0 when granted, else the shortest wait after which the same take passes if nobody else takes from
	// the key meanwhile; exact, rounded up to a nanosecond. [Never] when it cannot pass. Nobody knows when a slot of a
	// [Concurrency] will be given back: there it is a second.
	RetryAfter time.Duration
	// Window is the time in which a limit's worth comes anew: how long an empty bucket fills, how long a calendar window is.
	// It is 0 for slots.
	Window time.Duration

	owed, pace int64 // Reset is owed/pace nanoseconds, which most callers do not ask for
}

// Reset is how long from now the key is as good as new: its bucket full, its window over.
func (d Decision) Reset() time.Duration {
	if d.owed <= 0 || d.pace <= 0 {
		return 0
	}
	return time.Duration((d.owed-1)/d.pace + 1)
}

// RetrySeconds gives the value of a Retry-After header (RFC 9110, section 10.2.3): RetryAfter in whole seconds, rounded up,
// at least 1. It is 0 when there is nothing to send: the take was granted, or no waiting helps.
func (d Decision) RetrySeconds() int64 {
	if d.OK || d.RetryAfter == Never {
		return 0
	}
	return max(1, Seconds(d.RetryAfter))
}

// Seconds is a duration in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
