package metrics

import (
	"sync/atomic"
	"time"
)

// Outgoing counts what the gateway asked of one upstream for filters: calls, and copies of requests. It is safe for concurrent use; one
// that is gone only counts for nobody.
type Outgoing struct {
	calls        histogram
	callsFailed  atomic.Uint64
	mirrored     atomic.Uint64
	mirrorFailed atomic.Uint64
	dropped      atomic.Uint64
}

// Called counts a call that was answered, whatever the status, by the time that it took.
func (o *Outgoing) Called(took time.Duration) { o.calls.observe(&requestBounds, took) }

// CallFailed counts a call that got no answer.
func (o *Outgoing) CallFailed() { o.callsFailed.Add(1) }

// Mirrored counts a copy of a request that was answered; MirrorFailed one that was not; MirrorDropped one that was not sent, for want of room
// or because its body was too long.
func (o *Outgoing) Mirrored() { o.mirrored.Add(1) }

// MirrorFailed counts a copy that got no answer.
func (o *Outgoing) MirrorFailed() { o.mirrorFailed.Add(1) }

// MirrorDropped counts a copy that was not sent.
func (o *Outgoing) MirrorDropped() { o.dropped.Add(1) }

// Outgoing gives the handle for an upstream; "" stands for all hosts that URLs lead to. Names that the configuration does not have get a
// handle that counts for nobody.
func (p *Plan) Outgoing(upstream string) *Outgoing {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	owner := p.owner()
	if !owner.asks(upstream) {
		return new(Outgoing)
	}
	return handle(owner.outgoing, p.m.outgoing, upstream)
}

func (p *Plan) asks(upstream string) bool {
	_, known := p.upstreams[upstream]
	return known || upstream == ""
}

func (s *Scrape) outgoing(upstream string, o *Outgoing) {
	s.histogram(callDuration, &o.calls, &requestBounds, upstream)
	s.counter(callErrors, float64(o.callsFailed.Load()), upstream)
	if upstream == "" {
		return // a copy goes to an upstream
	}
	s.counter(mirrorRequests, float64(o.mirrored.Load()), upstream, "success")
	s.counter(mirrorRequests, float64(o.mirrorFailed.Load()), upstream, "failure")
	s.counter(mirrorRequests, float64(o.dropped.Load()), upstream, "dropped")
}

// Mirrors tells how many copies of requests are under way.
func (s *Scrape) Mirrors(inFlight int64) { s.gauge(mirrorInFlight, float64(inFlight)) }

// Delays tells of requests that filters hold back: how many now, how many there were, and how many found no room.
func (s *Scrape) Delays(now int64, all, refused uint64) {
	s.gauge(delayed, float64(now))
	s.counter(delays, float64(all))
	s.counter(delaysRefused, float64(refused))
}
