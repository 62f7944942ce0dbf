package luaapi

import (
	"fmt"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/limit"
)

// declareLimiters makes the limiters of [limiter.NAME]; first those that others may join.
func (b *builder) declareLimiters() {
	for _, joins := range []bool{false, true} {
		for i := range b.o.Config.Limiters {
			if l := &b.o.Config.Limiters[i]; l.Joins() == joins {
				o := LimiterOptions(l)
				o.KeysFrom, o.Redis = l.KeysRedis, b.world.redis.Get(l.Redis)
				b.declare(l.Pos, "limiter."+l.Name, l.Name, o)
			}
		}
	}
}

// declare gives the limiter of a name; nil when it cannot be, which is noted.
func (b *builder) declare(pos conf.Pos, key, name string, o limit.Options) limit.Limiter {
	o.Clock = b.o.Clock
	l, err := b.world.limits.Declare(name, o)
	if err != nil {
		b.errs.Add(pos, key, "%s", err)
		return nil
	}
	return l
}

var storeErrors = map[string]limit.OnStoreError{conf.StoreErrorLocal: limit.StoreErrorLocal, conf.StoreErrorOpen: limit.StoreErrorOpen,
	conf.StoreErrorClosed: limit.StoreErrorClosed}

// LimiterOptions turns what was written of a limiter into options, but for its Redis.
func LimiterOptions(l *conf.Limiter) limit.Options {
	o := limit.Options{Rate: rateOf(l.Rate), Burst: l.Burst, Hybrid: l.Hybrid, Lease: l.Lease, OnStoreError: storeErrors[l.OnStoreError],
		Gateways: int64(l.Gateways), Ceiling: l.MaxKeys}
	switch {
	case l.Quota.Count > 0:
		o.Kind, o.Burst = limit.KindQuota, l.Quota.Count
		o.Unit, _ = limit.ParseUnit(l.Quota.Window)
		o.Zone, _ = time.LoadLocation(l.Zone) // "" is UTC
	case l.Concurrency > 0:
		o.Kind, o.Burst = limit.KindConcurrency, l.Concurrency
	case len(l.All) > 0:
		o.Kind, o.Members = limit.KindAll, l.All
	case len(l.First) > 0:
		o.Kind, o.Members = limit.KindFirst, l.First
	}
	if len(l.Tiers) > 0 {
		o.Tiers, o.Keys = map[string]limit.Terms{}, map[string]string{}
	}
	for _, t := range l.Tiers {
		o.Tiers[t.Name] = limit.Terms{Rate: rateOf(t.Rate), Burst: max(t.Burst, t.Quota)}
	}
	for _, k := range l.Keys {
		o.Keys[k.Key] = k.Tier
	}
	return o
}

// ownOptions are those of a filter's own limiter: what a [limiter.NAME] of this rate has.
func ownOptions(rate conf.Rate, burst int64) limit.Options {
	return limit.Options{Rate: rateOf(rate), Burst: burst, Gateways: 1, Ceiling: limit.DefaultCeiling}
}

func rateOf(r conf.Rate) limit.Rate { return limit.Rate{Count: r.Count, Per: r.Per} }

// limitFields gives the header fields that tell a client about its limit, in one of the styles of gw.limit.headers.
func limitFields(style, name string, d limit.Decision) [][2]string {
	reset := limit.Seconds(d.Reset())
	if wait := d.RetrySeconds(); wait > 0 {
		reset = wait
	}
	var fields [][2]string
	switch style {
	case "ratelimit", "x":
		prefix := "RateLimit-"
		if style == "x" {
			prefix = "X-RateLimit-"
		}
		fields = [][2]string{{prefix + "Limit", fmt.Sprint(d.Limit)}, {prefix + "Remaining", fmt.Sprint(d.Remaining)}, {prefix + "Reset", fmt.Sprint(reset)}}
	case "draft":
		name = quotedName(name)
		policy := fmt.Sprintf("%s;q=%d", name, d.Limit)
		if d.Window > 0 {
			policy += fmt.Sprintf(";w=%d", limit.Seconds(d.Window))
		}
		fields = [][2]string{{"RateLimit-Policy", policy}, {"RateLimit", fmt.Sprintf("%s;r=%d;t=%d", name, d.Remaining, reset)}}
	}
	if wait := d.RetrySeconds(); wait > 0 {
		fields = append(fields, [2]string{"Retry-After", fmt.Sprint(wait)})
	}
	return fields
}

// quotedName is a limiter's name as a string of structured fields (RFC 9651), which are ASCII.
func quotedName(name string) string {
	out := []byte{'"'}
	for i := range len(name) {
		switch c := name[i]; {
		case c < 0x20 || c > 0x7e:
			out = append(out, '?')
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}
