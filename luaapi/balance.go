package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.balance and gw.upstream: which upstreams there are, and one of their endpoints.

var balanceFuncs = []vm.Func{
	{Name: "gw.balance.pick", Phases: phaseRequest,
		Doc:     "Chooses an endpoint of an upstream that takes requests now, as the upstream's balancer does; assign it to ctx.endpoint.",
		Params:  list(p("upstream", "string", "its name; an unknown one raises"), opt("key", "string", "for balancers that hash")),
		Returns: list(p("endpoint", "gw.Endpoint?", ""), errParam),
		Do: func(a vm.Args) int {
			f := current(a.L)
			key := ""
			if a.Has(2) {
				key = argText(a, 2)
			}
			e, err := f.m.stage.upstream(a.L, argText(a, 1)).Pick(f.x, key)
			if err != nil {
				return pushFailure(a, err)
			}
			a.L.Push(endpointValue(e))
			return 1
		}},
}

var upstreamFuncs = []vm.Func{
	{Name: "gw.upstream.exists",
		Doc:     "Tells whether an upstream of that name is configured; in init it finds a misspelt setting before it is used.",
		Params:  list(p("name", "string", "")),
		Returns: list(p("exists", "boolean", "")),
		Do: func(a vm.Args) int {
			a.L.Push(lua.LBool(services(a).Upstream(argText(a, 1)) != nil))
			return 1
		}},
	{Name: "gw.upstream.names",
		Doc:     "Lists the names of all configured upstreams, sorted.",
		Returns: list(p("names", "string[]", "")),
		Do: func(a vm.Args) int {
			names := newTable()
			for _, name := range services(a).Upstreams() {
				appendItem(a, names, lua.LString(name))
			}
			a.L.Push(names)
			return 1
		}},
	{Name: "gw.upstream.ready", Phases: phaseExchange,
		Doc:     "Counts the endpoints of an upstream that take requests now, and all of them.",
		Params:  list(p("name", "string", "an unknown one raises")),
		Returns: list(p("ready", "integer", ""), p("all", "integer", "")),
		Do: func(a vm.Args) int {
			u := current(a.L).m.stage.upstream(a.L, argText(a, 1))
			a.L.Push(number(float64(u.Ready())))
			a.L.Push(number(float64(len(u.Endpoints()))))
			return 2
		}},
	{Name: "gw.upstream.endpoints", Phases: phaseExchange,
		Doc: "Lists the endpoints of an upstream with their state now: `endpoint` (for ctx.endpoint), `url`, `weight`, `ready`, `health` and `in_flight`, the " +
			"connections in use.",
		Params:  list(p("name", "string", "an unknown one raises")),
		Returns: list(p("endpoints", "gw.EndpointState[]", "in the order of the configuration")),
		Do:      endpointStates},
}

var endpointStateFields = []vm.Param{
	p("endpoint", "gw.Endpoint", ""),
	p("url", "string", ""),
	p("weight", "integer", "0 is drained"),
	p("ready", "boolean", "it takes requests"),
	p("health", "string", "ready, out (requests have failed), unhealthy (checks have failed) or drained (its weight is 0)"),
	p("in_flight", "integer", "connections in use"),
}

// endpointStates lists what is known of an upstream's endpoints.
func endpointStates(a vm.Args) int {
	u := current(a.L).m.stage.upstream(a.L, argText(a, 1))
	states := newTable()
	for _, e := range u.Endpoints() {
		s := u.State(e)
		t := newTable()
		t.RawSetString("endpoint", endpointValue(e))
		t.RawSetString("url", lua.LString(e.String()))
		t.RawSetString("weight", number(float64(e.Weight)))
		t.RawSetString("ready", lua.LBool(s.Ready))
		t.RawSetString("health", lua.LString(s.Health))
		t.RawSetString("in_flight", number(float64(s.InFlight)))
		appendItem(a, states, t)
	}
	a.L.Push(states)
	return 1
}

func services(a vm.Args) core.Services {
	s := worldOf(a.VM).services
	if s == nil {
		a.Raise("upstreams are not known here")
	}
	return s
}

// endpointValue is the handle of an endpoint; endpoints are immutable, so it may be kept.
func endpointValue(e *core.Endpoint) lua.LValue {
	if e == nil {
		return lua.LNil
	}
	return &lua.LUserData{Value: e, Metatable: endpointMeta}
}

var endpointFields = []vm.Param{
	p("upstream", "string", "name of its upstream"),
	p("url", "string", "such as `http://10.0.0.1:8080`"),
	p("address", "string", "host and port"),
	p("weight", "integer", ""),
}

var endpointMeta = metatable("__index", goFunction(func(L *lua.LState) int {
	e := L.Get(1).(*lua.LUserData).Value.(*core.Endpoint)
	switch key, _ := L.Get(2).(lua.LString); key {
	case "upstream":
		L.Push(lua.LString(e.Upstream))
	case "url":
		L.Push(lua.LString(e.String()))
	case "address":
		L.Push(lua.LString(e.Address))
	case "weight":
		L.Push(number(float64(e.Weight)))
	default:
		raise(L, "an endpoint has no "+describe(L.Get(2))+": it has upstream, url, address, weight")
	}
	return 1
}), "__tostring", goFunction(func(L *lua.LState) int {
	L.Push(lua.LString(L.Get(1).(*lua.LUserData).Value.(*core.Endpoint).String()))
	return 1
}), "__eq", goFunction(func(L *lua.LState) int {
	x, _ := L.Get(1).(*lua.LUserData).Value.(*core.Endpoint)
	y, _ := L.Get(2).(*lua.LUserData).Value.(*core.Endpoint)
	L.Push(lua.LBool(x == y))
	return 1
}))
