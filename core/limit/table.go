package limit

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// moved stands in a slot whose bucket has gone to the shard's next table: look again.
const moved = math.MinInt64

// slot is one bucket: the key's hash (0: free) and its theoretical arrival time, the moment at which it is full again.
type slot struct {
	hash atomic.Uint64
	tat  atomic.Int64
}

// table is one shard's buckets under one set of terms: open addressing with the slots inline, four to a cache line. A search begins at
// the line that the hash names, so that most takes touch one, though the table is full but for a fifth to two fifths: what a take over many
// keys costs is the time until that line has come, and the fewer lines there are, the more of them a cache has. Slots are added under the shard's mutex and read without; they are never freed, only left behind when the
// next table is built. Times are in the terms' units since epoch.
type table struct {
	terms
	epoch    time.Duration
	horizon  uint64 // nanoseconds since epoch that the units can tell
	far      bool   // larger than what a processor keeps near
	slots    []slot // whole lines, never all taken
	used     int    // guarded by the shard's mutex
	sweepAt  time.Duration
	overflow atomic.Int64 // arrival time of the bucket that keys share once the shard is at its ceiling
}

// lineSlots is how many slots have room in a cache line.
const lineSlots = 4

// nearSlots is how many slots a table has at most that a processor keeps near: with those of the other shards a megabyte.
const nearSlots = 1 << 20 / 16 / shardCount

// newTable makes a table with room for so many buckets and two thirds more.
func newTable(t terms, epoch time.Duration, buckets int) *table {
	size := max(2*lineSlots, (buckets+buckets*2/3+lineSlots-1)/lineSlots*lineSlots)
	return &table{terms: t, epoch: epoch, horizon: uint64(t.horizon()), far: size > nearSlots, slots: make([]slot, size)}
}

// covers says that now can be told in the table's units.
func (t *table) covers(now time.Duration) bool { return uint64(now-t.epoch) < t.horizon }

func (t *table) at(now time.Duration) int64 { return int64(now-t.epoch) * t.count }

// crowded says that one more bucket would make probing slow.
func (t *table) crowded() bool { return t.used+1 > len(t.slots)*13/16 }

// line is where the search for a hash begins: the first bits name the shard, those behind them the line.
func (t *table) line(hash uint64) int {
	n, _ := bits.Mul64(hash<<(64-shardShift), uint64(len(t.slots)/lineSlots))
	return int(n) * lineSlots
}

// find gives the arrival time of the bucket with that hash, nil if there is none.
func (t *table) find(hash uint64) *atomic.Int64 {
	slots := t.slots
	for i := t.line(hash); ; i++ {
		if i >= len(slots) {
			i = 0
		}
		s := &slots[i]
		switch s.hash.Load() {
		case hash:
			return &s.tat
		case 0:
			return nil
		}
	}
}

// add places a bucket that is not there yet. The hash is written last: it is what readers look for.
func (t *table) add(hash uint64, tat int64) *atomic.Int64 {
	i := t.line(hash)
	for t.slots[i].hash.Load() != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	s := &t.slots[i]
	s.tat.Store(tat)
	s.hash.Store(hash)
	t.used++
	return &s.tat
}

// bucket is a bucket between two tables: what it owes, in the old table's units.
type bucket struct {
	hash uint64
	debt int64
}

// rebuild empties the table into a new one whose epoch is now, under next terms. Buckets that are full again are
// forgotten: nobody can tell them from new ones. Takers that meet a moved slot wait for the shard's mutex.
func (t *table) rebuild(next terms, now time.Duration) *table {
	// Long after the horizon all buckets are full, and the moment need not be told any further.
	at := t.at(min(now, t.epoch+5*time.Duration(t.horizon)))
	var live []bucket
	for i := range t.slots {
		s := &t.slots[i]
		hash := s.hash.Load()
		if hash == 0 {
			continue
		}
		if debt := s.tat.Swap(moved) - at; debt > 0 {
			live = append(live, bucket{hash, debt})
		}
	}
	fresh := newTable(next, now, len(live)+1)
	for _, b := range live {
		fresh.add(b.hash, next.convert(b.debt, &t.terms))
	}
	if debt := t.overflow.Swap(moved) - at; debt > 0 {
		fresh.overflow.Store(next.convert(debt, &t.terms))
	}
	return fresh
}
