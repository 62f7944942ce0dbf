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
		})
	}
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
