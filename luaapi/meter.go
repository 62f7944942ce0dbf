package luaapi

import (
	"errors"
	"sync"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// Collect tells a scrape of the VM pools.
func (p *Pipeline) Collect(s *metrics.Scrape) {
	for _, st := range p.stages {
		stats := st.pool.Stats()
		s.VMPool(st.name, metrics.Pool{
			Size: stats.Size, Busy: stats.InUse, Acquires: stats.Acquires, Waits: stats.Waits, Waited: stats.Waited,
			Exhausted: stats.Exhausted,
		}, stats.Waiting, retired(stats))
	}
	for _, f := range p.filters {
		s.Tripped(f.stage, f.name, f.breaker.tripped())
	}
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
