// Package redis answers what Redis says, within a time limit, and knows whether it can be asked at all.
//
// A [Client] is one connection of the configuration: a single server, the master behind Sentinels, or a Cluster. Commands of many
// goroutines go out pipelined over few connections. Each call ends within the client's time limit whatever Redis does: refuses, swallows
// packets, loads, fails over, answers late. After a few failures in a row calls fail at once, while the client tries by itself until
// Redis answers again; the log has one line for each such episode.
//
//	client, err := redis.New("main", redis.Options{Addresses: []string{"127.0.0.1:6379"}, Timeout: 100 * time.Millisecond}, log)
//	client.Start()
//	v, err := client.Do("GET", "some-key")
//	if _, away := errors.AsType[*redis.Unavailable](err); away {
//		// whoever asked decides what that means
//	}
//	client.Close()
//
// A [Registry] keeps clients by name while generations of the configuration come and go. The package decides nothing about what a
// failure means, and retries nothing that Redis may have done.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Client is a connection of the configuration. It is safe for concurrent use.
type Client struct {
	name    string
	options Options
	log     *slog.Logger
	driver  rueidis.ClientOption
	slots   chan struct{} // one for each call under way

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	once   sync.Once
	mu     sync.Mutex // guards closed, and work against being begun after it
	closed bool
	work   sync.WaitGroup
	link   atomic.Pointer[rueidis.Client]
	linked chan struct{} // closed when there is a first link, or when the first try has failed

	failures atomic.Int32 // in a row
	down     atomic.Bool
	calls    atomic.Uint64
	failed   atomic.Uint64
	episodes atomic.Uint64
}

// maxPending is how many calls may be under way at once. It is less than the driver's queues hold, for they would block without
// regard to time limits.
const maxPending = 512

// New makes a client that has not begun to connect. The error is an *OptionError.
func New(name string, o Options, log *slog.Logger) (*Client, error) {
	o = o.complete()
	driver, err := o.driver()
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Client{name: name, options: o, driver: driver, log: log.With("redis", name), slots: make(chan struct{}, maxPending), linked: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Start begins to connect, in the background. Until then every call fails. Calling it again does nothing.
func (c *Client) Start() {
	c.once.Do(func() { c.begin(c.connect) })
}

// begin runs f in a goroutine that Close waits for; false when the client is closed.
func (c *Client) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

// Close ends every call and closes the connections. It waits until nothing of the client runs any more, which takes as long as one try
// to connect at most.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
	if link := c.link.Load(); link != nil {
		(*link).Close()
	}
}

// settle waits until no call is under way, for a call's time limit at most.
func (c *Client) settle() {
	for range maxPending {
		select {
		case c.slots <- struct{}{}:
		case <-time.After(c.options.Timeout):
			return
		}
	}
}

// Name is the client's name in the configuration.
func (c *Client) Name() string { return c.name }

// Timeout is the time limit of one call.
func (c *Client) Timeout() time.Duration { return c.options.Timeout }

// Cluster tells whether keys live on several servers, so that those of one command must share a hash tag.
func (c *Client) Cluster() bool { return c.options.Cluster }

// Stats is what a client has done so far.
type Stats struct {
	Up       bool   // the last calls were answered
	Calls    uint64 // sent, or to be sent
	Failed   uint64 // of these: Redis could not be asked
	Episodes uint64 // times that it became unavailable
	Pending  int    // calls under way
}

// Stats tells what the client has done.
func (c *Client) Stats() Stats {
	return Stats{Up: c.link.Load() != nil && !c.down.Load(), Calls: c.calls.Load(), Failed: c.failed.Load(), Episodes: c.episodes.Load(), Pending: len(c.slots)}
}

// Do sends one command and returns what Redis says. Errors are *Unavailable when Redis could not be asked in time, *ServerError when it
// says that the command is wrong, and *CommandError for commands that cannot be sent over a shared connection. A nil answer is no error.
func (c *Client) Do(args ...string) (Value, error) { return c.DoWithin(context.Background(), args...) }

// DoWithin is Do for a caller that may have less time than the client's limit. When within ends first, the error is an *Unavailable of its
// cause, and nothing is held against Redis.
func (c *Client) DoWithin(within context.Context, args ...string) (Value, error) {
	shape, err := shapeOf(args)
	if err != nil {
		return Value{}, err
	}
	return c.callFor(within, 1, func(ctx context.Context, link rueidis.Client) (Value, error) {
		cmd, err := shape.build(link, args)
		if err != nil {
			return Value{}, err
		}
		return answer(link.Do(ctx, cmd))
	})
}

// Result is the answer to one command of several.
type Result struct {
	Value Value
	Err   error // as from Do
}

// Pipeline sends several commands in one go, within the time limit of one call. They are no transaction: others may come between
// them, and one may fail without the rest. The error is as from Do when none was answered; otherwise each result has its own.
func (c *Client) Pipeline(commands ...[]string) ([]Result, error) {
	return c.PipelineWithin(context.Background(), commands...)
}

// PipelineWithin is to Pipeline what DoWithin is to Do.
func (c *Client) PipelineWithin(within context.Context, commands ...[]string) ([]Result, error) {
	shapes := make([]shape, len(commands))
	for i, args := range commands {
		var err error
		if shapes[i], err = shapeOf(args); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(commands))
	_, err := c.callFor(within, 1, func(ctx context.Context, link rueidis.Client) (Value, error) {
		built := make([]rueidis.Completed, len(commands))
		for i, args := range commands {
			var err error
			if built[i], err = shapes[i].build(link, args); err != nil {
				return Value{}, err
			}
		}
		var away error
		answered := false
		for i, r := range link.DoMulti(ctx, built...) {
			v, err := answer(r)
			results[i] = Result{v, err}
			if _, ok := errors.AsType[*Unavailable](err); ok {
				away = err
			} else {
				answered = true
			}
		}
		if !answered {
			return Value{}, away
		}
		return Value{}, nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// callFor runs f within the time limit, and within what the caller has, when Redis may be asked, and notes how it ended for so many callers.
func (c *Client) callFor(within context.Context, callers int, f func(context.Context, rueidis.Client) (Value, error)) (Value, error) {
	c.calls.Add(1)
	if c.down.Load() {
		c.failed.Add(1)
		return Value{}, &Unavailable{errDown}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	if within.Done() != nil {
		defer context.AfterFunc(within, cancel)()
	}
	link, err := c.take(ctx)
	if err != nil {
		if cut := cutShort(ctx, within, err); cut != nil {
			return Value{}, cut
		}
		c.failed.Add(1)
		return Value{}, err
	}
	v, err := c.run(ctx, link, f)
	if cut := cutShort(ctx, within, err); cut != nil {
		return Value{}, cut
	}
	c.judge(err, callers)
	return v, err
}

// cutShort is the error of a call that its caller had no more time for, nil when it did not end for that.
func cutShort(ctx, within context.Context, err error) error {
	if _, away := errors.AsType[*Unavailable](err); !away || within.Err() == nil || ctx.Err() != context.Canceled {
		return nil
	}
	return &Unavailable{context.Cause(within)}
}

// take waits for the first connection and for room.
func (c *Client) take(ctx context.Context) (rueidis.Client, error) {
	select {
	case <-c.linked:
	case <-ctx.Done():
		return nil, c.ended()
	}
	link := c.link.Load()
	if link == nil {
		return nil, &Unavailable{errDown}
	}
	select {
	case c.slots <- struct{}{}:
		return *link, nil
	case <-ctx.Done():
		return nil, c.ended()
	}
}

// run calls f and gives the slot back when it has ended. The driver looks at the topology of a Cluster or Sentinels without regard to
// the context, so there f has a goroutine of its own, which keeps the slot for as long as it takes.
func (c *Client) run(ctx context.Context, link rueidis.Client, f func(context.Context, rueidis.Client) (Value, error)) (Value, error) {
	if !c.options.Cluster && c.options.Sentinel == "" {
		defer func() { <-c.slots }()
		return f(ctx, link)
	}
	type ended struct {
		v   Value
		err error
	}
	done := make(chan ended, 1)
	if !c.begin(func() {
		defer func() { <-c.slots }()
		v, err := f(ctx, link)
		done <- ended{v, err}
	}) {
		<-c.slots
		return Value{}, &Unavailable{errClosed}
	}
	select {
	case e := <-done:
		return e.v, e.err
	case <-ctx.Done():
		return Value{}, c.ended()
	}
}

// ended says why the context of a call ended.
func (c *Client) ended() error {
	if c.ctx.Err() != nil {
		return &Unavailable{errClosed}
	}
	return &Unavailable{errTimeout}
}

// Script is a Lua script that Redis runs atomically.
type Script struct{ lua *rueidis.Lua }

// NewScript names a script by its text.
func NewScript(text string) *Script { return &Script{rueidis.NewLuaScript(text)} }

// Run runs a script in one round trip; in a second when Redis does not have it yet. All keys must share a hash tag in a Cluster. A
// connection that broke before anything came back is tried once more, so a script may run twice: it must be one for which that is
// safe.
func (c *Client) Run(s *Script, keys, args []string) (Value, error) {
	return c.runScript(s, 1, keys, args, answer)
}

// RunNumbers is Run for a script whose answer is a list of whole numbers, and which does what so many callers want: when Redis cannot be
// asked, all of them have failed. After an error keys and args may still be read.
func (c *Client) RunNumbers(s *Script, callers int, keys, args []string) ([]int64, error) {
	v, err := c.runScript(s, callers, keys, args, answerNumbers)
	return v.numbers, err
}

func (c *Client) runScript(s *Script, callers int, keys, args []string, answer func(rueidis.RedisResult) (Value, error)) (Value, error) {
	return c.callFor(context.Background(), callers, func(ctx context.Context, link rueidis.Client) (v Value, err error) {
		defer crossed(&err)
		v, err = answer(s.lua.Exec(ctx, link, keys, args))
		if away, ok := errors.AsType[*Unavailable](err); ok && away.broken() && ctx.Err() == nil {
			v, err = answer(s.lua.Exec(ctx, link, keys, args))
		}
		return v, err
	})
}

// String names the client and where it connects to; it has no secrets.
func (c *Client) String() string {
	return fmt.Sprintf("%s (%s)", c.name, strings.Join(c.options.Addresses, ", "))
}

// Log is where the client logs.
func (c *Client) Log() *slog.Logger { return c.log }
