package luatest

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// services are the upstreams of the configuration, all endpoints ready, none of them asked.
type services struct{ *Bench }

// Upstream implements core.Services.
func (s services) Upstream(name string) core.Upstream {
	u := s.Config.Upstream(name)
	if u == nil {
		return nil
	}
	up := &upstream{name: name}
	for i, e := range u.Endpoints {
		scheme, authority, _ := strings.Cut(e.URL, "://")
		up.endpoints = append(up.endpoints, &core.Endpoint{Upstream: name, Address: authority, Authority: authority, Scheme: scheme, Weight: e.Weight, Index: i})
	}
	return s.keep(up)
}

// keep gives the same endpoints for the same upstream, as a generation does.
func (s services) keep(up *upstream) core.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upstreams == nil {
		s.upstreams = map[string]*upstream{}
	}
	if known := s.upstreams[up.name]; known != nil {
		return known
	}
	s.upstreams[up.name] = up
	return up
}

// Upstreams implements core.Services.
func (s services) Upstreams() []string {
	var names []string
	for _, u := range s.Config.Upstreams {
		names = append(names, u.Name)
	}
	slices.Sort(names)
	return names
}

// AccessLine implements core.Services.
func (s services) AccessLine(_ *core.Exchange, extra []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Lines = append(s.Lines, string(extra))
}

type upstream struct {
	name      string
	endpoints []*core.Endpoint
	next      atomic.Uint64
}

func (u *upstream) Name() string                { return u.name }
func (u *upstream) Endpoints() []*core.Endpoint { return u.endpoints }
func (u *upstream) Ready() int                  { return len(u.endpoints) }

// Pick takes the endpoints in turn.
func (u *upstream) Pick(*core.Exchange, string) (*core.Endpoint, error) {
	if u.Ready() == 0 {
		return nil, errors.New("no endpoint is ready")
	}
	return u.endpoints[(u.next.Add(1)-1)%uint64(len(u.endpoints))], nil
}

// Patience implements core.Services.
func (s services) Patience(*core.Route) time.Duration { return 15 * time.Second }

// State is that of an endpoint that rests.
func (u *upstream) State(*core.Endpoint) core.EndpointState {
	return core.EndpointState{Ready: true, Health: "ready"}
}
