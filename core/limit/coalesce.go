package limit

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core/redis"
)

// coalescer has the questions of many callers answered by few runs of the script. Whoever comes alone is asked for at once. While runs are
// under way further questions gather, and go together when one of the runs has ended, but none waits for that longer than gatherTime. Each
// caller waits for the client's time limit at most, whatever becomes of the others.
//
// In a Cluster the keys of different callers are on different servers: there each question goes by itself.
type coalescer struct {
	store *Store
	apart atomic.Bool // each question goes by itself

	mu      sync.Mutex
	waiting []*question // only while there are mostRuns
	running int
	began   time.Duration // the latest run, since the store's start
	armed   bool          // late is to be called
}

const (
	// mostRuns is how many runs are under way before questions gather.
	mostRuns = 2
	// mostTogether bounds the keys of one run, and so how long Redis is busy with it; a question has all of its keys in one.
	mostTogether = 128
	// gatherTime is how long a question waits for runs that are under way.
	gatherTime = time.Millisecond
)

// ask has a question answered: its decisions are there when there is no error. A question that was given up must not be used again.
func (c *coalescer) ask(q *question) error {
	if c.apart.Load() {
		return c.alone(q)
	}
	c.mu.Lock()
	if c.running < mostRuns {
		c.running++
		c.began = c.now()
		c.mu.Unlock()
		err := c.alone(q)
		if p := c.next(); p != nil {
			go c.run(p)
		}
		return err
	}
	c.waiting = append(c.waiting, q)
	if !c.armed {
		c.arm()
	}
	c.mu.Unlock()
	return c.await(q)
}

func (c *coalescer) now() time.Duration { return time.Since(c.store.start) }

// await waits for the answer.
func (c *coalescer) await(q *question) error {
	q.patience.Reset(c.store.client.Timeout())
	select {
	case <-q.answered:
		q.patience.Stop()
		return q.err
	case <-q.patience.C:
		c.mu.Lock()
		q.givenUp = true
		c.mu.Unlock()
		return redis.ErrTimeout
	}
}

// arm has late called when those that wait have waited long enough. The caller holds the mutex.
func (c *coalescer) arm() {
	c.armed = true
	time.AfterFunc(max(c.began+gatherTime-c.now(), 0), c.late)
}

// late asks what has waited long enough, though there are runs under way.
func (c *coalescer) late() {
	c.mu.Lock()
	c.armed = false
	var p *paper
	if c.now()-c.began >= gatherTime {
		p = c.gather()
	}
	if len(c.waiting) > 0 {
		c.arm()
	}
	c.mu.Unlock()
	if p != nil {
		c.run(p)
	}
}

// next notes that a run has ended, and gives what to run now; nil: nothing.
func (c *coalescer) next() *paper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running >= mostRuns {
		return nil
	}
	return c.gather()
}

// gather begins a run with those that wait longest; nil when nobody does. The caller holds the mutex.
func (c *coalescer) gather() *paper {
	if len(c.waiting) == 0 {
		return nil
	}
	p := newPaper()
	n := 0
	for keys := 0; n < len(c.waiting) && keys < mostTogether; n++ {
		if q := c.waiting[n]; !q.givenUp {
			p.asked = append(p.asked, q)
			keys += len(q.keys)
		}
	}
	rest := copy(c.waiting, c.waiting[n:])
	clear(c.waiting[rest:])
	c.waiting = c.waiting[:rest]
	if len(p.asked) == 0 { // all of them have given up
		p.free()
		return nil
	}
	c.running++
	c.began = c.now()
	return p
}

// run has questions answered, and goes on while there are others to run.
func (c *coalescer) run(p *paper) {
	for p != nil {
		later := p.write()
		err := c.send(p)
		if _, said := errors.AsType[*redis.ServerError](err); said && len(p.asked) > 1 {
			c.singly(p.asked, err)
		} else {
			for _, q := range p.asked {
				q.err = err
				q.answered <- struct{}{}
			}
		}
		if err == nil {
			p.free()
		}
		if p = later; p == nil {
			p = c.next()
		}
	}
}

// singly asks one by one, for Redis will not have them together: what is wrong with one does not concern the others. Nothing has been
// charged: the script writes when all is decided.
func (c *coalescer) singly(asked []*question, err error) {
	if strings.HasPrefix(err.Error(), "CROSSSLOT") { // a Cluster that looks like one server
		c.apart.Store(true)
	}
	for _, q := range asked {
		go func() {
			q.err = c.alone(q)
			q.answered <- struct{}{}
		}()
	}
}

// alone asks one question.
func (c *coalescer) alone(q *question) error {
	p := newPaper()
	p.asked = append(p.asked, q)
	p.write()
	err := c.send(p)
	if err == nil {
		p.free()
	}
	return err
}

// send runs the script. On an error the paper may still be read.
func (c *coalescer) send(p *paper) error {
	numbers, err := c.store.client.RunNumbers(remoteScript, len(p.asked), p.keys, p.arguments())
	if err == nil {
		err = p.answer(numbers)
	}
	c.store.heard(err)
	return err
}
