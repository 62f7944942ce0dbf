package limit

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/redis"
)

// Tiered is a limiter some of whose keys have terms of their own: a tier that the configuration or Redis gives them, or that the caller
// names. All others are of the base.
type Tiered struct {
	base   Limiter
	tiers  map[string]Limiter
	keys   map[string]Limiter
	lookup *lookup // nil: none
}

// Tier gives the limiter of a tier; nil when there is none of that name.
func (t *Tiered) Tier(name string) Limiter {
	if l, ok := t.tiers[name]; ok {
		return l
	}
	return nil
}

// of gives the limiter of a key. known is false when it must be looked up, which waits.
func (t *Tiered) of(key string) (l Limiter, known bool) {
	if l, ok := t.keys[key]; ok {
		return l, true
	}
	if t.lookup == nil {
		return t.base, true
	}
	if l, known = t.lookup.known(key); l == nil {
		l = t.base
	}
	return l, known
}

func (t *Tiered) find(key string) Limiter {
	l, known := t.of(key)
	if !known {
		if l = t.lookup.ask(key); l == nil {
			return t.base
		}
	}
	return l
}

// Take implements Limiter.
func (t *Tiered) Take(key string, cost int64) Decision { return t.find(key).Take(key, cost) }

// Try implements Limiter.
func (t *Tiered) Try(key string, cost int64) (d Decision, decided bool) {
	l, known := t.of(key)
	if !known {
		return Decision{}, false
	}
	return l.Try(key, cost)
}

// Peek implements Limiter.
func (t *Tiered) Peek(key string, cost int64) Decision { return t.find(key).Peek(key, cost) }

// Return implements Limiter.
func (t *Tiered) Return(key string, cost int64) { t.find(key).Return(key, cost) }

// Reset implements Limiter.
func (t *Tiered) Reset(key string) error { return t.find(key).Reset(key) }

// Usage implements Counted: of all tiers together.
func (t *Tiered) Usage() Usage {
	u := usageOf(t.base)
	for _, l := range t.tiers {
		u.add(usageOf(l))
	}
	if t.lookup != nil {
		u.add(t.lookup.usage())
	}
	return u
}

// lookup finds the tiers of keys in a hash in Redis. What it has found it keeps for a while; when Redis cannot be asked it goes on with what
// it last found, or the base.
type lookup struct {
	client *redis.Client
	hash   string
	make   func(t Terms) (Limiter, error)
	tiers  map[string]Limiter
	start  time.Time

	mu    sync.RWMutex
	found map[string]*finding
	own   map[Terms]Limiter // of rates that no tier names
}

type finding struct {
	limiter Limiter // nil: the base
	at      time.Duration
	asking  atomic.Bool
}

const (
	lookupHolds = 10 * time.Second
	maxFindings = 1 << 17
	maxOwnTerms = 1 << 10
)

// known gives what was found; one that is old is looked up anew in the background.
func (l *lookup) known(key string) (Limiter, bool) {
	l.mu.RLock()
	f := l.found[key]
	l.mu.RUnlock()
	if f == nil {
		return nil, false
	}
	if time.Since(l.start)-f.at > lookupHolds && f.asking.CompareAndSwap(false, true) {
		key = strings.Clone(key)
		go l.ask(key)
	}
	return f.limiter, true
}

// ask looks a key up. nil is the base.
func (l *lookup) ask(key string) Limiter {
	v, err := l.client.Do("HGET", l.hash, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.found[key]
	if old == nil && len(l.found) >= maxFindings {
		clear(l.found)
	}
	f := &finding{at: time.Since(l.start)}
	switch {
	case err == nil:
		f.limiter = l.named(v.Text)
	case old != nil:
		f.limiter = old.limiter
	}
	l.found[strings.Clone(key)] = f
	return f.limiter
}

// named gives the limiter of a tier, or of a rate such as "100/s 200". What is neither is the base.
func (l *lookup) named(text string) Limiter {
	if t, ok := l.tiers[text]; ok || text == "" {
		return t
	}
	terms, err := ParseTerms(text)
	if err != nil {
		return nil
	}
	if own, ok := l.own[terms]; ok {
		return own
	}
	if len(l.own) >= maxOwnTerms {
		return nil
	}
	own, err := l.make(terms)
	if err != nil {
		return nil
	}
	l.own[terms] = own
	return own
}

func (l *lookup) usage() (u Usage) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, own := range l.own {
		u.add(usageOf(own))
	}
	return u
}

// ParseTerms reads a rate as a whole number for each unit, "100/s", "3/10s", and behind a space its burst, which else is the count.
func ParseTerms(text string) (Terms, error) {
	rate, burst, _ := strings.Cut(strings.TrimSpace(text), " ")
	count, per, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		return Terms{}, fmt.Errorf(`%q is no rate: "100/s"`, text)
	}
	t := Terms{Burst: n}
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	if days, ok := strings.CutSuffix(per, "d"); ok {
		if d, err := strconv.Atoi(days); err == nil {
			per = strconv.Itoa(24*d) + "h"
		}
	}
	d, err := time.ParseDuration(per)
	if err != nil || d <= 0 {
		return Terms{}, fmt.Errorf(`%q is no rate: "100/s"`, text)
	}
	t.Rate = Rate{n, d}
	if burst = strings.TrimSpace(burst); burst != "" {
		if t.Burst, err = strconv.ParseInt(burst, 10, 64); err != nil || t.Burst < 1 {
			return Terms{}, fmt.Errorf(`%q: its burst is no number above 0`, text)
		}
	}
	return t, nil
}

func newLookup(client *redis.Client, hash string, tiers map[string]Limiter, build func(Terms) (Limiter, error)) *lookup {
	return &lookup{client: client, hash: hash, make: build, tiers: tiers, start: time.Now(), found: map[string]*finding{}, own: map[Terms]Limiter{}}
}
