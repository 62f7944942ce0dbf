package limit

// Usage is what a limiter holds and has done.
type Usage struct {
	Keys        int    // in memory, those not yet forgotten included
	Refused     uint64 // takes
	Overflowed  uint64 // takes of new keys that had to share, because memory was at the ceiling
	StoreErrors uint64 // times that the store could not be asked
	Dropped     uint64 // leases that were not fetched ahead, because too many were being fetched
}

// Counted is a limiter that knows its usage.
type Counted interface{ Usage() Usage }

func (u *Usage) add(v Usage) {
	u.Keys += v.Keys
	u.Refused += v.Refused
	u.Overflowed += v.Overflowed
	u.StoreErrors += v.StoreErrors
	u.Dropped += v.Dropped
}

func usageOf(l Limiter) Usage {
	if c, ok := l.(Counted); ok {
		return c.Usage()
	}
	return Usage{}
}

// Usage implements Counted. A join has no state: its members count.
func (a *All) Usage() Usage { return Usage{} }

// Usage implements Counted. A join has no state: its members count.
func (f *First) Usage() Usage { return Usage{} }

// Usage implements Counted.
func (b *TokenBucket) Usage() Usage {
	return Usage{Keys: b.Len(), Refused: b.Refused(), Overflowed: b.Overflowed()}
}

func (b *TokenBucket) refuse(n uint64) { b.never.Add(n) }

func (q *Quota) refuse(n uint64) { q.refused.Add(n) }
