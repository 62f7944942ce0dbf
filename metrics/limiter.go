package metrics

// Limiter is the state of a limiter. Counts are since it was made.
type Limiter struct {
	Keys        int    // in memory
	Refused     uint64 // takes
	Overflowed  uint64 // takes of new keys that had to share
	StoreErrors uint64 // times that its store could not be asked
	Dropped     uint64 // leases that were not fetched ahead
}

// Limiter tells of a limiter.
func (s *Scrape) Limiter(name string, l Limiter) {
	s.gauge(limiterKeys, float64(l.Keys), name)
	s.counter(limiterRefused, float64(l.Refused), name)
	s.counter(limiterOverflowed, float64(l.Overflowed), name)
	s.counter(limiterStoreErrors, float64(l.StoreErrors), name)
	s.counter(limiterDropped, float64(l.Dropped), name)
}
