package luaapi

import (
	"errors"
	"time"

	"github.com/moongate/moongate/luaapi/vm"
)

// Metrics is where filters are counted. It is safe for concurrent use.
type Metrics interface {
	// Filter gives the series of a filter, the same for the same names.
	Filter(stage, script string) FilterMetrics
	// Custom gives the series that scripts declare.
	Custom() CustomMetrics
}

// FilterMetrics counts the runs of one filter's functions.
type FilterMetrics interface {
	Ran(took time.Duration)
	Failed()
	TimedOut()
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Filter(string, string) FilterMetrics { return noMetrics{} }
func (noMetrics) Custom() CustomMetrics               { return nil }
func (noMetrics) Ran(time.Duration)                   {}
func (noMetrics) Failed()                             {}
func (noMetrics) TimedOut()                           {}

// counters count one filter's runs.
type counters struct{ to FilterMetrics }

func newCounters(m Metrics, stage, filter string) *counters {
	return &counters{m.Filter(stage, filter)}
}

func (c *counters) observe(took time.Duration, err error) {
	c.to.Ran(took)
	if err == nil {
		return
	}
	var e *vm.Error
	if c.to.Failed(); errors.As(err, &e) && e.Timeout {
		c.to.TimedOut()
	}
}

// CustomMetrics are the series that scripts declare.
type CustomMetrics interface{}
