package limit_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// world is where limiters are made: with their state here or in a Redis, and with time that moves by hand or by itself.
type world struct {
	name    string
	options func(*limit.Options)   // of every limiter that is made
	forward func(time.Duration)    // nil: time moves by itself
	redis   *redis.Client          // nil: none
	another func(*testing.T) world // another gateway of the same Redis
}

// local is a world without a store.
func local(*testing.T) world {
	c := new(clock)
	return world{name: "local", options: func(o *limit.Options) { o.Clock = c.read }, forward: c.forward}
}

// simulated is a world whose Redis is one that runs the scripts in virtual time.
func simulated(t *testing.T) world {
	s := newSimulator(t)
	w := s.world(t, "simulated redis")
	w.another = func(t *testing.T) world { return s.world(t, "another gateway") }
	return w
}

// declare makes a limiter by name; composites by their members.
func (w *world) declare(t *testing.T, p *limit.Plan, name string, o limit.Options) limit.Limiter {
	t.Helper()
	w.options(&o)
	switch o.Kind {
	case limit.KindAll, limit.KindFirst:
		o.Redis, o.Hybrid = nil, false
	case limit.KindConcurrency:
		o.Hybrid = false
	}
	l, err := p.Declare(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// limiter makes a limiter in a registry of its own.
func (w *world) limiter(t *testing.T, o limit.Options) limit.Limiter {
	t.Helper()
	p := new(limit.Registry).Plan()
	l := w.declare(t, p, "limiter", o)
	p.Commit()
	return l
}

// simulator is a Redis that keeps texts with an expiry and runs Lua, with a clock that a test moves.
type simulator struct {
	fake    *redistest.Fake
	clock   clock
	mu      sync.Mutex
	texts   map[string]string
	sorted  map[string]map[string]float64 // sorted sets
	expires map[string]int64              // in milliseconds
	scripts map[string]string
	lua     *lua.LState
	loaded  map[string]*lua.LFunction
	epoch   time.Time
	told    int // times that a gateway has told of itself
}

func newSimulator(t *testing.T) *simulator {
	s := &simulator{fake: redistest.NewFake(t), texts: map[string]string{}, sorted: map[string]map[string]float64{}, expires: map[string]int64{}, scripts: map[string]string{},
		lua: lua.NewState(), loaded: map[string]*lua.LFunction{}, epoch: time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)}
	mod := s.lua.NewTable()
	mod.RawSetString("call", s.lua.NewFunction(s.call))
	s.lua.SetGlobal("redis", mod)
	s.fake.Answer(s.answer)
	return s
}

func (s *simulator) world(t *testing.T, name string) world {
	c := connect(t, redis.Options{Addresses: []string{s.fake.Address}, Timeout: time.Minute})
	return world{name: name, redis: c, forward: s.clock.forward, options: func(o *limit.Options) { o.Redis, o.Clock = c, s.clock.read }}
}

func connect(t testing.TB, o redis.Options) *redis.Client {
	t.Helper()
	c, err := redis.New("main", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func (s *simulator) micros() int64 { return s.epoch.Add(s.clock.read()).UnixMicro() }

func (s *simulator) answer(args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.ToUpper(args[0]) {
	case "EVALSHA":
		text, ok := s.scripts[args[1]]
		if !ok {
			return "-NOSCRIPT No matching script.\r\n"
		}
		return s.run(text, args[2:])
	case "EVAL":
		sum := sha1.Sum([]byte(args[1]))
		s.scripts[hex.EncodeToString(sum[:])] = args[1]
		return s.run(args[1], args[2:])
	case "DEL":
		delete(s.texts, args[1])
		return ":1\r\n"
	case "HGET":
		if text, ok := s.texts[args[1]+"/"+args[2]]; ok {
			return redistest.Bulk(text)
		}
		return "$-1\r\n"
	}
	return ""
}

// run runs a script and writes what it returns as the protocol has it.
func (s *simulator) run(text string, args []string) string {
	L := s.lua
	n, _ := strconv.Atoi(args[0])
	L.SetGlobal("KEYS", table(L, args[1:1+n]))
	L.SetGlobal("ARGV", table(L, args[1+n:]))
	f := s.loaded[text]
	if f == nil {
		var err error
		if f, err = L.LoadString(text); err != nil {
			return fmt.Sprintf("-ERR %s\r\n", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		s.loaded[text] = f
	}
	L.SetTop(0)
	if err := L.CallByParam(lua.P{Fn: f, NRet: 1, Protect: true}); err != nil {
		return fmt.Sprintf("-ERR %s\r\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	list, ok := L.Get(-1).(*lua.LTable)
	if !ok {
		return fmt.Sprintf(":%d\r\n", int64(lua.LVAsNumber(L.Get(-1))))
	}
	out := fmt.Sprintf("*%d\r\n", list.Len())
	for i := 1; i <= list.Len(); i++ {
		out += fmt.Sprintf(":%d\r\n", int64(lua.LVAsNumber(list.RawGetInt(i))))
	}
	return out
}

func table(L *lua.LState, items []string) *lua.LTable {
	t := L.NewTable()
	for _, item := range items {
		t.Append(lua.LString(item))
	}
	return t
}

// call is redis.call.
func (s *simulator) call(L *lua.LState) int {
	for i := 2; i <= L.GetTop(); i++ {
		s.expire(L.Get(i).String())
	}
	key := L.OptString(2, "")
	if key != "moongate:{gateways}" && s.callSorted(L, key) {
		return 1
	}
	switch L.CheckString(1) {
	case "TIME":
		now := s.micros()
		L.Push(table(L, []string{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}))
	case "MGET":
		list := L.NewTable()
		for i := 2; i <= L.GetTop(); i++ {
			var item lua.LValue = lua.LFalse
			if text, ok := s.texts[L.CheckString(i)]; ok {
				item = lua.LString(text)
			}
			list.Append(item)
		}
		L.Push(list)
	case "SET":
		ttl := int64(lua.LVAsNumber(L.Get(5)))
		if ttl <= 0 {
			L.RaiseError("invalid expire time in 'set' command")
		}
		s.texts[key], s.expires[key] = L.CheckString(3), s.micros()/1000+ttl
		L.Push(lua.LString("OK"))
	case "DEL":
		delete(s.texts, key)
		delete(s.sorted, key)
		L.Push(lua.LNumber(1))
	case "PEXPIRE":
		s.expires[key] = s.micros()/1000 + int64(lua.LVAsNumber(L.Get(3)))
		L.Push(lua.LNumber(1))
	case "ZCARD":
		s.told++
		L.Push(lua.LNumber(2))
	default:
		L.Push(lua.LNumber(0))
	}
	return 1
}

// expire forgets a key whose time is over.
func (s *simulator) expire(key string) {
	if at, ok := s.expires[key]; ok && s.micros()/1000 >= at {
		delete(s.texts, key)
		delete(s.sorted, key)
		delete(s.expires, key)
	}
}

// callSorted is redis.call of a sorted set; false when the command is another.
func (s *simulator) callSorted(L *lua.LState, key string) bool {
	set, name := s.sorted[key], L.CheckString(1)
	switch name {
	case "ZSCORE":
		if score, ok := set[L.CheckString(3)]; ok {
			L.Push(lua.LString(strconv.FormatFloat(score, 'f', -1, 64)))
		} else {
			L.Push(lua.LFalse)
		}
	case "ZADD":
		if set == nil {
			set = map[string]float64{}
			s.sorted[key] = set
		}
		set[L.CheckString(4)] = float64(lua.LVAsNumber(L.Get(3)))
		L.Push(lua.LNumber(1))
	case "ZREM":
		_, had := set[L.CheckString(3)]
		delete(set, L.CheckString(3))
		L.Push(map[bool]lua.LNumber{true: 1}[had])
	case "ZRANGEBYSCORE": // from above a bound
		var found []string
		low, _ := strconv.ParseFloat(strings.TrimPrefix(L.CheckString(3), "("), 64)
		high, _ := strconv.ParseFloat(L.CheckString(4), 64)
		for member, score := range set {
			if score > low && score <= high {
				found = append(found, member)
			}
		}
		L.Push(table(L, found))
	default:
		return false
	}
	return true
}

// keys is how many keys the Redis holds that have not expired.
func (s *simulator) keys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key := range s.texts {
		if at, ok := s.expires[key]; !ok || s.micros()/1000 < at {
			n++
		}
	}
	for key := range s.sorted {
		if s.micros()/1000 < s.expires[key] {
			n++
		}
	}
	return n
}
