package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/moongate/moongate/core/redis"
)

// Kind is how a limiter counts.
type Kind uint8

// The kinds.
const (
	KindBucket      Kind = iota // Rate and Burst
	KindQuota                   // Burst in each window of Unit, in Zone
	KindConcurrency             // Burst slots
	KindAll                     // all of Members
	KindFirst                   // the first of Members with room
)

// Terms are a rate with its burst, or a quota.
type Terms struct {
	Rate  Rate
	Burst int64
}

// Options are the settings of a limiter. NewTokenBucket looks at Rate, Burst, Ceiling and Clock alone.
type Options struct {
	Kind Kind
	// Rate is how fast buckets fill; above 0 and at most one token a microsecond.
	Rate Rate
	// Burst is the size of a bucket in tokens, the count of a quota, the number of slots; at least 1.
	Burst int64
	// Unit and Zone are the window of a quota; a nil Zone is UTC.
	Unit Unit
	Zone *time.Location
	// Members are the names of the limiters that KindAll and KindFirst join: declared before, and no joins themselves.
	Members []string

	// Tiers are terms by name, for buckets and quotas. Keys give single keys a tier.
	Tiers map[string]Terms
	Keys  map[string]string
	// KeysFrom is a hash in Redis that gives keys a tier by its name, or a rate: "100/s" or "100/s 200" with a burst. "" is none. What
	// it says is kept for a while.
	KeysFrom string

	// Redis keeps the state where other gateways see it; nil: it is kept here. Hybrid takes from there in advance, Lease tokens for a
	// key at a time; 0 is a twentieth of the burst.
	Redis        *redis.Client
	Hybrid       bool
	Lease        int64
	OnStoreError OnStoreError
	// SlotTime is how long Redis holds slots of a gateway that says nothing more; 0 is the constant of that name.
	SlotTime time.Duration
	// Gateways is how many gateways there are at least, by which they share while the store is away; those seen there count too.
	Gateways int64

	// Ceiling bounds the buckets in memory (20 to 27 bytes each); 0 means DefaultCeiling. It is spread evenly over the
	// shards. A key that comes when its shard is at the ceiling, with no bucket full again, shares the shard's
	// overflow bucket with others of its kind: memory and limit hold, such keys are served less.
	Ceiling int
	// Clock gives the time since any fixed moment and never goes back; nil is the system's monotonic clock, also within a bubble of
	// testing/synctest. Wall is the time of the calendar, which may; nil is the system's, or the clock's when there is one.
	Clock func() time.Duration
	Wall  func() time.Time
}

// DefaultCeiling is the number of buckets a limiter holds at most unless its options say otherwise.
const DefaultCeiling = 1 << 20

func (o Options) quota() QuotaOptions {
	wall := o.Wall
	if wall == nil && o.Clock != nil {
		clock := o.Clock
		wall = func() time.Time { return clockEpoch.Add(clock()) }
	}
	return QuotaOptions{Count: o.Burst, Unit: o.Unit, Zone: o.Zone, Ceiling: o.Ceiling, Clock: o.Clock, Wall: wall}
}

// clockEpoch is the calendar's moment at which a clock that was given begins: a Monday, the first of a month.
var clockEpoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// with gives the options with other terms.
func (o Options) with(t Terms) Options {
	o.Rate, o.Burst = t.Rate, t.Burst
	return o
}

// check says what cannot be, without making anything of it.
func (o Options) check() error {
	switch o.Kind {
	case KindConcurrency:
		if o.Hybrid {
			return errors.New("slots are not taken in advance: a limiter of concurrency is not hybrid")
		}
		_, err := NewConcurrency(o.Burst)
		return err
	case KindAll, KindFirst:
		if len(o.Members) < 2 {
			return errors.New("want at least two limiters to join")
		}
		return nil
	}
	for name, t := range o.Tiers {
		if err := o.checkTerms(t); err != nil {
			return fmt.Errorf("tier %q: %w", name, err)
		}
	}
	for key, tier := range o.Keys {
		if _, ok := o.Tiers[tier]; !ok {
			return fmt.Errorf("key %q: there is no tier %q", key, tier)
		}
	}
	return o.checkTerms(Terms{o.Rate, o.Burst})
}

func (o Options) checkTerms(t Terms) error {
	o = o.with(t)
	if o.Redis != nil {
		_, err := newRemote("", newStore(o.Redis), o)
		return err
	}
	if o.Kind == KindQuota {
		quota := o.quota()
		return quota.check()
	}
	_, err := settle(t.Rate, t.Burst)
	return err
}

// build makes the limiter of options for one set of terms.
func (o Options) build(name string, stores *stores) (Limiter, error) {
	switch {
	case o.Kind == KindConcurrency && o.Redis != nil:
		return newRemoteConcurrency(name, stores.store(o.Redis, o.Gateways), o)
	case o.Kind == KindConcurrency:
		return NewConcurrency(o.Burst)
	case o.Redis != nil:
		r, err := newRemote(name, stores.store(o.Redis, o.Gateways), o)
		if err != nil || !o.Hybrid {
			return r, err
		}
		return newHybrid(r, o), nil
	case o.Kind == KindQuota:
		return NewQuota(o.quota())
	}
	return NewTokenBucket(o)
}

// change makes a running limiter follow options that were checked.
func (o Options) change(l Limiter) {
	switch l := l.(type) {
	case *TokenBucket:
		_ = l.Set(o.Rate, o.Burst)
	case *Quota:
		l.Set(o.Burst)
	case *Concurrency:
		l.Set(o.Burst)
	case *RemoteConcurrency:
		l.set(o)
	case *Remote:
		_ = l.set(o)
	case *Hybrid:
		_ = l.set(o)
	}
}

// alike tells whether a limiter of other can go on under o, with other terms.
func (o Options) alike(other Options) bool {
	return o.Kind == other.Kind && o.Unit == other.Unit && zoneName(o.Zone) == zoneName(other.Zone) && o.Redis == other.Redis && o.Hybrid == other.Hybrid &&
		o.KeysFrom == other.KeysFrom
}

func zoneName(z *time.Location) string {
	if z == nil {
		z = time.UTC
	}
	return z.String()
}
