package metrics

// Store is the state of a store of values. Counts are since it was made.
type Store struct {
	Entries         int
	Bytes, Capacity int64
	Evicted         uint64 // forgotten because it was full
	Expired         uint64
}

// Shared tells of a store that scripts share.
func (s *Scrape) Shared(store string, st Store) { s.store(&sharedStore, st, store) }

// Cache is the state of a filter's cache.
type Cache struct {
	Store
	Hits, Misses, Stale, Waited uint64 // look-ups, by how they ended
	Loaded, Failed              uint64 // runs of loaders
}

// Cache tells of what a filter keeps.
func (s *Scrape) Cache(script string, c Cache) {
	s.store(&cacheStore, c.Store, script)
	s.counter(cacheLookups, float64(c.Hits), script, "hit")
	s.counter(cacheLookups, float64(c.Misses), script, "miss")
	s.counter(cacheLookups, float64(c.Stale), script, "stale")
	s.counter(cacheLookups, float64(c.Waited), script, "wait")
	s.counter(cacheLoads, float64(c.Loaded), script, "success")
	s.counter(cacheLoads, float64(c.Failed), script, "failure")
}

// Timers tells of the runs of a filter's timers.
func (s *Scrape) Timers(script string, succeeded, failed, skipped uint64) {
	s.counter(timerRuns, float64(succeeded), script, "success")
	s.counter(timerRuns, float64(failed), script, "failure")
	s.counter(timerRuns, float64(skipped), script, "skipped")
}

func (s *Scrape) store(f *storeFamily, st Store, name string) {
	s.gauge(f.entries, float64(st.Entries), name)
	s.gauge(f.bytes, float64(st.Bytes), name)
	s.gauge(f.capacity, float64(st.Capacity), name)
	s.counter(f.evicted, float64(st.Evicted), name)
	s.counter(f.expired, float64(st.Expired), name)
}
