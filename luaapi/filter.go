package luaapi

import (
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi/vm"
	"github.com/moongate/moongate/metrics"
)

// script is one live file: what its table said when it was tried.
type script struct {
	name      string // without .lua
	file      string // as it stands in errors
	path      string
	source    string
	code      *vm.Script
	stage     string
	order     float64
	onError   string // as conf has it; "": the script does not say
	onTimeout string
	schema    *schema
	identity  []string
	has       [functions]bool
	leaves    bool // its functions of chunks leave bodies as they are
}

// The functions of a script's table.
const (
	onRequest = iota
	onResponse
	onLog
	onInit
	onRequestChunk
	onResponseChunk
	functions
)

var functionNames = [functions]string{"on_request", "on_response", "on_log", "init", "on_request_chunk", "on_response_chunk"}

// filter is one instance of a script.
type filter struct {
	name   string
	stage  string
	script *script
	index  int // of its script in the stage
	order  float64

	goesOn     bool // after an error
	goesOnLate bool // after a function that spent its time budget

	breaker breaker
	metrics *metrics.Filter
	caches  map[*settings]*cacheHandle // complete once the pipeline is built
}

// handle is the filter's cache under some settings.
func (f *filter) handle(set *settings) *cacheHandle {
	h := f.caches[set]
	if h == nil {
		if f.caches == nil {
			f.caches = map[*settings]*cacheHandle{}
		}
		h = &cacheHandle{filter: f.name, origin: set.origin}
		f.caches[set] = h
	}
	return h
}

// turn is a filter on a route: what its functions run with.
type turn struct {
	filter   *filter
	settings *settings
	limiter  limit.Limiter // of ROUTE/FILTER or as its settings name it; nil: none
	limits   string        // the limiter's name
	key      limitBy       // by what it counts unless the script says
	cache    *cacheHandle
}

// loaded is a script in a VM.
type loaded struct {
	ready  bool
	fn     [functions]*lua.LFunction
	timers []timerDeclaration // of the file itself
}

// breaker stops asking a filter that does nothing but fail: after so many failures in a row over so much time it rests for a while, and
// is then tried with one request at a time until one succeeds. A filter that serves any request in between is left alone, however many it
// fails. A try that tells nothing lets the next come after another rest.
type breaker struct {
	failures atomic.Int32
	first    atomic.Int64 // Instant of the first failure in the row
	until    atomic.Int64 // Instant until which it rests; 0: it does not
}

const (
	breakerFailures = 10
	breakerSpan     = time.Second
	breakerPause    = 5 * time.Second
)

// admits tells whether the filter may run now.
func (b *breaker) admits(now core.Instant) bool {
	until := b.until.Load()
	return until == 0 || int64(now) >= until && b.until.CompareAndSwap(until, int64(now.Add(breakerPause)))
}

// tripped tells whether the filter rests, or is being tried.
func (b *breaker) tripped() bool { return b.until.Load() != 0 }

func (b *breaker) succeeded() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
		b.until.Store(0)
	}
}

// failed tells whether this failure is the one that trips the filter.
func (b *breaker) failed(now core.Instant) bool {
	n := b.failures.Add(1)
	if n == 1 {
		b.first.Store(int64(now))
	}
	if n < breakerFailures || now.Sub(core.Instant(b.first.Load())) < breakerSpan {
		return false
	}
	return b.until.Swap(int64(now.Add(breakerPause))) == 0
}
