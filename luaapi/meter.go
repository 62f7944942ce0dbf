package luaapi

import (
	"errors"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// Collect tells a scrape of the VM pools.
func (p *Pipeline) Collect(s *metrics.Scrape) {
	for _, st := range p.stages {
		stats := st.pool.Stats()
		s.VMPool(st.name, metrics.Pool{
			Size: stats.Size, Busy: stats.InUse, Acquires: stats.Acquires, Waits: stats.Waits, Exhausted: stats.Exhausted,
		})
	}
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
