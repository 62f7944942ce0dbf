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

// gw.limit: how often, and how much at once.

var limiterParam = p("limiter", "string|table", "a name, or conf")

var limitFuncs = []vm.Func{
	{Name: "gw.limit.take", Phases: phaseExchange,
		Doc: "Takes from the limiter for a key and tells whether that was granted. The limiter is `conf` for the filter's own, which is " +
			"called ROUTE/FILTER unless the setting `limiter` names one, or the name of a `[limiter.NAME]`. Equal names share. With conf the key " +
			"may be left out: it is what the setting `key` says, a kind as in gw.limit.key. From a limiter of concurrency it takes slots, which are " +
			"given back when the request ends, whatever way it ends. When the limiter's Redis cannot be asked, its `on_store_error` decides; with " +
			"\"closed\" the request ends there with 503.",
		Params: list(limiterParam, opt("key", "string", "whom to count: gw.limit.key, or any text"),
			opt("cost", "integer", "default 1; 0 asks without taking"), opt("tier", "string", "one of the limiter's tiers; one that it does not have counts as none")),
		Returns: list(p("ok", "boolean", ""), p("info", "gw.LimitInfo", "")),
		Do:      func(a vm.Args) int { return askLimit(a, takes) }},
	{Name: "gw.limit.acquire", Phases: phaseExchange,
		Doc: "Takes slots from a limiter of concurrency, as gw.limit.take does, and raises for any other. They are given back when the request ends, " +
			"whatever way it ends, or by gw.limit.release.",
		Params:  list(limiterParam, opt("key", "string", "as for gw.limit.take"), opt("slots", "integer", "default 1")),
		Returns: list(p("ok", "boolean", ""), p("info", "gw.LimitInfo", "")),
		Do:      func(a vm.Args) int { return askLimit(a, acquires) }},
	{Name: "gw.limit.peek", Phases: phaseExchange,
		Doc: "Tells what gw.limit.take would, and takes nothing.",
		Params: list(limiterParam, opt("key", "string", "as for gw.limit.take"), opt("cost", "integer", "default 1"),
			opt("tier", "string", "as for gw.limit.take")),
		Returns: list(p("ok", "boolean", ""), p("info", "gw.LimitInfo", "")),
		Do:      func(a vm.Args) int { return askLimit(a, peeks) }},
	{Name: "gw.limit.release", Phases: phaseExchange,
		Doc:     "Gives slots back that this request has taken from a limiter of concurrency, before it ends. It tells whether there were any.",
		Params:  list(limiterParam, opt("key", "string", "as for gw.limit.take")),
		Returns: list(p("released", "boolean", "")),
		Do:      releaseLimit},
	{Name: "gw.limit.reset", Phases: phaseExchange,
		Doc:     "Makes a key as good as new: its bucket full, its count 0. It fails when the limiter's Redis cannot be asked.",
		Params:  list(limiterParam, opt("key", "string", "as for gw.limit.take"), opt("tier", "string", "as for gw.limit.take")),
		Returns: list(p("ok", "true?", ""), p("err", "string?", "")),
		Do:      resetLimit},
	{Name: "gw.limit.headers", Phases: phaseExchange,
		Doc: "Gives the header fields that tell a client about its limit: RateLimit-Limit, -Remaining and -Reset (\"ratelimit\"), the same with X- before " +
			"them (\"x\"), or RateLimit and RateLimit-Policy of the IETF's draft (\"draft\"); and Retry-After when the take was refused, which is all of " +
			"\"none\".",
		Params:  list(p("info", "gw.LimitInfo", "of gw.limit.take or gw.limit.peek"), opt("style", "string", `"ratelimit", "x", "draft" or "none"; default "ratelimit"`)),
		Returns: list(p("headers", "table<string, string>", "")),
		Do:      limitHeaders},
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
	name     string
	decision limit.Decision
}

var limitInfoFields = []vm.Param{
	p("limit", "integer", "what the key may take at once when it has rested"),
	p("remaining", "integer", "what it could still take at once"),
	p("retry_after", "integer", "whole seconds after which the same take passes; 0 when it was granted or no waiting helps"),
	p("reset", "integer", "whole seconds after which the key is as good as new"),
	p("window", "integer", "whole seconds in which a limit's worth comes anew; 0 for slots"),
	p("limiter", "string", "the limiter's name"),
}

var limitInfoMeta = metatable("__index", goFunction(func(L *lua.LState) int {
	info := L.Get(1).(*lua.LUserData).Value.(*limitInfo)
	d := &info.decision
	switch key, _ := L.Get(2).(lua.LString); key {
	case "limit":
		L.Push(number(float64(d.Limit)))
	case "remaining":
		L.Push(number(float64(d.Remaining)))
	case "retry_after":
		L.Push(number(float64(d.RetrySeconds())))
	case "reset":
		L.Push(number(float64(limit.Seconds(d.Reset()))))
	case "window":
		L.Push(number(float64(limit.Seconds(d.Window))))
	case "limiter":
		L.Push(lua.LString(info.name))
	default:
		raise(L, "the info of gw.limit.take has no "+describe(L.Get(2))+": it has limit, remaining, retry_after, reset, window, limiter")
	}
	return 1
}))

// The ways to ask.
const (
	takes = iota
	acquires
	peeks
)

// askLimit takes, acquires or peeks.
func askLimit(a vm.Args, how int) int {
	f := current(a.L)
	l, name := limiterArg(a, f, 4)
	slots := limit.Slots(l)
	if how == acquires && !slots {
		a.Bad(1, "the limiter %q has no slots: only one with concurrency does", visible(name))
	}
	cost := int64(a.OptInt(3, 1))
	if cost < 0 {
		a.Bad(3, "a cost is 0 or more")
	}
	var buf [128]byte
	key := keyArg(a, f, buf[:0])
	info := &limitInfo{name: name}
	info.decision = decide(a, f, l, key, cost, how)
	if slots && how != peeks && info.decision.OK && cost > 0 {
		f.x.Hold(&slot{l, strings.Clone(key), cost})
	}
	info.handle = lua.LUserData{Value: info, Metatable: limitInfoMeta}
	a.L.Push(lua.LBool(info.decision.OK))
	a.L.Push(&info.handle)
	return 2
}

// decide asks a limiter; one that has to wait for its store does so outside of the VM's budget.
func decide(a vm.Args, f *frame, l limit.Limiter, key string, cost int64, how int) (d limit.Decision) {
	switch {
	case how == peeks:
		d = peekWaiting(a, f, l, key, cost)
	default:
		var decided bool
		if d, decided = l.Try(key, cost); !decided {
			d = takeWaiting(a, f, l, key, cost)
		}
	}
	if d.Unavailable {
		f.fault = core.Fail(503, "temporarily unavailable", nil) // the access log and a counter tell; the log has a line when it begins
		raise(a.L, "the limiter's store cannot be asked")
	}
	return d
}

// These two have the closures, so that a limiter in memory costs none.
func peekWaiting(a vm.Args, f *frame, l limit.Limiter, key string, cost int64) (d limit.Decision) {
	if !limit.Waits(l) {
		return l.Peek(key, cost)
	}
	wait(a, f, func() { d = l.Peek(key, cost) })
	return d
}

func takeWaiting(a vm.Args, f *frame, l limit.Limiter, key string, cost int64) (d limit.Decision) {
	wait(a, f, func() { d = l.Take(key, cost) })
	return d
}

// wait runs what waits for something outside. When too many do so already the request ends with 503.
func wait(a vm.Args, f *frame, what func()) {
	if err := a.VM.Wait(what); err != nil {
		f.fault = core.Fail(503, "busy, try again", err)
		raise(a.L, err.Error())
	}
}

// keyArg is the key that is asked about: a view that the limiter does not keep. dst is room for it.
func keyArg(a vm.Args, f *frame, dst []byte) string {
	if a.Get(1) == lua.LValue(f.conf) && !a.Has(2) {
		key := f.turn.key.of(f.x, dst)
		return unsafe.String(&key[0], len(key))
	}
	return argText(a, 2)
}

// limiterArg is the limiter that is meant, with its name; tier is where the tier may stand, 0 for nowhere.
func limiterArg(a vm.Args, f *frame, tier int) (limit.Limiter, string) {
	l, name := namedLimiter(a, f)
	if tier == 0 || !a.Has(tier) {
		return l, name
	}
	of := argText(a, tier)
	tiered, ok := l.(*limit.Tiered)
	if !ok {
		a.Bad(tier, "the limiter %q has no tiers: add a [limiter.%s.tiers]", visible(name), visible(name))
	}
	if t := tiered.Tier(of); t != nil {
		return t, name
	}
	return l, name
}

func namedLimiter(a vm.Args, f *frame) (limit.Limiter, string) {
	switch v := a.Get(1).(type) {
	case *lua.LTable:
		switch {
		case v != f.conf:
			a.Bad(1, "the name of a limiter or the filter's conf expected, got another table")
		case f.turn.limiter == nil:
			a.Bad(1, `the filter has no limiter of its own: it declares the settings rate = "rate" and limiter = "string"`)
		}
		return f.turn.limiter, f.turn.limits
	case lua.LString:
		if l := f.m.stage.limits.Get(string(v)); l != nil {
			return l, string(v)
		}
		a.Bad(1, "there is no limiter %q: add a [limiter.NAME] with its rate", visible(string(v)))
	}
	a.Bad(1, "the name of a limiter or conf expected, got %s", a.Get(1).Type())
	return nil, ""
}

// slot is what an exchange holds of a limiter of concurrency.
type slot struct {
	limiter limit.Limiter
	key     string
	cost    int64
}

// Release implements core.Releaser.
func (s *slot) Release() { s.limiter.Return(s.key, s.cost) }

func releaseLimit(a vm.Args) int {
	f := current(a.L)
	l, name := limiterArg(a, f, 0)
	if !limit.Slots(l) {
		a.Bad(1, "the limiter %q has no slots: only one with concurrency does", visible(name))
	}
	var buf [128]byte
	key, released := keyArg(a, f, buf[:0]), false
	if limit.Waits(l) {
		wait(a, f, func() { released = dropSlots(f.x, l, key) })
	} else {
		released = dropSlots(f.x, l, key)
	}
	return a.Return(lua.LBool(released))
}

// dropSlots gives back what an exchange holds of a limiter for a key, and tells whether that was anything.
func dropSlots(x *core.Exchange, l limit.Limiter, key string) (released bool) {
	held := x.Held()
	for i := len(held) - 1; i >= 0; i-- {
		if s, ok := held[i].(*slot); ok && s.limiter == l && s.key == key {
			x.Drop(i)
			released = true
		}
	}
	return released
}

func resetLimit(a vm.Args) int {
	f := current(a.L)
	l, _ := limiterArg(a, f, 3)
	if limit.Slots(l) {
		a.Bad(1, "slots are given back with gw.limit.release, not reset")
	}
	var buf [128]byte
	key := keyArg(a, f, buf[:0])
	var err error
	wait(a, f, func() { err = l.Reset(key) })
	if err != nil {
		return a.Fail("%s", err)
	}
	return a.Return(lua.LTrue)
}

func limitHeaders(a vm.Args) int {
	handle, _ := a.Get(1).(*lua.LUserData)
	var info *limitInfo
	if handle != nil {
		info, _ = handle.Value.(*limitInfo)
	}
	if info == nil {
		a.Bad(1, "the info of gw.limit.take expected, got %s", a.Get(1).Type())
	}
	style := a.OptString(2, "ratelimit")
	switch style {
	case "ratelimit", "x", "draft", "none":
	default:
		a.Bad(2, "%q is no style: ratelimit, x, draft or none", visible(style))
	}
	t := newTable()
	for _, h := range limitFields(style, info.name, info.decision) {
		t.RawSetString(h[0], lua.LString(h[1]))
	}
	return a.Return(t)
}
