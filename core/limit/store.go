package limit

import (
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/redis"
)

// Store is a Redis in which limiters keep their state. It knows how many gateways use it: each tells of itself now and then, with the takes
// that it makes.
type Store struct {
	client *redis.Client
	id     string
	start  time.Time
	told   atomic.Int64 // when this gateway last told of itself, since start
	known  atomic.Int64
	least  atomic.Int64 // gateways that the configuration says there are
	broken atomic.Bool  // the last answer was an error of the server's
}

const (
	tellEvery = 5 * time.Second
	// forgetAfter is how long a gateway that says nothing is counted, in milliseconds.
	forgetAfter = "30000"
	gatewaysKey = "moongate:{gateways}"
)

var tellScript = redis.NewScript(`
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZADD", KEYS[1], now, ARGV[1])
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", string.format("%.0f", now - ARGV[2]))
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return redis.call("ZCARD", KEYS[1])`)

func newStore(client *redis.Client) *Store {
	return &Store{client: client, id: rand.Text(), start: time.Now()}
}

// Gateways is how many gateways are known to use the store, this one included; at least 1.
func (s *Store) Gateways() int64 { return max(s.known.Load(), s.least.Load(), 1) }

// run runs the script of limits and gives a decision for each operation.
func (s *Store) run(ops []*operation, keys, args []string) ([]Decision, error) {
	decisions, _, err := s.lease(ops, keys, args)
	return decisions, err
}

// lease is run that tells how much a lease of the last operation brought, too.
func (s *Store) lease(ops []*operation, keys, args []string) (decisions []Decision, got int64, err error) {
	return s.ask(remoteScript, ops, keys, args)
}

// runScript is run for another script with the same answer.
func (s *Store) runScript(script *redis.Script, ops []*operation, keys, args []string) ([]Decision, error) {
	decisions, _, err := s.ask(script, ops, keys, args)
	return decisions, err
}

func (s *Store) ask(script *redis.Script, ops []*operation, keys, args []string) (decisions []Decision, got int64, err error) {
	v, err := s.client.Run(script, keys, args)
	if err != nil {
		s.complain(err)
		return nil, 0, err
	}
	s.broken.Store(false)
	s.tell()
	if len(v.List) != 4*len(ops) {
		return nil, 0, errAnswer
	}
	decisions = make([]Decision, len(ops))
	for i, op := range ops {
		n := [4]int64{}
		for j := range n {
			n[j] = v.List[4*i+j].Int
		}
		d := Decision{OK: n[0] > 0, Limit: op.limit, Remaining: n[1], RetryAfter: time.Duration(n[2]) * time.Microsecond, Window: op.window,
			owed: n[3] * int64(time.Microsecond), pace: 1}
		if n[2] < 0 {
			d.RetryAfter = Never
		}
		if op.calendar != nil {
			span := op.calendar.current(op.clock())
			d.Window = span.end.Sub(span.begin)
		}
		decisions[i], got = d, n[0]
	}
	return decisions, got, nil
}

// complain logs what Redis has against the script, once for each time that it begins to. That it cannot be asked the client logs.
func (s *Store) complain(err error) {
	if _, said := errors.AsType[*redis.ServerError](err); said && s.broken.CompareAndSwap(false, true) {
		s.client.Log().Warn("redis refuses to keep limits", "error", err.Error())
	}
}

// tell tells Redis that this gateway is there, in the background, when it is time.
func (s *Store) tell() {
	now, told := int64(time.Since(s.start))+1, s.told.Load()
	if told != 0 && now-told < int64(tellEvery) || !s.told.CompareAndSwap(told, now) {
		return
	}
	go func() {
		if v, err := s.client.Run(tellScript, []string{gatewaysKey}, []string{s.id, forgetAfter}); err == nil {
			s.known.Store(v.Int)
		}
	}()
}
