package main

import (
	"log/slog"
	"sync/atomic"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/metrics"
)

// scripting joins the scripts to the gateway, which knows none. What it holds lives on over reloads.
type scripting struct {
	limits *limit.Registry
	redis  *redis.Registry
	auth   *auth.Registry
	shared *luaapi.Shared
	pools  luaapi.PoolCounters
	timers *luaapi.Timers
	live   atomic.Pointer[luaapi.Pipeline] // serves new requests
	log    *slog.Logger
}

func newScripting(log *slog.Logger) *scripting {
	return &scripting{limits: new(limit.Registry), redis: new(redis.Registry), auth: new(auth.Registry), shared: luaapi.NewShared(nil), timers: luaapi.NewTimers(log), log: log}
}

// close lets go of what is connected; nothing serves any more.
func (s *scripting) close() { s.redis.Close() }

// build makes the filters of a generation from the scripts of its configuration. It is a gateway.PipelineBuilder.
func (s *scripting) build(parts gateway.Parts) (gateway.Built, error) {
	p, err := luaapi.Build(luaapi.Options{Config: parts.Config, Routes: parts.Routes, Services: parts.Services, Metrics: parts.Metrics,
		Limits: s.limits, Redis: s.redis, Auth: s.auth, Shared: s.shared, Pools: &s.pools, Timers: s.timers, Log: s.log})
	if err != nil {
		return gateway.Built{}, err
	}
	return gateway.Built{Pipeline: p, Identity: p.Identity(), Warnings: p.Warnings, Commit: func() { s.live.Store(p); p.Commit() }, Source: counts{p, s.limits, s.redis, s.auth}}, nil
}

// faults says what is wrong with the scripts of a configuration that is wrong elsewhere.
func (s *scripting) faults(c *conf.Config) conf.Errors {
	return luaapi.Faults(luaapi.Options{Config: c, Log: slog.New(slog.DiscardHandler)})
}

// counts tells a scrape of the filters, of the limiters that they take from, and of the keys that they verify with.
type counts struct {
	pipeline *luaapi.Pipeline
	limits   *limit.Registry
	redis    *redis.Registry
	auth     *auth.Registry
}

func (c counts) Collect(scrape *metrics.Scrape) {
	c.pipeline.Collect(scrape)
	c.limits.Each(func(name string, l limit.Limiter) {
		if counted, ok := l.(limit.Counted); ok {
			u := counted.Usage()
			scrape.Limiter(name, metrics.Limiter{Keys: u.Keys, Refused: u.Refused, Overflowed: u.Overflowed, StoreErrors: u.StoreErrors, Dropped: u.Dropped})
		}
	})
	c.redis.Each(func(client *redis.Client) {
		stats := client.Stats()
		scrape.Redis(client.Name(), metrics.Redis{Up: stats.Up, Calls: stats.Calls, Failed: stats.Failed, Pending: stats.Pending})
	})
	type fetches struct {
		succeeded, failed uint64
		keys              int
	}
	all := map[string]fetches{} // settings that differ may name the same URL
	c.auth.Each(func(k *auth.KeySource) {
		succeeded, failed, keys := k.Fetches()
		f := all[k.Name()]
		all[k.Name()] = fetches{f.succeeded + succeeded, f.failed + failed, max(f.keys, keys)}
	})
	for name, f := range all {
		scrape.KeySource(name, f.succeeded, f.failed, f.keys)
	}
}
