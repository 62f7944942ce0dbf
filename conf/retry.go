package conf

import (
	"fmt"
	"slices"
)

// Retry is when an answer of an endpoint, or the failure to get one, is not passed on, but the request made once more, at another endpoint when
// there is one. Requests that never reached an endpoint are offered to the next one anyway.
type Retry struct {
	Pos      Pos
	Attempts int   // most repetitions of a request because of a status; 0: none
	Status   []int // those that are not passed on; 502 and 504 also stand for answers that did not come
	Budget   int   // repetitions in a hundred requests that may be repeated, beyond the first ten
}

func defaultRetry() Retry { return Retry{Status: []int{502, 503, 504}, Budget: 20} }

var retrySection = section[Retry]{
	integer("attempts", func(r *Retry) *int { return &r.Attempts }, 0, 10),
	custom("status", (*binder).bindRetryStatus),
	integer("budget", func(r *Retry) *int { return &r.Budget }, 1, 100),
}

// checkRetry warns of settings for repetitions that nobody has asked for.
func (b *binder) checkRetry(path string, r *Retry) {
	if !b.written(path+".attempts") && (b.written(path+".status") || b.written(path+".budget")) {
		b.warn.Add(r.Pos, path, "repeats nothing: write attempts = 1, or take it away")
	}
}

func (b *binder) bindRetryStatus(key string, v Value, r *Retry) {
	items, ok := v.V.([]Value)
	if !ok {
		b.wants(key, v, "a list of status codes such as [503]")
		return
	}
	if r.Status = nil; len(items) == 0 {
		b.errs.Add(v.Pos, key, "is empty: write the statuses that are worth another try, such as [503], or attempts = 0")
	}
	for i, item := range items {
		code, ok := b.integer(fmt.Sprintf("%s[%d]", key, i), item, 400, 599)
		switch {
		case !ok:
		case slices.Contains(r.Status, int(code)):
			b.errs.Add(item.Pos, key, "%d stands twice in the list", code)
		default:
			r.Status = append(r.Status, int(code))
		}
	}
}
