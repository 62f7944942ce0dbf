package main

import (
	"log/slog"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi"
)

// scripting joins the scripts to the gateway, which knows none. What it holds lives on over reloads.
type scripting struct {
	limits *limit.Registry
	shared *luaapi.Shared
	log    *slog.Logger
}

func newScripting(log *slog.Logger) *scripting {
	return &scripting{limits: new(limit.Registry), shared: luaapi.NewShared(), log: log}
}

// build makes the filters of a generation from the scripts of its configuration. It is a gateway.PipelineBuilder.
func (s *scripting) build(c *conf.Config, routes []*core.Route, services core.Services) (gateway.Built, error) {
	p, err := luaapi.Build(luaapi.Options{Config: c, Routes: routes, Services: services, Limits: s.limits, Shared: s.shared, Log: s.log})
	if err != nil {
		return gateway.Built{}, err
	}
	return gateway.Built{Pipeline: p, Identity: p.Identity(), Commit: p.Commit}, nil
}
