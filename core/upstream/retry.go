package upstream

import (
	"slices"
	"sync/atomic"
)

// RetryOptions say when the status of an answer, or of the failure to get one, is not passed on, but the request made once more.
type RetryOptions struct {
	Attempts int   // most repetitions of one request; 0: none
	Status   []int // of such answers
	Budget   int   // repetitions in a hundred requests, beyond the first few
}

// retries counts repetitions against the budget. It is the same for all generations of an upstream.
type retries struct {
	credit atomic.Int64 // hundredths of a repetition
	total  atomic.Uint64
}

// mostCredit is what a quiet upstream has saved up, in hundredths: ten repetitions, so that single failures are always tried again.
const mostCredit = 10 * 100

func newRetries() *retries {
	r := new(retries)
	r.credit.Store(mostCredit)
	return r
}

// Retries tells whether an answer of that status is one to be tried again, when n repetitions have been made. It charges nothing. While the circuit
// breaker lets nobody through there is no better answer to be had.
func (u *Upstream) Retries(status, n int) bool {
	return n < u.opts.Retry.Attempts && slices.Contains(u.opts.Retry.Status, status) && (!u.opts.Breaker.on() || u.breaker.admits(&u.opts.Breaker))
}

// MayRetry tells whether a request of that method is repeated at all because of what an endpoint answers, and counts it for the budget then.
func (u *Upstream) MayRetry(method string) bool {
	if u.opts.Retry.Attempts == 0 || !Idempotent(method) {
		return false
	}
	if c := &u.retries.credit; c.Load() < mostCredit {
		c.Add(int64(u.opts.Retry.Budget))
	}
	return true
}

// TakeRetry charges a repetition to the budget, and tells false when there is none left: an upstream that fails as a whole is not asked
// twice as often because of it.
func (u *Upstream) TakeRetry() bool {
	if u.retries.credit.Add(-100) < 0 {
		u.retries.credit.Add(100)
		return false
	}
	u.retries.total.Add(1)
	return true
}

// Retried counts the repetitions.
func (u *Upstream) Retried() uint64 { return u.retries.total.Load() }

// Idempotent tells whether a request of that method may be made twice (RFC 9110 section 9.2.2).
func Idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE":
		return true
	}
	return false
}
