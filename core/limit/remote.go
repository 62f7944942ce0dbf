package limit

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/redis"
)

//go:embed remote.lua
var remoteText string

var remoteScript = redis.NewScript(remoteText)

// OnStoreError says what becomes of a take when the store cannot be asked.
type OnStoreError uint8

// The choices.
const (
	// StoreErrorLocal decides here, with this gateway's share: the limit by the number of gateways that are known.
	StoreErrorLocal OnStoreError = iota
	// StoreErrorOpen grants.
	StoreErrorOpen
	// StoreErrorClosed refuses, and says that it is for want of the store: Decision.Unavailable.
	StoreErrorClosed
)

// Remote is a token bucket or a quota whose state is in Redis, where all gateways that use the same name see it. A take is one script in one
// round trip, by the server's clock. It ends within the client's time limit; when Redis could not be asked, OnStoreError decides.
type Remote struct {
	store   *Store
	name    string
	policy  atomic.Uint32
	op      atomic.Pointer[operation]
	local   Limiter      // decides while the store is away
	shared  atomic.Int64 // gateways among which local shares
	refused atomic.Uint64
	away    atomic.Uint64
}

// operation is what the script is told of a limiter.
type operation struct {
	args     [4]string // kind and what does not change between takes; of a quota the borders are told by calendar
	limit    int64
	window   time.Duration        // of a bucket
	calendar *calendar            // of a quota
	clock    func() time.Duration // of the calendar
	share    func(gateways int64)
}

// The modes of the script.
const (
	modeAll   = "all"
	modeFirst = "first"
	modePeek  = "peek"
	modeBack  = "back"
	modeLease = "lease"
)

// exact is up to where the script's numbers are exact, with a bucket and a charge added up.
const exact = 1 << 52

// newRemote makes a limiter of checked options.
func newRemote(name string, store *Store, o Options) (*Remote, error) {
	r := &Remote{store: store, name: name}
	op, local, err := r.operation(o, nil)
	if err != nil {
		return nil, err
	}
	r.local = local
	r.op.Store(op)
	r.policy.Store(uint32(o.OnStoreError))
	return r, nil
}

// operation settles options. local is the limiter for when the store is away, made when it is nil.
func (r *Remote) operation(o Options, local Limiter) (*operation, Limiter, error) {
	if o.Kind == KindQuota {
		return r.quotaOperation(o, local)
	}
	t, err := settle(o.Rate, o.Burst)
	if err != nil {
		return nil, nil, err
	}
	if t.count > 1<<53 {
		return nil, nil, fmt.Errorf("rate %s: its fraction is too fine", o.Rate)
	}
	g := gcd(t.count*1000, t.per)
	c, p := t.count*1000/g, t.per/g
	if o.Burst > exact/p {
		return nil, nil, fmt.Errorf("burst %d: Redis counts exactly up to %d at a rate of %s", o.Burst, exact/p, o.Rate)
	}
	bucket, _ := local.(*TokenBucket)
	if bucket == nil {
		if bucket, err = NewTokenBucket(o); err != nil {
			return nil, nil, err
		}
	}
	op := &operation{args: [4]string{"b", itoa(c), itoa(p), itoa(o.Burst)}, limit: o.Burst, window: t.window}
	op.share = func(gateways int64) {
		rate := o.Rate
		if rate.Per > (1<<62)/time.Duration(gateways) {
			return
		}
		rate.Per *= time.Duration(gateways)
		_ = bucket.Set(rate, max(1, o.Burst/gateways)) // what cannot be settled leaves the share as it is
	}
	r.shared.Store(0)
	return op, bucket, nil
}

func (r *Remote) quotaOperation(o Options, local Limiter) (*operation, Limiter, error) {
	q, _ := local.(*Quota)
	if q == nil {
		var err error
		if q, err = NewQuota(o.quota()); err != nil {
			return nil, nil, err
		}
	}
	op := &operation{args: [4]string{"q", itoa(o.Burst)}, limit: o.Burst, calendar: &q.calendar, clock: q.clock}
	op.share = func(gateways int64) { q.Set(max(1, o.Burst/gateways)) }
	r.shared.Store(0)
	return op, q, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// arguments appends the script's five.
func (op *operation) arguments(args []string) []string {
	if op.calendar == nil {
		return append(args, op.args[0], op.args[1], op.args[2], op.args[3], "0")
	}
	s := op.calendar.current(op.clock())
	_, next := op.calendar.unit.Around(s.end)
	return append(args, op.args[0], op.args[1], itoa(s.begin.UnixMilli()), itoa(s.end.UnixMilli()), itoa(next.UnixMilli()))
}

// Take implements Limiter.
func (r *Remote) Take(key string, cost int64) Decision {
	d, err := r.ask(modeAll, key, cost)
	if err != nil {
		return r.without(key, cost)
	}
	if !d.OK {
		r.refused.Add(1)
	}
	return d
}

// ask asks about this limiter alone.
func (r *Remote) ask(mode, key string, cost int64) (Decision, error) {
	op := r.op.Load()
	if cost < 0 {
		return Decision{Limit: op.limit, RetryAfter: Never}, nil
	}
	q := newQuestion(mode, cost).about(op, r.key(key))
	if err := r.store.ask(q); err != nil {
		r.away.Add(1)
		return Decision{}, err
	}
	defer q.free()
	return q.decisions[0], nil
}

// without decides a take while the store is away.
func (r *Remote) without(key string, cost int64) Decision {
	op := r.op.Load()
	switch OnStoreError(r.policy.Load()) {
	case StoreErrorOpen:
		return Decision{OK: true, Limit: op.limit, Remaining: op.limit, Window: op.window}
	case StoreErrorClosed:
		r.refused.Add(1)
		return Decision{Unavailable: true, Limit: op.limit, RetryAfter: time.Second, Window: op.window}
	}
	if n := r.store.Gateways(); r.shared.Swap(n) != n {
		op.share(n)
	}
	d := r.local.Take(key, cost)
	if !d.OK {
		r.refused.Add(1)
	}
	return d
}

// Try implements Limiter: nothing is decided without asking, but what is wrong anyway.
func (r *Remote) Try(string, int64) (d Decision, decided bool) { return Decision{}, false }

// Peek implements Limiter. While the store is away it tells of this gateway's share, whatever OnStoreError says.
func (r *Remote) Peek(key string, cost int64) Decision {
	d, err := r.ask(modePeek, key, cost)
	if err != nil {
		return r.local.Peek(key, cost)
	}
	return d
}

// Return implements Limiter. Nothing is given back while the store is away.
func (r *Remote) Return(key string, cost int64) {
	_, _ = r.ask(modeBack, key, cost)
}

// Reset implements Limiter.
func (r *Remote) Reset(key string) error {
	_, err := r.store.client.Do("DEL", r.key(key))
	_ = r.local.Reset(key)
	return err
}

// set changes rate, burst and policy; the state stays.
func (r *Remote) set(o Options) error {
	op, _, err := r.operation(o, r.local)
	if err != nil {
		return err
	}
	r.op.Store(op)
	r.policy.Store(uint32(o.OnStoreError))
	return nil
}

func (r *Remote) sweepShard(i int) { sweepPart(r.local, i) }

func (r *Remote) refuse(n uint64) { r.refused.Add(n) }

// Usage implements Counted.
func (r *Remote) Usage() Usage {
	u := r.local.(Counted).Usage()
	return Usage{Keys: u.Keys, Refused: r.refused.Load(), Overflowed: u.Overflowed, StoreErrors: r.away.Load()}
}

// key is where the state of a caller's key is. What stands in braces says which server of a Cluster has it: all limiters of one key are on
// the same.
func (r *Remote) key(key string) string { return redisKey(key, r.name) }

// longKey is up to where a key stands in Redis as it is.
const longKey = 160

func redisKey(key, name string) string {
	if key == "" || key[0] == '#' || len(key) > longKey || strings.IndexByte(key, '}') >= 0 {
		sum := sha256.Sum256([]byte(key))
		key = "#" + hex.EncodeToString(sum[:16])
	}
	return "moongate:{" + key + "}:" + name
}

var errAnswer = errors.New("redis gave another answer than the script's")
