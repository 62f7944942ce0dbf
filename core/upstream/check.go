package upstream

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// The kinds of checks.
const (
	CheckHTTP = "http" // a request, in the upstream's protocol
	CheckTCP  = "tcp"  // a connection, with the TLS handshake where the endpoint has TLS
	CheckGRPC = "grpc" // grpc.health.v1.Health/Check
)

// CheckOptions rule active health: checks that the gateway makes by itself. The zero value makes none.
type CheckOptions struct {
	Kind      string // CheckHTTP, CheckTCP or CheckGRPC; "": no checks
	Method    string
	Path      string         // with its query
	Host      string         // what the checks say as Host
	Service   string         // that is asked about by gRPC
	Status    []StatusRange  // of an endpoint that is well
	Body      *regexp.Regexp // which the answer matches; nil: any
	Interval  time.Duration  // between the beginnings of two checks, give or take a tenth
	Timeout   time.Duration  // for one
	Healthy   int            // successes in a row that bring an endpoint in
	Unhealthy int            // failures in a row that put it out
}

// StatusRange is the statuses from one to another.
type StatusRange struct{ From, To int }

func (o *CheckOptions) equal(other *CheckOptions) bool {
	a, b := *o, *other
	a.Status, b.Status, a.Body, b.Body = nil, nil, nil, nil
	return slices.Equal(o.Status, other.Status) && pattern(o.Body) == pattern(other.Body) && a.Kind == b.Kind && a.Method == b.Method && a.Path == b.Path &&
		a.Host == b.Host && a.Service == b.Service && a.Interval == b.Interval && a.Timeout == b.Timeout && a.Healthy == b.Healthy && a.Unhealthy == b.Unhealthy
}

func pattern(re *regexp.Regexp) string {
	if re == nil {
		return ""
	}
	return re.String()
}

// Checked is what an endpoint's checks have told so far.
type Checked struct {
	On             bool // it is checked
	Passed, Failed uint64
	At             core.Instant // of the last one's end; 0: there was none yet
	Took           time.Duration
	Err            error // of the last one; nil: the endpoint is well
}

// checks are an endpoint's. They live on over reloads, so that a reload neither forgets nor doubles any.
type checks struct {
	passed, failed atomic.Uint64

	mu     sync.Mutex
	run    *checker // nil: none runs
	at     core.Instant
	took   time.Duration
	err    error
	proven bool // the endpoint has been well once: until then each check decides alone
	streak int  // checks in a row that ended like the last one
}

// checker checks one endpoint until it is stopped.
type checker struct {
	opts     CheckOptions
	upstream string
	endpoint *core.Endpoint
	live     *live
	choice   *sync.Mutex // Upstream.mu
	log      *slog.Logger
	probe    func(ctx context.Context) error

	stop  context.CancelFunc
	ended chan struct{}
}

// Watch begins the checks of the upstream's endpoints, or goes on with those of the generation before, at their pace. The gateway calls it when
// the generation has gone live; Retire ends them.
func (u *Upstream) Watch(log *slog.Logger) {
	for _, e := range u.endpoints {
		u.watch(e, log)
	}
}

func (u *Upstream) watch(e *core.Endpoint, log *slog.Logger) {
	l, o := u.live[e.Index], u.opts.Check
	wanted := o.Kind != "" && e.Weight > 0
	if o.Host == "" {
		o.Host = u.authority(e)
	}
	run := l.checks.running()
	if run != nil && wanted && run.opts.equal(&o) {
		return
	}
	l.checks.end()
	if !wanted {
		u.trust(l)
		return
	}
	c := &checker{opts: o, upstream: u.opts.Name, endpoint: e, live: l, choice: u.mu, log: log, ended: make(chan struct{})}
	c.probe = newProbe(&o, e, l.pool, u.opts)
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	l.checks.begin(c)
	go c.loop(ctx)
}

// authority is what goes out as Host to an endpoint when nobody's request stands behind it.
func (u *Upstream) authority(e *core.Endpoint) string {
	if u.opts.Host == "upstream" || u.opts.Host == "client" {
		return e.Authority
	}
	return u.opts.Host
}

// trust lets an endpoint in that checks have put out and that is not checked any more.
func (u *Upstream) trust(l *live) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l.health.admitChecked()
}

func (c *checks) running() *checker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run
}

// begin notes a checker as running. What one with other settings has found does not count.
func (c *checks) begin(run *checker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run, c.streak = run, 0
}

// end stops the checker, if there is one, and waits for it.
func (c *checks) end() {
	c.mu.Lock()
	run := c.run
	c.run = nil
	c.mu.Unlock()
	if run != nil {
		run.stop()
		<-run.ended
	}
}

func (c *checks) state() Checked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Checked{On: c.run != nil, Passed: c.passed.Load(), Failed: c.failed.Load(), At: c.at, Took: c.took, Err: c.err}
}

// Checked tells what the checks of an endpoint have found.
func (u *Upstream) Checked(e *core.Endpoint) Checked { return u.live[e.Index].checks.state() }

// loop checks an endpoint that never was soon, and then again and again. A check that takes longer than the interval delays the next: there is
// never more than one.
func (c *checker) loop(ctx context.Context) {
	defer close(c.ended)
	timer := time.NewTimer(c.first())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := core.Now()
		err := c.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, ErrShort) {
			c.note(err, core.Now().Sub(began))
		}
		timer.Reset(c.pause() - core.Now().Sub(began))
	}
}

// maxSpread bounds how late the first check comes: until then an endpoint is taken to be well.
const maxSpread = time.Second

// first is the time until the first check: some of a tenth of the interval, so that not all endpoints are asked at once when the gateway starts,
// or gets other settings while checks are under way. Whoever checked before has done so not long ago.
func (c *checker) first() time.Duration {
	spread := time.Duration(rand.Int64N(int64(min(c.opts.Interval/10, maxSpread)) + 1))
	s := c.live.checks.state()
	if s.At == 0 {
		return spread
	}
	return max(spread, c.opts.Interval-core.Now().Sub(s.At))
}

// pause is the interval, give or take a tenth, so that many gateways do not come at once.
func (c *checker) pause() time.Duration {
	tenth := int64(c.opts.Interval) / 10
	return c.opts.Interval - time.Duration(tenth) + time.Duration(rand.Int64N(2*tenth+1))
}

var errCheckLate = errors.New("no answer in time")

func (c *checker) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout, errCheckLate)
	defer cancel()
	err := c.probe(ctx)
	if err != nil && context.Cause(ctx) == errCheckLate {
		return errCheckLate
	}
	return err
}

// note counts a check and draws the conclusion.
func (c *checker) note(err error, took time.Duration) {
	s := &c.live.checks
	s.mu.Lock()
	if (err == nil) != (s.err == nil) || s.at == 0 {
		s.streak = 0
	}
	s.streak++
	s.at, s.took, s.err = core.Now(), took, err
	var enough bool
	if err == nil {
		s.passed.Add(1)
		enough = s.streak >= c.opts.Healthy || !s.proven
		s.proven = true
	} else {
		s.failed.Add(1)
		enough = s.streak >= c.opts.Unhealthy || !s.proven
	}
	s.mu.Unlock()
	if enough {
		c.conclude(err)
	}
}

// conclude puts the endpoint in or out, and says so when that changes something.
func (c *checker) conclude(err error) {
	if !c.decide(err == nil) {
		return
	}
	if err != nil {
		c.log.Warn("endpoint is unhealthy", "upstream", c.upstream, "endpoint", c.endpoint.String(), "error", err.Error())
		return
	}
	c.log.Info("endpoint is healthy", "upstream", c.upstream, "endpoint", c.endpoint.String())
}

// decide tells whether it changed anything.
func (c *checker) decide(well bool) bool {
	c.choice.Lock()
	defer c.choice.Unlock()
	h := &c.live.health
	if !well {
		return h.dismissChecked()
	}
	back := h.admitChecked()
	if back {
		c.live.rise.begin(core.Now())
	}
	return back
}
