package main

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// heapCeiling is how many bytes may live on the heap before the scripts' VMs have to leave; half of GOMEMLIMIT where that is set.
const heapCeiling = 512 << 20

// guardHeap keeps scripts from filling the process. What a script piles up in its file-level tables lives as long as its VM, so when too
// much lives, all VMs are replaced, each when it is next given back. It looks until ctx ends.
func (s *scripting) guardHeap(ctx context.Context) {
	ceiling := uint64(heapCeiling)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		ceiling = uint64(limit) / 2
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for seen, over := uint64(0), false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		live, cycle := sample[0].Value.Uint64(), sample[1].Value.Uint64()
		if cycle == seen { // nothing new is known
			continue
		}
		was := over
		if seen, over = cycle, live > ceiling; !over {
			continue
		}
		if p := s.live.Load(); p != nil {
			p.Retire()
		}
		if !was {
			s.log.Warn("heap over its ceiling, Lua VMs are replaced", "live_bytes", live, "ceiling_bytes", ceiling)
		}
	}
}
