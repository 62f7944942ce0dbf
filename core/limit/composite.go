package limit

import "errors"

// All joins limiters of which each must grant: a take is charged to all of them or to none. It is one round trip where all are [Remote] in
// the same Redis. Elsewhere a member may for a moment be charged with what another then refuses, and gets it back: more than allowed is
// never granted.
type All struct {
	members []Limiter
	batch   *batch // nil: one member after the other
}

// NewAll joins members; there must be two at least.
func NewAll(members ...Limiter) (*All, error) {
	if len(members) < 2 {
		return nil, errors.New("all: want at least two limiters")
	}
	return &All{members, batchOf(members, modeAll)}, nil
}

// Take implements Limiter. A refusal is that of the member that makes one wait longest; a grant tells of the member with the least left.
func (a *All) Take(key string, cost int64) Decision {
	if a.batch != nil {
		return strictest(a.batch.take(key, cost))
	}
	if d := a.Peek(key, cost); !d.OK {
		a.refuse(key, cost, d)
		return d
	}
	return a.takeEach(key, cost)
}

func (a *All) takeEach(key string, cost int64) Decision {
	decisions := make([]Decision, 0, 4)
	for i, m := range a.members {
		d := m.Take(key, cost)
		if !d.OK {
			for _, charged := range a.members[:i] {
				charged.Return(key, cost)
			}
			return d
		}
		decisions = append(decisions, d)
	}
	return strictest(decisions)
}

// refuse lets the member count the refusal that made it.
func (a *All) refuse(key string, cost int64, d Decision) {
	for _, m := range a.members {
		if c, ok := m.(interface{ refuse(n uint64) }); ok && m.Peek(key, cost).RetryAfter >= d.RetryAfter {
			c.refuse(1)
			return
		}
	}
}

// Try implements Limiter: it decides when every member does.
func (a *All) Try(key string, cost int64) (d Decision, decided bool) {
	if Waits(a) {
		return Decision{}, false
	}
	return a.Take(key, cost), true
}

// Peek implements Limiter.
func (a *All) Peek(key string, cost int64) Decision {
	if a.batch != nil {
		return strictest(a.batch.peek(key, cost))
	}
	decisions := make([]Decision, 0, 4)
	for _, m := range a.members {
		decisions = append(decisions, m.Peek(key, cost))
	}
	return strictest(decisions)
}

// Return implements Limiter.
func (a *All) Return(key string, cost int64) {
	for _, m := range a.members {
		m.Return(key, cost)
	}
}

// Reset implements Limiter.
func (a *All) Reset(key string) error { return resetAll(a.members, key) }

// strictest is the decision of several of which all must grant.
func strictest(decisions []Decision) Decision {
	d := decisions[0]
	for _, other := range decisions[1:] {
		switch {
		case d.OK != other.OK:
			if !other.OK {
				d = other
			}
		case !d.OK:
			d.Unavailable = d.Unavailable || other.Unavailable
			if other.RetryAfter > d.RetryAfter {
				unavailable := d.Unavailable
				d = other
				d.Unavailable = unavailable
			}
		case other.Remaining < d.Remaining:
			d = other
		}
	}
	return d
}

// First joins limiters of which one must grant: the first with room is charged. 100 a minute, then 200 a minute, passes 300.
type First struct {
	members []Limiter
	batch   *batch
}

// NewFirst joins members; there must be two at least.
func NewFirst(members ...Limiter) (*First, error) {
	if len(members) < 2 {
		return nil, errors.New("first: want at least two limiters")
	}
	return &First{members, batchOf(members, modeFirst)}, nil
}

// Take implements Limiter. Limit and Remaining are those of all members together; a refusal waits for the first that will grant.
func (f *First) Take(key string, cost int64) Decision {
	if f.batch != nil {
		return together(f.batch.take(key, cost))
	}
	decisions := make([]Decision, 0, 4)
	for i, m := range f.members {
		d := m.Take(key, cost)
		decisions = append(decisions, d)
		if d.OK {
			for _, rest := range f.members[i+1:] {
				decisions = append(decisions, rest.Peek(key, 0))
			}
			break
		}
	}
	return together(decisions)
}

// Try implements Limiter.
func (f *First) Try(key string, cost int64) (d Decision, decided bool) {
	if Waits(f) {
		return Decision{}, false
	}
	return f.Take(key, cost), true
}

// Peek implements Limiter.
func (f *First) Peek(key string, cost int64) Decision {
	if f.batch != nil {
		return together(f.batch.peek(key, cost))
	}
	decisions := make([]Decision, 0, 4)
	for _, m := range f.members {
		decisions = append(decisions, m.Peek(key, cost))
	}
	return together(decisions)
}

// Return implements Limiter: the last member that owes gets it back.
func (f *First) Return(key string, cost int64) {
	for i := len(f.members) - 1; i >= 0; i-- {
		if d := f.members[i].Peek(key, 0); d.Remaining < d.Limit {
			f.members[i].Return(key, cost)
			return
		}
	}
}

// Reset implements Limiter.
func (f *First) Reset(key string) error { return resetAll(f.members, key) }

// together is the decision of several of which one must grant.
func together(decisions []Decision) Decision {
	var sum Decision
	sum.RetryAfter = Never
	away := true
	for _, d := range decisions {
		sum.Limit += d.Limit
		sum.Remaining += d.Remaining
		sum.Window = max(sum.Window, d.Window)
		if d.Reset() > sum.Reset() {
			sum.owed, sum.pace = d.owed, d.pace
		}
		away = away && d.Unavailable
		if sum.OK = sum.OK || d.OK; sum.OK {
			sum.RetryAfter = 0
		} else {
			sum.RetryAfter = min(sum.RetryAfter, d.RetryAfter)
		}
	}
	sum.Unavailable = away
	return sum
}

func resetAll(members []Limiter, key string) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.Reset(key))
	}
	return errors.Join(errs...)
}

// Waits tells whether a limiter may have to wait for a store.
func Waits(l Limiter) bool {
	switch l := l.(type) {
	case *All:
		return waitsAny(l.members)
	case *First:
		return waitsAny(l.members)
	case *Tiered:
		return Waits(l.base) || l.lookup != nil
	case *Remote, *Hybrid, *RemoteConcurrency:
		return true
	}
	return false
}

func waitsAny(members []Limiter) bool {
	for _, m := range members {
		if Waits(m) {
			return true
		}
	}
	return false
}
