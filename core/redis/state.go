package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

const (
	// tripAfter is how many calls in a row must fail before Redis counts as unavailable.
	tripAfter = 3
	// firstPause and longestPause bound the wait between two tries to reach a Redis that is unavailable.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// patience is how long such a try may take at least; it bounds connecting too.
	patience = time.Second
)

// connect makes the first link and, while that fails, tries again.
func (c *Client) connect() {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		link, err := rueidis.NewClient(c.driver)
		if err == nil {
			c.link.Store(&link)
			c.recovered()
			c.open()
			return
		}
		if link != nil {
			link.Close()
		}
		if c.ctx.Err() != nil {
			return
		}
		c.fall(err)
		c.open()
		if !c.rest(pause) {
			return
		}
	}
}

// open lets calls through that waited for the first link. Only connect calls it.
func (c *Client) open() {
	select {
	case <-c.linked:
	default:
		close(c.linked)
	}
}

// judge notes how a call ended that was made for so many callers.
func (c *Client) judge(err error, callers int) {
	away, ok := errors.AsType[*Unavailable](err)
	switch {
	case !ok:
		if c.failures.Load() != 0 {
			c.failures.Store(0)
		}
		return
	case c.ctx.Err() != nil:
		return
	}
	c.failed.Add(1)
	if c.failures.Add(int32(callers)) >= tripAfter && c.fall(away.Cause) {
		c.begin(c.recover)
	}
}

// fall begins an episode, unless one is under way.
func (c *Client) fall(cause error) bool {
	if !c.down.CompareAndSwap(false, true) {
		return false
	}
	c.episodes.Add(1)
	c.log.Warn("redis is unavailable", "error", cause.Error())
	return true
}

// recovered ends an episode.
func (c *Client) recovered() {
	c.failures.Store(0)
	if c.down.CompareAndSwap(true, false) {
		c.log.Debug("redis is available again")
	}
}

// recover tries until Redis answers.
func (c *Client) recover() {
	for pause := firstPause; c.rest(pause); pause = min(2*pause, longestPause) {
		if c.ping() == nil {
			c.recovered()
			return
		}
	}
}

// ping asks Redis for a sign of life. A server that is there and cannot serve (it loads, it is a replica without a master) gives none.
func (c *Client) ping() error {
	ctx, cancel := context.WithTimeout(c.ctx, max(patience, c.options.Timeout))
	defer cancel()
	link := *c.link.Load()
	done := make(chan error, 1)
	c.begin(func() { // the driver may not mind the context
		_, err := answer(link.Do(ctx, link.B().Arbitrary("EVAL", "return redis.call('EXISTS', KEYS[1])", "1").Keys(probeKey).Build()))
		if _, wrong := errors.AsType[*ServerError](err); wrong {
			err = nil // not allowed, say: it answers all the same
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return c.ended()
	}
}

// probeKey is a key that nobody writes.
const probeKey = "moongate:probe"

// rest waits; it tells false when the client was closed.
func (c *Client) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}
