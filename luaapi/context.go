package luaapi

import (
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// ctx: what filters leave for each other on one exchange, and the few names by which they tell the gateway what they decided.

var contextMeta = metatable("__index", goFunction(contextGet), "__newindex", goFunction(contextSet), "__pairs", goFunction(contextPairs))

// contextFields are the names of ctx that mean something to the gateway.
var contextFields = []field{
	{name: "user", kind: "string?", doc: "Who the caller is: what limits, logs and balancers mean by user.",
		get: func(f *frame) lua.LValue { return optional(f.x.User) }, set: setUser},
	{name: "upstream", kind: "string?", doc: "Name of the upstream to send to; the route's unless a filter chose another.",
		get: func(f *frame) lua.LValue {
			if f.x.Upstream == "" && f.x.Route != nil {
				return optional(f.x.Route.Upstream)
			}
			return optional(f.x.Upstream)
		}, set: setUpstream},
	{name: "hash", kind: "string?", doc: "What `balance = \"consistent_hash\"` goes by, and what an upstream that is sticky by header or address goes by instead: requests with the same key go to the same endpoint. Without a key, or with an empty one, endpoints take turns.",
		get: func(f *frame) lua.LValue { return optional(f.x.HashKey) }, set: setHash},
	{name: "endpoint", kind: "gw.Endpoint?", doc: "Endpoint to send to, as gw.balance.pick gives it; later the one that was asked.",
		get: func(f *frame) lua.LValue { return endpointValue(f.x.Endpoint) }, set: setEndpoint},
	{name: "request_id", kind: "string", doc: "Id of the request.", get: func(f *frame) lua.LValue { return str(f.x.RequestID) }},
	{name: "trace_id", kind: "string", doc: "Id of the trace.", get: func(f *frame) lua.LValue { return str(f.x.TraceID) }},
}

var contextByName = func() map[string]*field {
	m := map[string]*field{}
	for i := range contextFields {
		m[contextFields[i].name] = &contextFields[i]
	}
	return m
}()

func contextFrame(L *lua.LState) *frame {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*contextHandle); ok {
			return (*frame)(h).alive(L)
		}
	}
	raise(L, "this works on ctx")
	return nil
}

func contextGet(L *lua.LState) int {
	f := contextFrame(L)
	key, ok := L.Get(2).(lua.LString)
	if !ok {
		raise(L, "ctx has names only, not a "+L.Get(2).Type().String())
	}
	if fd := contextByName[string(key)]; fd != nil {
		L.Push(fd.get(f))
	} else if v, ok := f.x.Vars.Get(string(key)).(lua.LValue); ok {
		L.Push(v)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func contextSet(L *lua.LState) int {
	f := contextFrame(L)
	key, ok := L.Get(2).(lua.LString)
	v := L.Get(3)
	if !ok {
		raise(L, "ctx has names only, not a "+L.Get(2).Type().String())
	}
	if fd := contextByName[string(key)]; fd != nil {
		if fd.set == nil {
			raise(L, "ctx."+fd.name+" is read-only")
		}
		fd.set(f, L, v)
		return 0
	}
	if v == lua.LNil {
		f.x.Vars.Set(string(key), nil)
	} else if f.x.Vars.Len() >= maxVars && f.x.Vars.Get(string(key)) == nil {
		raise(L, "ctx holds "+strconv.Itoa(maxVars)+" values already: it is for what filters tell each other")
	} else {
		f.x.Vars.Set(string(key), plain(L, "ctx."+visible(string(key)), v))
	}
	return 0
}

// maxVars is how many values filters may leave for each other on one exchange.
const maxVars = 256

func contextPairs(L *lua.LState) int {
	f := contextFrame(L)
	var list []lua.LValue
	for i := range f.x.Vars.Len() {
		if key, v := f.x.Vars.At(i); v != nil {
			if value, ok := v.(lua.LValue); ok {
				list = append(list, lua.LString(key), value)
			}
		}
	}
	return pushPairs(L, list)
}

// plain gives a value that may go to another VM: strings, numbers and booleans as they are, tables as read-only copies.
func plain(L *lua.LState, what string, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case lua.LString, lua.LNumber, lua.LBool:
		return v
	case *lua.LUserData:
		switch v.Value.(type) {
		case bigNumber, jsonNullValue:
			return v
		}
		raise(L, what+" holds plain values, not handles: they end with their request")
	case *lua.LTable:
		if vm.IsFrozen(v) && sharable(vm.From(L), vm.Thaw(v), 0) {
			return v
		}
		return vm.Freeze(what, copyTable(L, what, v, 0))
	}
	raise(L, what+" holds plain values, not a "+v.Type().String())
	return nil
}

// sharable tells whether nothing in a read-only table belongs to one VM.
func sharable(of *vm.VM, t *lua.LTable, depth int) bool {
	ok := depth <= maxJSONDepth
	for key, v := t.Next(lua.LNil); ok && key != lua.LNil; key, v = t.Next(key) {
		of.Charge(8)
		switch v := v.(type) {
		case lua.LString, lua.LNumber, lua.LBool:
		case *lua.LTable:
			ok = vm.IsFrozen(v) && sharable(of, vm.Thaw(v), depth+1)
		case *lua.LUserData:
			_, big := v.Value.(bigNumber)
			_, null := v.Value.(jsonNullValue)
			ok = big || null
		default:
			ok = false
		}
	}
	return ok
}

func copyTable(L *lua.LState, what string, from *lua.LTable, depth int) *lua.LTable {
	if depth > maxJSONDepth {
		raise(L, what+" is a table nested deeper than 100, or within itself")
	}
	from = vm.Thaw(from)
	to := newTable()
	if from.Metatable == lua.LValue(jsonArray) {
		to.Metatable = jsonArray
	}
	for key, v := from.Next(lua.LNil); key != lua.LNil; key, v = from.Next(key) {
		vm.From(L).Charge(8)
		switch key.(type) {
		case lua.LString, lua.LNumber, lua.LBool:
		default:
			raise(L, what+" has a "+key.Type().String()+" for a key")
		}
		if nested, ok := v.(*lua.LTable); ok {
			to.RawSet(key, copyTable(L, what, nested, depth+1))
		} else {
			to.RawSet(key, plain(L, what, v))
		}
	}
	return to
}

func setUser(f *frame, L *lua.LState, v lua.LValue) {
	if v == lua.LNil {
		f.x.User = ""
		return
	}
	f.x.User = wanted(L, "ctx.user", v)
}

func setUpstream(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "ctx.upstream")
	if v == lua.LNil {
		f.x.Upstream = ""
		return
	}
	name := wanted(L, "ctx.upstream", v)
	f.m.stage.upstream(L, name)
	f.x.Upstream = name
}

// upstream finds an upstream or raises.
func (s *stage) upstream(L *lua.LState, name string) core.Upstream {
	u := s.services.Upstream(name)
	if u == nil {
		raise(L, "there is no upstream "+describe(lua.LString(visible(name)))+": there are "+strings.Join(s.services.Upstreams(), ", "))
	}
	return u
}

func setHash(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "ctx.hash")
	if v == lua.LNil {
		f.x.HashKey = ""
		return
	}
	f.x.HashKey = wanted(L, "ctx.hash", v)
}

func setEndpoint(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "ctx.endpoint")
	if v == lua.LNil {
		f.x.Endpoint = nil
		return
	}
	ud, _ := v.(*lua.LUserData)
	if ud == nil {
		raise(L, "ctx.endpoint is set to what gw.balance.pick gives, not to a "+v.Type().String())
	}
	e, ok := ud.Value.(*core.Endpoint)
	if !ok {
		raise(L, "ctx.endpoint is set to what gw.balance.pick gives, not to another handle")
	}
	u := f.m.stage.upstream(L, e.Upstream)
	if !slices.Contains(u.Endpoints(), e) {
		raise(L, "ctx.endpoint is set to an endpoint that is no longer there: ask gw.balance.pick in each request")
	}
	f.x.Endpoint, f.x.Upstream = e, e.Upstream
}
