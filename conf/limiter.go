package conf

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// What a limiter does when its store cannot be asked.
const (
	StoreErrorLocal  = "local"
	StoreErrorOpen   = "open"
	StoreErrorClosed = "closed"
)

// Limiter is a named rule of how often, which scripts and filters share by its name. It is of one of five kinds: a token bucket (Rate), a
// quota by the calendar (Quota), so many at once (Concurrency), or others joined (All, First).
type Limiter struct {
	Pos         Pos
	Name        string
	Rate        Rate
	Burst       int64 // at least 1; when it is not written, the count of the rate
	Quota       Quota
	Zone        string // IANA name of the calendar's zone; "": UTC
	Concurrency int64
	All         []string
	First       []string

	Redis        string // name of the [redis.NAME] that keeps the state; "": this process does
	Hybrid       bool   // tokens are taken from there in advance
	Lease        int64  // so many; 0: a twentieth of the burst
	OnStoreError string // StoreErrorLocal, StoreErrorOpen or StoreErrorClosed
	Gateways     int    // how many there are at least
	MaxKeys      int    // in memory

	Tiers     []Tier
	Keys      []KeyTier // with those of KeysFile
	KeysFile  File
	KeysRedis string // name of a hash in Redis; "": none
}

// Tier is a rate by name, for some of a limiter's keys.
type Tier struct {
	Pos   Pos
	Name  string
	Rate  Rate
	Burst int64
	Quota int64 // of a limiter with a quota, in its window
}

// String gives the tier in one line.
func (t Tier) String() string {
	if t.Quota > 0 {
		return fmt.Sprintf("%s %d", t.Name, t.Quota)
	}
	return fmt.Sprintf("%s %s burst %d", t.Name, t.Rate, t.Burst)
}

// KeyTier gives one key a tier.
type KeyTier struct {
	Pos  Pos
	Key  string
	Tier string
}

// String gives both.
func (k KeyTier) String() string { return k.Key + " " + k.Tier }

// Equal tells whether two limiters say the same, wherever they stand.
func (l Limiter) Equal(other Limiter) bool { return same(l, other) }

// Joins tells whether the limiter is of others.
func (l *Limiter) Joins() bool { return len(l.All)+len(l.First) > 0 }

// MaxBurst is the largest burst of a limiter.
const MaxBurst = 1_000_000_000

const (
	maxQuota    = 1 << 52
	maxKeys     = 1 << 27
	maxGateways = 10_000
)

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
	custom("quota", func(b *binder, key string, v Value, l *Limiter) {
		if text, ok := b.text(key, v, quota); ok {
			l.Quota, _ = ParseQuota(text)
		}
	}),
	text("zone", func(l *Limiter) *string { return &l.Zone }, timeZone),
	custom("concurrency", func(b *binder, key string, v Value, l *Limiter) {
		if n, ok := b.integer(key, v, 1, MaxBurst); ok {
			l.Concurrency = n
		}
	}),
	list("all", func(l *Limiter) *[]string { return &l.All }),
	list("first", func(l *Limiter) *[]string { return &l.First }),
	text("redis", func(l *Limiter) *string { return &l.Redis }, notEmpty),
	boolean("hybrid", func(l *Limiter) *bool { return &l.Hybrid }),
	custom("lease", func(b *binder, key string, v Value, l *Limiter) {
		if n, ok := b.integer(key, v, 1, MaxBurst); ok {
			l.Lease = n
		}
	}),
	oneOf("on_store_error", func(l *Limiter) *string { return &l.OnStoreError }, StoreErrorLocal, StoreErrorOpen, StoreErrorClosed),
	integer("gateways", func(l *Limiter) *int { return &l.Gateways }, 1, maxGateways),
	integer("max_keys", func(l *Limiter) *int { return &l.MaxKeys }, 64, maxKeys),
	custom("tiers", (*binder).bindTiers, "NAME"),
	custom("keys", (*binder).bindKeys, "NAME"),
	file("keys_file", func(l *Limiter) *File { return &l.KeysFile }),
	text("keys_redis", func(l *Limiter) *string { return &l.KeysRedis }, notEmpty),
}

func defaultLimiter() Limiter {
	return Limiter{OnStoreError: StoreErrorLocal, Gateways: 1, MaxKeys: 1 << 20}
}

var tierSection = section[Tier]{
	custom("rate", func(b *binder, key string, v Value, t *Tier) {
		if r, ok := b.rate(key, v); ok {
			t.Rate = r
		}
	}),
	custom("burst", func(b *binder, key string, v Value, t *Tier) {
		if n, ok := b.integer(key, v, 1, MaxBurst); ok {
			t.Burst = n
		}
	}),
	custom("quota", func(b *binder, key string, v Value, t *Tier) {
		if n, ok := b.integer(key, v, 1, maxQuota); ok {
			t.Quota = n
		}
	}),
}

// Quota is Count in each window of the calendar. The zero value is none.
type Quota struct {
	Count  int64
	Window string // "minute", "hour", "day", "week" or "month"
}

// String gives the form in which it is written.
func (q Quota) String() string {
	if q.Count == 0 {
		return ""
	}
	return strconv.FormatInt(q.Count, 10) + "/" + q.Window
}

// ParseQuota reads "1000/month": the windows are minute, hour, day, week and month, the count is at least 1.
func ParseQuota(text string) (Quota, error) {
	number, window, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	switch window {
	case "minute", "hour", "day", "week", "month":
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || number[0] == '+' {
		return Quota{}, fmt.Errorf(`%q is no quota: write "1000/day"; the windows are minute, hour, day, week and month`, shorten(text))
	}
	if n < 1 || n > maxQuota {
		return Quota{}, fmt.Errorf("a quota of %d is out of bounds: it is from 1 to %d", n, int64(maxQuota))
	}
	return Quota{n, window}, nil
}

func quota(text string) string {
	if _, err := ParseQuota(text); err != nil {
		return err.Error()
	}
	return ""
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
	b.named(key, v, func(path, name string, t *Table) {
		l := defaultLimiter()
		l.Pos, l.Name = t.Pos, name
		for _, setting := range []string{"key", "limiter", "stage", "enabled"} {
			if v, ok := t.Get(setting); ok {
				b.errs.Add(v.Pos, join(path, setting), "belongs to the filter that uses the limiter: a limiter says how often")
			}
		}
		limiterSection.bind(b, path, t.without([]string{"key", "limiter", "stage", "enabled"}), &l)
		b.checkLimiter(path, &l)
		c.Limiters = append(c.Limiters, l)
	})
}

// bindTiers reads [limiter.NAME.tiers]: names with a rate, or a table of rate and burst, or of quota.
func (b *binder) bindTiers(key string, v Value, l *Limiter) {
	all, _ := b.table(key, v)
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		t := Tier{Pos: v.Pos, Name: name}
		if table, ok := v.V.(*Table); ok {
			tierSection.bind(b, path, table, &t)
		} else if r, ok := b.rate(path, v); ok {
			t.Rate = r
		}
		if wrong := displayName(name); wrong != "" {
			b.errs.Add(v.Pos, path, "%s", wrong)
		}
		l.Tiers = append(l.Tiers, t)
	}
}

// bindKeys reads [limiter.NAME.keys]: keys with the name of a tier, or with a rate.
func (b *binder) bindKeys(key string, v Value, l *Limiter) {
	all, _ := b.table(key, v)
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		if tier, ok := b.text(path, v, notEmpty); ok {
			l.Keys = append(l.Keys, KeyTier{v.Pos, name, tier})
		}
	}
}

// checkLimiter holds the settings of one limiter against each other.
func (b *binder) checkLimiter(path string, l *Limiter) {
	var kinds []string
	for _, kind := range []string{"rate", "quota", "concurrency", "all", "first"} {
		if b.written(path + "." + kind) {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) == 0:
		b.errs.Add(l.Pos, path, `has no rate: write rate = "5/s", or quota = "1000/day", concurrency = 10, all = [...] or first = [...]`)
		return
	case len(kinds) > 1:
		b.errs.Add(b.pos[path+"."+kinds[1]], path+"."+kinds[1], "stands beside %s: a limiter is of one kind; join several with all or first", kinds[0])
		return
	}
	b.checkFits(path, kinds[0])
	for _, key := range []string{"all", "first"} {
		if n := len(l.All) + len(l.First); kinds[0] == key && n < 2 && !b.faulty(path+"."+key) {
			b.errs.Add(b.pos[path+"."+key], path+"."+key, "joins at least two limiters")
		}
	}
	if l.Rate.Count > 0 {
		if !b.written(path + ".burst") {
			l.Burst = min(l.Rate.Count, MaxBurst)
		}
		b.checkBurst(path, l.Pos, l.Rate, l.Burst)
	}
	b.checkTiers(path, kinds[0], l)
}

// fits says which settings belong to which kinds.
var fits = map[string][]string{
	"burst": {"rate"}, "zone": {"quota"}, "redis": {"rate", "quota", "concurrency"}, "hybrid": {"rate", "quota"}, "lease": {"rate", "quota"},
	"on_store_error": {"rate", "quota", "concurrency"}, "gateways": {"rate", "quota", "concurrency"}, "max_keys": {"rate", "quota"}, "tiers": {"rate", "quota"}, "keys": {"rate", "quota"},
	"keys_file": {"rate", "quota"}, "keys_redis": {"rate", "quota"},
}

// needs says which settings count for nothing without another.
var needs = [][2]string{{"hybrid", "redis"}, {"lease", "hybrid"}, {"on_store_error", "redis"}, {"gateways", "redis"}, {"keys_redis", "redis"}}

func (b *binder) checkFits(path, kind string) {
	for _, f := range limiterSection {
		key := path + "." + f.key
		kinds, limited := fits[f.key]
		if !limited || !b.written(key) {
			continue
		}
		found := false
		for _, k := range kinds {
			found = found || k == kind
		}
		if !found {
			b.errs.Add(b.pos[key], key, "does not belong to a limiter with %s: it goes with %s", kind, orList(kinds))
		}
	}
	for _, pair := range needs {
		if key := path + "." + pair[0]; b.written(key) && !b.written(path+"."+pair[1]) {
			b.errs.Add(b.pos[key], key, "counts for nothing without %s", pair[1])
		}
	}
}

func (b *binder) checkBurst(path string, pos Pos, rate Rate, burst int64) {
	if rate.Count == 0 || burst == 0 {
		return
	}
	if err := rate.Check(burst); err != nil {
		b.errs.Add(b.where(path+".burst", pos), path, "%s", err)
	}
}

// checkTiers completes the tiers and finds those that keys name; a rate that a key has makes a tier of its own.
func (b *binder) checkTiers(path, kind string, l *Limiter) {
	known := map[string]bool{}
	for i := range l.Tiers {
		t := &l.Tiers[i]
		at := join(path+".tiers", t.Name)
		known[t.Name] = true
		switch {
		case kind == "quota" && (t.Quota == 0 || t.Rate.Count > 0) && !b.faulty(at):
			b.errs.Add(t.Pos, at, "belongs to a limiter with a quota: write { quota = 5000 }")
		case kind == "rate" && (t.Quota > 0 || t.Rate.Count == 0) && !b.faulty(at):
			b.errs.Add(t.Pos, at, `belongs to a limiter with a rate: write "5/s" or { rate = "5/s", burst = 10 }`)
		case t.Rate.Count > 0:
			if t.Burst == 0 {
				t.Burst = min(t.Rate.Count, MaxBurst)
			}
			b.checkBurst(at, t.Pos, t.Rate, t.Burst)
		}
	}
	for _, k := range l.Keys {
		b.keyTier(join(path+".keys", k.Key), k, kind, l, known)
	}
}

// keyTier makes sure that there is the tier that a key names.
func (b *binder) keyTier(at string, k KeyTier, kind string, l *Limiter, known map[string]bool) {
	if known[k.Tier] {
		return
	}
	if kind == "quota" {
		if n, err := strconv.ParseInt(k.Tier, 10, 64); err == nil && n >= 1 && n <= maxQuota {
			l.Tiers, known[k.Tier] = append(l.Tiers, Tier{Pos: k.Pos, Name: k.Tier, Quota: n}), true
			return
		}
	} else if text, burst, _ := strings.Cut(k.Tier, " "); strings.Contains(text, "/") {
		r, err := ParseRate(text)
		t := Tier{Pos: k.Pos, Name: k.Tier, Rate: r, Burst: min(r.Count, MaxBurst)}
		if burst = strings.TrimSpace(burst); err == nil && burst != "" {
			if t.Burst, err = strconv.ParseInt(burst, 10, 64); err == nil && (t.Burst < 1 || t.Burst > MaxBurst) {
				err = fmt.Errorf("the burst %d is out of bounds: it is from 1 to %d", t.Burst, MaxBurst)
			}
		}
		if err != nil {
			b.errs.Add(k.Pos, at, "%s", err)
			return
		}
		b.checkBurst(at, k.Pos, t.Rate, t.Burst)
		l.Tiers, known[k.Tier] = append(l.Tiers, t), true
		return
	}
	var names []string
	for _, t := range l.Tiers {
		names = append(names, t.Name)
	}
	b.errs.Add(k.Pos, at, "there is no tier %q%s, and it is no rate", shorten(k.Tier), nearHint(k.Tier, names))
}

// completeLimiters finds what limiters name elsewhere.
func (b *binder) completeLimiters(c *Config) {
	for i := range c.Limiters {
		l := &c.Limiters[i]
		path := "limiter." + l.Name
		if l.Redis != "" && c.Redis(l.Redis) == nil {
			b.errs.Add(b.pos[path+".redis"], path+".redis", "there is no redis %q: add [redis.%s] with its address", l.Redis, l.Redis)
		}
		for _, key := range []string{"all", "first"} {
			names := map[string][]string{"all": l.All, "first": l.First}[key]
			for _, name := range names {
				m := c.Limiter(name)
				switch at := path + "." + key; {
				case m == nil:
					b.errs.Add(b.pos[at], at, "there is no limiter %q: add a [limiter.%s]", name, name)
				case m.Joins() || m.Concurrency > 0:
					b.errs.Add(b.pos[at], at, "%q cannot be joined: limiters with a rate or a quota can", name)
				}
			}
		}
	}
}

// maxKeysFile bounds the keys of a file.
const maxKeysFile = 1_000_000

// readKeys takes the keys out of the limiter's file: lines of a key, a space, and a tier or a rate.
func (b *binder) readKeys(l *Limiter) {
	if l.KeysFile.Path == "" {
		return
	}
	kind := "rate"
	if l.Quota.Count > 0 {
		kind = "quota"
	}
	known, keys := map[string]bool{}, map[string]bool{}
	for _, t := range l.Tiers {
		known[t.Name] = true
	}
	for _, k := range l.Keys {
		keys[k.Key] = true
	}
	lines := bufio.NewScanner(strings.NewReader(string(l.KeysFile.Text)))
	lines.Buffer(nil, 64<<10)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, tier, _ := strings.Cut(line, " ")
		k := KeyTier{Pos{File: l.KeysFile.Path, Line: n}, key, strings.TrimSpace(tier)}
		switch {
		case k.Tier == "":
			b.errs.Add(k.Pos, "", `wants a key and its tier or rate: "user:tom 100/s"`)
		case keys[key]:
			b.errs.Add(k.Pos, "", "the key %q stands twice", shorten(key))
		case len(keys) >= maxKeysFile:
			b.errs.Add(k.Pos, "", "more than %d keys", maxKeysFile)
			return
		default:
			b.keyTier("", k, kind, l, known)
			keys[key] = true
			l.Keys = append(l.Keys, k)
		}
	}
	if err := lines.Err(); err != nil {
		b.errs.Add(Pos{File: l.KeysFile.Path, Line: 1}, "", "cannot be read: %s", err)
	}
}
