package upstream

import "sync/atomic"

// Detach takes a connection that has switched protocols out of the pool, whose room is free again. Whoever uses the connection
// closes it.
func (p *Pool) Detach(*Conn) { p.free(nil) }

// upgrades counts the connections to an upstream that have switched protocols, or are about to.
type upgrades struct {
	open    atomic.Int64
	refused atomic.Uint64
}

// EnterUpgrade takes a place for a connection that is to switch protocols. It tells false when there is none; LeaveUpgrade gives it back.
func (u *Upstream) EnterUpgrade() bool {
	if n := u.upgrades.open.Add(1); u.opts.Upgrades == 0 || n <= int64(u.opts.Upgrades) {
		return true
	}
	u.upgrades.open.Add(-1)
	u.upgrades.refused.Add(1)
	return false
}

// LeaveUpgrade gives a place back.
func (u *Upstream) LeaveUpgrade() { u.upgrades.open.Add(-1) }

// UpgradesRefused counts how often there was no place.
func (u *Upstream) UpgradesRefused() uint64 { return u.upgrades.refused.Load() }
