package core

import "time"

var processStart = time.Now()

// Instant is a monotonic time in nanoseconds since the process started. 0 means never.
type Instant int64

// Now reads the monotonic clock.
func Now() Instant { return Instant(time.Since(processStart)) + 1 }

// Add moves an instant by d.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub is the time from o to t.
func (t Instant) Sub(o Instant) time.Duration { return time.Duration(t - o) }

// Wall is the instant as the wall clock showed it, by the offset that held when the process started.
func (t Instant) Wall() time.Time { return processStart.Add(time.Duration(t)) }
