package luaapi

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.cache: what is dear to make, kept for a while and made by one for all.

const cacheScope = " What a filter keeps is its own, for all VMs, and lives on over reloads that leave its script, its libraries and its settings as they are."

var cacheFuncs = []vm.Func{
	{Name: "gw.cache.get_or", Phases: phaseRun,
		Doc: "Gives what the filter keeps under a key, or calls loader to make it. Of all requests that want a key at once one calls its loader, the " +
			"others wait for what it gives. The loader gives a value, which is kept for ttl, or `nil` or `nil, err`, which is kept for `negative`; " +
			"after value and err it may give another ttl in seconds, 0 to keep nothing. When it raises, all who wait raise; with `stale` those who " +
			"ask get the old value and err. A table is kept as a read-only copy." + cacheScope,
		Params: list(keyParam, p("ttl", "number", "seconds"), p("loader", "fun(): any, string?, number?", ""),
			opt("options", "gw.CacheOptions", "`stale`: seconds for which an old value may stand in while a new one cannot be had or is being made, "+
				"default 0; `negative`: seconds, default 1; `jitter`: by up to which part, 0 to 1, ttl is shortened at random, default 0; `wait`: "+
				"seconds to wait for another's loader, default 5")),
		Returns: list(p("value", "any", "nil when there is none"), p("err", "string?", "why there is none, or why the value is old")),
		Do:      getOrLoad},
	{Name: "gw.cache.get", Phases: phaseRun,
		Doc:     "Gives what the filter keeps under a key; nil when there is nothing or its time is over.",
		Params:  list(keyParam),
		Returns: list(p("value", "any", "")),
		Do: func(a vm.Args) int {
			c := openCache(a)
			var buf [cacheKeyRoom]byte
			key := c.key(buf[:0], argText(a, 1))
			found := c.get(unsafe.String(&key[0], len(key)))
			if found == nil || c.now() >= found.fresh {
				c.misses.Add(1)
				a.L.Push(lua.LNil)
				return 1
			}
			c.hits.Add(1)
			a.L.Push(found.LValue)
			return 1
		}},
	{Name: "gw.cache.set", Phases: phaseRun,
		Doc:     "Keeps a value for ttl, in the place of what the key has. A table is kept as a read-only copy." + cacheScope,
		Params:  list(keyParam, p("value", "any", "string, number, boolean or table"), p("ttl", "number", "seconds")),
		Returns: list(p("ok", "boolean?", ""), p("err", "string?", "`too large`")),
		Do: func(a vm.Args) int {
			c := openCache(a)
			key := string(c.key(nil, argText(a, 1)))
			v, size := keepable(a, "a cached value", a.Any(2))
			ttl := secondsArg(a, 3)
			if !c.put(key, &cached{LValue: v, fresh: c.now().Add(ttl)}, size, ttl) {
				return a.Fail("too large")
			}
			a.L.Push(lua.LTrue)
			return 1
		}},
	{Name: "gw.cache.delete", Phases: phaseRun,
		Doc:     "Takes a key away and tells whether it was there.",
		Params:  list(keyParam),
		Returns: list(p("deleted", "boolean", "")),
		Do: func(a vm.Args) int {
			c := openCache(a)
			a.L.Push(lua.LBool(c.values.Delete(string(c.key(nil, argText(a, 1))))))
			return 1
		}},
}

// cacheKeyRoom is the length of keys that need no memory of their own to be looked up.
const cacheKeyRoom = 128

// cacheOptions are those of gw.cache.get_or.
type cacheOptions struct {
	ttl, stale, negative, wait time.Duration
	jitter                     float64
}

var cacheOptionFields = []vm.Param{
	opt("stale", "number", "seconds for which an old value may stand in; default 0"),
	opt("negative", "number", "seconds for which it is remembered that there is none; default 1"),
	opt("jitter", "number", "by up to which part, 0 to 1, ttl is shortened at random; default 0"),
	opt("wait", "number", "seconds to wait for another's loader; default 5"),
}

func openCache(a vm.Args) *numberedCache {
	var h *cacheHandle
	switch slot := a.VM.Slot.(type) {
	case *frame:
		h = slot.turn.cache
	case *timerRun:
		h = slot.cache
	}
	if h == nil {
		a.Raise("%s has no filter here whose cache it could be: the script has several settings, so declare the timer in init", a.Func.Name)
	}
	return h.open(worldOf(a.VM).shared)
}

func getOrLoad(a vm.Args) int {
	c := openCache(a)
	text := argText(a, 1)
	ttl := secondsArg(a, 2)
	loader := a.Function(3)
	var buf [cacheKeyRoom]byte
	key := c.key(buf[:0], text)
	found := c.get(unsafe.String(&key[0], len(key)))
	if found != nil && c.now() < found.fresh {
		c.hits.Add(1)
		return found.push(a)
	}
	return loadOrWait(a, c, string(key), found, loader, cacheOptionsArg(a, 4, ttl))
}

// loadOrWait makes the value, or waits for who makes it. Nobody waits where an old value may stand in.
func loadOrWait(a vm.Args, c *numberedCache, key string, old *cached, loader *lua.LFunction, o cacheOptions) int {
	began := core.Now()
	for {
		f, fresh, leads := c.board(key, a.VM)
		switch {
		case fresh != nil:
			c.hits.Add(1)
			return fresh.push(a)
		case leads:
			c.misses.Add(1)
			return load(a, c, key, f, old, loader, o)
		case old.usable():
			c.stale.Add(1)
			return old.push(a)
		case f.owner == a.VM:
			a.Raise("%s: the loader of this key asks for the key itself", a.Func.Name)
		}
		c.waited.Add(1)
		left := o.wait - core.Now().Sub(began)
		if err := await(a, f, left); err != nil {
			return a.Fail("%s", err)
		}
		if f.result != nil {
			return f.result.push(a)
		}
	}
}

var errLoading = errors.New("timed out while another request loads it")

// await waits for the end of a flight.
func await(a vm.Args, f *flight, limit time.Duration) error {
	if limit <= 0 {
		return errLoading
	}
	landed := false
	err := outside(a, limit, func(ctx context.Context) {
		select {
		case <-f.done:
			landed = true
		case <-ctx.Done():
		}
	})
	if err == nil && !landed {
		err = errLoading
	}
	return err
}

// load runs the loader for all who want the key.
func load(a vm.Args, c *numberedCache, key string, f *flight, old *cached, loader *lua.LFunction, o cacheOptions) int {
	var result *cached
	defer func() { c.land(key, f, result) }() // a spent budget goes through here, and gives the run up
	top := a.L.GetTop()
	raised, failed := a.Try(loader)
	if failed && gaveUp(a) {
		a.L.Error(raised, 0)
	}
	if !failed && a.L.Get(top+1) != lua.LNil {
		result = keepLoaded(a, c, key, top, o)
		return result.push(a)
	}
	none := &cached{LValue: lua.LNil, raised: failed, fresh: c.now().Add(o.negative)}
	if failed {
		none.err = raisedText(raised)
	} else {
		none.err, _ = text(a.L.Get(top + 2))
	}
	switch {
	case none.err == "" && !failed:
		c.loaded.Add(1)
	default:
		c.failed.Add(1)
		if old.usable() {
			result = standIn(a, c, key, old, none)
			return result.push(a)
		}
	}
	c.put(key, none, 0, o.negative)
	result = none
	if failed {
		a.L.Error(raised, 0) // as it was raised
	}
	return result.push(a)
}

// keepLoaded keeps the value that a loader left on the stack above top, with the ttl that it may have given.
func keepLoaded(a vm.Args, c *numberedCache, key string, top int, o cacheOptions) *cached {
	v, size := keepable(a, "what the loader gives", a.L.Get(top+1))
	ttl := o.ttl
	if own, ok := a.L.Get(top + 3).(lua.LNumber); ok {
		ttl = seconds(float64(own))
	}
	ttl -= time.Duration(o.jitter * rand.Float64() * float64(ttl))
	made := &cached{LValue: v, fresh: c.now().Add(ttl)}
	life := ttl + o.stale
	if ttl <= 0 {
		life = 0
	}
	c.put(key, made, size, life)
	c.loaded.Add(1)
	return made
}

// standIn lets an old value stand in for one that could not be made, until the next try.
func standIn(a vm.Args, c *numberedCache, key string, old, failed *cached) *cached {
	c.stale.Add(1)
	again := &cached{LValue: old.LValue, err: failed.err, fresh: failed.fresh}
	if left, ok := c.values.TTL(key); ok {
		_, size := keepable(a, "a cached value", again.LValue)
		c.put(key, again, size, left)
	}
	now := c.now()
	if last := c.complained.Load(); last == 0 || now.Sub(core.Instant(last)) >= time.Second {
		c.complained.Store(int64(now))
		worldOf(a.VM).log.LogAttrs(context.Background(), slog.LevelWarn, "cache not refreshed, old value stands in",
			append(frameAttrs(a.VM), slog.String("error", clipped(failed.err)))...)
	}
	return again
}

// push gives a result to a script.
func (c *cached) push(a vm.Args) int {
	if c.raised {
		a.L.Error(lua.LString(c.err), 0)
	}
	a.L.Push(c.LValue)
	if c.err == "" {
		return 1
	}
	a.L.Push(lua.LString(c.err))
	return 2
}

// gaveUp tells whether a loader failed for a reason of its own request's: the client has left.
func gaveUp(a vm.Args) bool {
	f, _ := a.VM.Slot.(*frame)
	return f != nil && f.fault != nil
}

func raisedText(v lua.LValue) string {
	if s, ok := text(v); ok {
		return s
	}
	if t, ok := v.(*lua.LTable); ok {
		if out, err := encodeJSON(nil, t, maxLogged); err == nil {
			return string(out)
		}
	}
	return "the loader raised a " + v.Type().String()
}

// keepable gives a value as a cache keeps it for all VMs, and how much memory it takes.
func keepable(a vm.Args, what string, v lua.LValue) (lua.LValue, int64) {
	v, size := store.Own(plain(a.L, what, v))
	if t, ok := v.(*lua.LTable); ok {
		size = weight(a.VM, vm.Thaw(t))
	}
	return v, size
}

const (
	// tableWeight is what a read-only table takes, entryWeight what each of its entries does beside its texts.
	tableWeight = 3 << 10
	entryWeight = 96
)

// weight is about what the memory of a table is.
func weight(of *vm.VM, t *lua.LTable) int64 {
	sum := int64(tableWeight)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		of.Charge(4)
		sum += entryWeight + textWeight(key) + textWeight(v)
		if nested, ok := v.(*lua.LTable); ok {
			sum += weight(of, vm.Thaw(nested))
		}
	}
	return sum
}

func textWeight(v lua.LValue) int64 {
	if s, ok := text(v); ok && v.Type() != lua.LTNumber {
		return int64(len(s)) + 16
	}
	return 8
}

// secondsArg is a time above 0.
func secondsArg(a vm.Args, i int) time.Duration {
	n := a.Number(i)
	if !(n > 0 && n < 1e9) {
		a.Bad(i, "seconds above 0 expected")
	}
	return seconds(n)
}

// seconds is a time of 0 or more; what is no number is 0.
func seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	return max(time.Duration(min(n, 1e9)*float64(time.Second)), 1)
}

func cacheOptionsArg(a vm.Args, i int, ttl time.Duration) cacheOptions {
	o := cacheOptions{ttl: ttl, negative: time.Second, wait: 5 * time.Second}
	if !a.Has(i) {
		return o
	}
	t := a.Readable(i)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		n, ok := v.(lua.LNumber)
		if !ok || !(n >= 0) {
			a.Bad(i, "%s is %s: a number of 0 or more expected", describe(key), describe(v))
		}
		switch name, _ := key.(lua.LString); name {
		case "stale":
			o.stale = seconds(float64(n))
		case "negative":
			o.negative = seconds(float64(n))
		case "wait":
			o.wait = seconds(float64(n))
		case "jitter":
			if o.jitter = float64(n); n > 1 {
				a.Bad(i, "jitter is a part of ttl, from 0 to 1")
			}
		default:
			a.Bad(i, "there is no option %s: there are stale, negative, jitter, wait", describe(key))
		}
	}
	return o
}
