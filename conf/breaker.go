package conf

import "time"

// Breaker is when an upstream that fails as a whole is not asked for a while. What counts as a failure is what counts for Health.
type Breaker struct {
	Pos      Pos
	Failures int           // so many in a row open it; 0: any number
	Errors   int           // so many in a hundred requests within Window open it; 0: any
	Window   time.Duration // over which Errors are counted
	Minimum  int           // requests within Window before Errors counts
	Open     time.Duration // for so long
	Probes   int           // requests at once that try it afterwards
}

func defaultBreaker() Breaker {
	return Breaker{Window: 10 * time.Second, Minimum: 20, Open: 10 * time.Second, Probes: 1}
}

var breakerSection = section[Breaker]{
	integer("failures", func(b *Breaker) *int { return &b.Failures }, 0, 1<<31-1),
	integer("errors", func(b *Breaker) *int { return &b.Errors }, 0, 100),
	duration("window", func(b *Breaker) *time.Duration { return &b.Window }, shortest, longest),
	integer("minimum", func(b *Breaker) *int { return &b.Minimum }, 1, 1<<31-1),
	duration("open", func(b *Breaker) *time.Duration { return &b.Open }, shortest, longest),
	integer("probes", func(b *Breaker) *int { return &b.Probes }, 1, 65536),
}

// checkBreaker warns of settings that nothing comes of.
func (b *binder) checkBreaker(path string, r *Breaker) {
	written := func(keys ...string) bool {
		for _, key := range keys {
			if b.written(path + "." + key) {
				return true
			}
		}
		return false
	}
	if r.Failures == 0 && r.Errors == 0 {
		if !written("failures", "errors") && written("window", "minimum", "open", "probes") {
			b.warn.Add(r.Pos, path, "never opens: write errors = 50, or failures = 20, or take it away")
		}
		return
	}
	if r.Errors == 0 && written("window", "minimum") {
		b.warn.Add(r.Pos, path, "window and minimum belong to errors, which is not set: write errors = 50, or take them away")
	}
}
