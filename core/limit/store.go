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

	coalescer coalescer
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
	s := &Store{client: client, id: rand.Text(), start: time.Now()}
	s.coalescer.store = s
	s.coalescer.apart.Store(client.Cluster())
	return s
}

// Gateways is how many gateways are known to use the store, this one included; at least 1.
func (s *Store) Gateways() int64 { return max(s.known.Load(), s.least.Load(), 1) }

// ask has a question answered. It may be freed unless there is an error.
func (s *Store) ask(q *question) error { return s.coalescer.ask(q) }

// heard notes what came of asking.
func (s *Store) heard(err error) {
	if err != nil {
		s.complain(err)
		return
	}
	s.broken.Store(false)
	s.tell()
}

// runSlots runs the script of slots, which gives one decision.
func (s *Store) runSlots(op *operation, key string, args []string) (Decision, error) {
	numbers, err := s.client.RunNumbers(slotsScript, 1, []string{key}, args)
	if err == nil && len(numbers) != 4 {
		err = errAnswer
	}
	s.heard(err)
	if err != nil {
		return Decision{}, err
	}
	return op.decision(numbers), nil
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
