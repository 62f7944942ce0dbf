package luaapi

import (
	"fmt"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.limit: token buckets, one for each key.

var limitFuncs = []vm.Func{
	{Name: "gw.limit.take", Phases: phaseExchange,
		Doc: "Takes from the bucket of a key and tells whether that was granted. The limiter is `conf` for the filter's own, which is " +
			"called ROUTE/FILTER unless the setting `limiter` names one, or the name of a `[limiter.NAME]`. Equal names share. With conf the key " +
			"may be left out: it is what the setting `key` says, a kind as in gw.limit.key.",
		Params: list(p("limiter", "string|table", "a name, or conf"), opt("key", "string", "whom to count: gw.limit.key, or any text"),
			opt("cost", "integer", "default 1; 0 asks without taking")),
		Returns: list(p("ok", "boolean", ""), p("info", "gw.LimitInfo", "")),
		Do:      takeLimit},
	{Name: "gw.limit.key", Phases: phaseExchange,
		Doc: "Gives the text by which a request is counted: `ip`, `user` (the client's address while no user is known), `route`, `global`, or " +
			"`header:NAME` (the client's address when the header is absent).",
		Params:  list(p("kind", "string", "")),
		Returns: list(p("key", "string", "")),
		Do: func(a vm.Args) int {
			kind, err := parseKey(argText(a, 1))
			if err != nil {
				a.Bad(1, "%s", err)
			}
			var buf [128]byte
			a.L.Push(str(kind.of(current(a.L).x, buf[:0])))
			return 1
		}},
}

// limitBy says by what requests are counted.
type limitBy struct {
	kind   string
	header string // for kind "header"
}

// parseKey reads "ip", "user", "route", "global" or "header:NAME".
func parseKey(text string) (limitBy, error) {
	switch text {
	case "ip", "user", "route", "global":
		return limitBy{kind: text}, nil
	}
	if name, ok := strings.CutPrefix(text, "header:"); ok && core.IsToken(core.Bytes(name)) {
		return limitBy{"header", name}, nil
	}
	return limitBy{}, fmt.Errorf("%q is no kind of key: ip, user, route, global or header:NAME", visible(text))
}

// of appends the key of an exchange. Keys of different kinds never meet.
func (k limitBy) of(x *core.Exchange, dst []byte) []byte {
	switch k.kind {
	case "user":
		if x.User != "" {
			return append(append(dst, "user:"...), x.User...)
		}
	case "route":
		dst = append(dst, "route:"...)
		if x.Route != nil {
			dst = append(dst, x.Route.Name...)
		}
		return dst
	case "global":
		return append(dst, "global"...)
	case "header":
		if value := x.Request.Header.Get(k.header); len(value) > 0 {
			return append(append(append(append(dst, "header:"...), k.header...), ':'), value...)
		}
	}
	return x.Request.ClientIP.AppendTo(append(dst, "ip:"...))
}

// limitInfo is what gw.limit.take tells beside yes or no, in one allocation.
type limitInfo struct {
	handle   lua.LUserData
	decision limit.Decision
}

var limitInfoFields = []vm.Param{
	p("limit", "integer", "what the key may take at once when it has rested"),
	p("remaining", "integer", "what it could still take at once"),
	p("retry_after", "integer", "whole seconds after which the same take passes; 0 when it was granted or no waiting helps"),
}

var limitInfoMeta = metatable("__index", goFunction(func(L *lua.LState) int {
	info := L.Get(1).(*lua.LUserData).Value.(*limitInfo)
	switch key, _ := L.Get(2).(lua.LString); key {
	case "limit":
		L.Push(number(float64(info.decision.Limit)))
	case "remaining":
		L.Push(number(float64(info.decision.Remaining)))
	case "retry_after":
		L.Push(number(float64(info.decision.RetrySeconds())))
	default:
		raise(L, "the info of gw.limit.take has no "+describe(L.Get(2))+": it has limit, remaining, retry_after")
	}
	return 1
}))

func takeLimit(a vm.Args) int {
	f := current(a.L)
	bucket := limiterArg(a, f)
	cost := int64(a.OptInt(3, 1))
	if cost < 0 {
		a.Bad(3, "a cost is 0 or more")
	}
	info := &limitInfo{}
	if own := a.Get(1) == lua.LValue(f.conf); own && !a.Has(2) {
		var buf [128]byte
		key := f.turn.key.of(f.x, buf[:0])
		info.decision = bucket.Take(unsafe.String(&key[0], len(key)), cost) // Take does not keep it
	} else {
		info.decision = bucket.Take(argText(a, 2), cost)
	}
	info.handle = lua.LUserData{Value: info, Metatable: limitInfoMeta}
	a.L.Push(lua.LBool(info.decision.OK))
	a.L.Push(&info.handle)
	return 2
}

func limiterArg(a vm.Args, f *frame) *limit.TokenBucket {
	switch v := a.Get(1).(type) {
	case *lua.LTable:
		switch {
		case v != f.conf:
			a.Bad(1, "the name of a limiter or the filter's conf expected, got another table")
		case f.turn.limiter == nil:
			a.Bad(1, `the filter has no limiter of its own: it declares the settings rate = "rate" and limiter = "string"`)
		}
		return f.turn.limiter
	case lua.LString:
		if bucket := f.m.stage.limits.Get(string(v)); bucket != nil {
			return bucket
		}
		a.Bad(1, "there is no limiter %q: add a [limiter.NAME] with its rate", visible(string(v)))
	}
	a.Bad(1, "the name of a limiter or conf expected, got %s", a.Get(1).Type())
	return nil
}
