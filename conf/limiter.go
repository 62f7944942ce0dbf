package conf

// Limiter is a named token bucket that scripts and filters share by its name.
type Limiter struct {
	Pos   Pos
	Name  string
	Rate  Rate
	Burst int64 // at least 1; when it is not written, the count of the rate
}

// Equal tells whether two limiters say the same, wherever they stand.
func (l Limiter) Equal(other Limiter) bool { return same(l, other) }

// MaxBurst is the largest burst of a limiter.
const MaxBurst = 1_000_000_000

var limiterSection = section[Limiter]{
	custom("rate", func(b *binder, key string, v Value, l *Limiter) {
		if r, ok := b.rate(key, v); ok {
			l.Rate = r
		}
	}),
	custom("burst", func(b *binder, key string, v Value, l *Limiter) {
		if n, ok := b.integer(key, v, 1, MaxBurst); ok {
			l.Burst = n
		}
	}),
}

// rate takes a rate out of a value: a number per second or a text such as "5/s".
func (b *binder) rate(key string, v Value) (Rate, bool) {
	r, err := v.Rate()
	if err != nil {
		b.errs.Add(v.Pos, key, "%s", err)
	}
	return r, err == nil
}

// bindLimiters reads [limiter.NAME].
func (b *binder) bindLimiters(key string, v Value, c *Config) {
	all, ok := b.table(key, v)
	if !ok {
		return
	}
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		t, ok := b.table(path, v)
		if !ok {
			continue
		}
		if wrong := displayName(name); wrong != "" {
			b.errs.Add(v.Pos, path, "%s", wrong)
		}
		l := Limiter{Pos: t.Pos, Name: name}
		for _, setting := range []string{"key", "limiter", "stage", "enabled"} {
			if v, ok := t.Get(setting); ok {
				b.errs.Add(v.Pos, join(path, setting), "belongs to the filter that uses the limiter: a limiter has rate and burst")
			}
		}
		limiterSection.bind(b, path, t.without([]string{"key", "limiter", "stage", "enabled"}), &l)
		b.checkLimiter(path, &l)
		c.Limiters = append(c.Limiters, l)
	}
}

func (b *binder) checkLimiter(path string, l *Limiter) {
	if !b.written(path + ".rate") {
		b.errs.Add(l.Pos, path, `has no rate: write rate = "5/s"`)
	}
	if l.Rate.Count == 0 {
		return
	}
	if !b.written(path + ".burst") {
		l.Burst = min(l.Rate.Count, MaxBurst)
	}
	if l.Burst == 0 {
		return
	}
	if err := l.Rate.Check(l.Burst); err != nil {
		b.errs.Add(b.where(path+".burst", l.Pos), path, "%s", err)
	}
}
