package luaapi

import (
	"errors"
	"sync"
	"time"

	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// Collect tells a scrape of the VM pools and of what scripts keep, and of their timers.
func (p *Pipeline) Collect(s *metrics.Scrape) {
	for _, st := range p.stages {
		stats := st.pool.Stats()
		s.VMPool(st.name, metrics.Pool{
			Size: stats.Size, Busy: stats.InUse, Acquires: stats.Acquires, Waits: stats.Waits, Waited: stats.Waited,
			Exhausted: stats.Exhausted,
		}, stats.Waiting, retired(stats))
		s.VMWaits(st.name, stats.Outside, stats.Refused)
	}
	for _, f := range p.filters {
		s.Tripped(f.stage, f.name, f.breaker.tripped())
	}
	p.world.shared.Each(func(name string, st store.Stats) {
		s.Shared(name, storeState(st))
	})
	p.world.shared.eachCache(func(filter string, c *filterCache) {
		s.Cache(filter, metrics.Cache{
			Store: storeState(c.values.Stats()), Hits: c.hits.Load(), Misses: c.misses.Load(), Stale: c.stale.Load(), Waited: c.waited.Load(),
			Loaded: c.loaded.Load(), Failed: c.failed.Load(),
		})
	})
	p.world.timers.Each(func(filter string, c *TimerCounts) {
		s.Timers(filter, c.Succeeded.Load(), c.Failed.Load(), c.Skipped.Load())
	})
}

func retired(s vm.Stats) map[string]uint64 {
	by := map[string]uint64{}
	for r := vm.RetiredTimeout; r < vm.Reasons; r++ {
		by[r.String()] = s.Retired[r]
	}
	return by
}

// FilterStatus is what became of a filter so far.
type FilterStatus struct {
	Name, Stage, Script string
	metrics.FilterCounts
	Tripped bool // rests because all it did was fail
}

// Filters tells of the filters that run on some route, in the order of the pipeline.
func (p *Pipeline) Filters() []FilterStatus {
	var list []FilterStatus
	for _, f := range p.filters {
		list = append(list, FilterStatus{Name: f.name, Stage: f.stage, Script: f.script.file, FilterCounts: f.metrics.Counts(), Tripped: f.breaker.tripped()})
	}
	return list
}

// PoolStatus is how a stage's VMs are.
type PoolStatus struct {
	Stage string
	vm.Stats
	Retired map[string]uint64 // by reason
}

// Pools tells of the stages' VMs, in the order of the pipeline.
func (p *Pipeline) Pools() []PoolStatus {
	var list []PoolStatus
	for _, st := range p.stages {
		s := st.pool.Stats()
		list = append(list, PoolStatus{st.name, s, retired(s)})
	}
	return list
}

func storeState(st store.Stats) metrics.Store {
	return metrics.Store{Entries: st.Entries, Bytes: st.Bytes, Capacity: st.Capacity, Evicted: st.Evicted, Expired: st.Expired}
}

// PoolCounters are what the stages' pools count, by stage. They outlive generations, so that a reload takes no count back. The zero value is
// ready; it is safe for concurrent use.
type PoolCounters struct {
	mu      sync.Mutex
	byStage map[string]*vm.Counters
}

func (c *PoolCounters) of(stage string) *vm.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byStage == nil {
		c.byStage = map[string]*vm.Counters{}
	}
	if c.byStage[stage] == nil {
		c.byStage[stage] = new(vm.Counters)
	}
	return c.byStage[stage]
}

// observe counts a run of a filter's function.
func observe(m *metrics.Filter, took time.Duration, err error) {
	m.Observe(took)
	if err == nil {
		return
	}
	m.Error()
	var e *vm.Error
	if errors.As(err, &e) && e.Timeout {
		m.Timeout()
	}
}
