package limit

import (
	"slices"
	"strings"
	"time"
)

// A Redis that stands still for a moment does later what it was told, with nobody waiting for its answer any more, and does not hear of what is
// given back meanwhile. Without more such slots would stay taken for as long as a lease, and a key with few of them would be shut out.

// lostSlot is a take that the store may hold though nobody here does.
type lostSlot struct {
	key, member string
	until       time.Duration // its lease has ended by then
}

// mostLost bounds the takes that are remembered; one beyond it ends with its lease.
const mostLost = 10_000

// lose remembers takes that shall be given back.
func (c *RemoteConcurrency) lose(key string, members ...string) {
	key, until := strings.Clone(key), c.clock()+c.lease
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range members {
		if len(c.lost) < mostLost {
			c.lost = append(c.lost, lostSlot{key, m, until})
		}
	}
}

// lostAny tells whether there is something to give back, and forgets what has ended.
func (c *RemoteConcurrency) lostAny() bool {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = slices.DeleteFunc(c.lost, func(s lostSlot) bool { return s.until <= now })
	return len(c.lost) > 0
}

// giveBackLost gives back what was lost. What the store does not hear of stays lost.
func (c *RemoteConcurrency) giveBackLost() {
	c.mu.Lock()
	lost := c.lost
	c.lost = nil
	c.mu.Unlock()
	slices.SortFunc(lost, func(a, b lostSlot) int { return strings.Compare(a.key, b.key) })
	for len(lost) > 0 {
		var members []string
		for _, s := range lost[:min(len(lost), keepAtOnce)] {
			if s.key == lost[0].key {
				members = append(members, s.member)
			}
		}
		if _, err := c.ask("back", lost[0].key, 0, members...); err != nil {
			c.mu.Lock()
			c.lost = append(lost, c.lost...)
			c.mu.Unlock()
			return
		}
		lost = lost[len(members):]
	}
}
