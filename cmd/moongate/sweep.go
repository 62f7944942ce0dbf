package main

import (
	"context"
	"time"
)

// sweepLimits forgets the keys of limiters that are as good as new, for as long as ctx lasts: after a flood of keys its memory is given
// back within a minute of their buckets being full.
func (s *scripting) sweepLimits(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.limits.Sweep()
		}
	}
}
