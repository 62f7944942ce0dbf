package auth

import (
	"sync"
	"time"
)

// NonceStore remembers which nonces were used. It is safe for concurrent use.
type NonceStore interface {
	// Use tells whether a nonce of an application is used for the first time, and remembers it for at least ttl. What it must ask
	// elsewhere it asks within w. An error, a *Refusal, says that nobody can tell: then the request is not let in.
	Use(w Waiter, app, nonce string, ttl time.Duration) (fresh bool, err error)
}

// DefaultNonces is how many nonces a store in memory holds.
const DefaultNonces = 1 << 20

// Nonces is a store in the memory of one process. It never forgets a nonce before its time: when it is full, new ones are not taken.
type Nonces struct {
	max    int
	clock  func() time.Time
	digest *digester

	mu    sync.Mutex
	slots map[int64]map[ID]struct{} // by the minute in which they are forgotten
	count int
}

// NewNonces makes a store for so many nonces at once; one takes about 80 bytes.
func NewNonces(most int, clock func() time.Time) *Nonces {
	return &Nonces{max: most, clock: clock, digest: newDigester(), slots: map[int64]map[ID]struct{}{}}
}

const nonceSlot = int64(time.Minute)

// Use implements NonceStore.
func (n *Nonces) Use(_ Waiter, app, nonce string, ttl time.Duration) (bool, error) {
	id := n.digest.of([]byte(app), []byte(nonce))
	now := n.clock().UnixNano()
	n.mu.Lock()
	defer n.mu.Unlock()
	for slot, ids := range n.slots {
		if slot*nonceSlot <= now {
			n.count -= len(ids)
			delete(n.slots, slot)
			continue
		}
		if _, used := ids[id]; used {
			return false, nil
		}
	}
	if n.count >= n.max {
		return false, unavailable("as many nonces are in use as are remembered")
	}
	slot := (now+max(int64(ttl), 0))/nonceSlot + 1
	if n.slots[slot] == nil {
		n.slots[slot] = map[ID]struct{}{}
	}
	n.slots[slot][id] = struct{}{}
	n.count++
	return true, nil
}
