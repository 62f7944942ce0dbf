package store

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// End is one of the two ends of a list.
type End bool

// The ends.
const (
	Front End = false
	Back  End = true
)

// Push adds a value to a list at one end and tells how long the list is now. A key without anything gets a list, which lives until it
// is empty, deleted or forgotten, or ends by Expire. The error is ErrNotList or ErrTooLarge.
func (s *Store) Push(key string, v lua.LValue, at End) (int, error) {
	v, size := Own(v)
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e == nil {
		d := new(deque)
		d.push(item{v, size}, at)
		return 1, s.insert(sh, key, &entry{list: d, size: d.bytes()}, 0)
	}
	if e.list == nil {
		return 0, ErrNotList
	}
	if e.base+e.list.bytes()+e.list.growth()+size > s.limit.Load() {
		return 0, ErrTooLarge
	}
	e.list.push(item{v, size}, at)
	return e.list.n, s.resize(sh, e, e.list.bytes())
}

// Pop takes the value at one end off a list; nil when there is none. A list without values is no more. The error is ErrNotList.
func (s *Store) Pop(key string, at End) (lua.LValue, error) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e == nil {
		return nil, nil
	}
	if e.list == nil {
		return nil, ErrNotList
	}
	v := e.list.pop(at)
	if e.list.n == 0 {
		sh.drop(e)
		return v, nil
	}
	return v, s.resize(sh, e, e.list.bytes())
}

// Len is how many values a list has; 0 for a key without anything. The error is ErrNotList.
func (s *Store) Len(key string) (int, error) {
	sh := s.lock(key)
	defer sh.mu.Unlock()
	e := s.find(sh, key)
	if e == nil {
		return 0, nil
	}
	if e.list == nil {
		return 0, ErrNotList
	}
	return e.list.n, nil
}

// deque is a ring of values that grows and shrinks by halves.
type deque struct {
	items  []item
	head   int // place of the first
	n      int
	values int64 // bytes of the values
}

type item struct {
	value lua.LValue
	size  int64
}

const (
	itemCost  = int64(unsafe.Sizeof(item{}))
	leastRoom = 4
)

// bytes is what the list takes.
func (d *deque) bytes() int64 {
	return int64(unsafe.Sizeof(*d)) + int64(len(d.items))*itemCost + d.values
}

// growth is by how much the ring grows at the next push.
func (d *deque) growth() int64 {
	if d.n < len(d.items) {
		return 0
	}
	return int64(d.n) * itemCost
}

func (d *deque) push(it item, at End) {
	if d.n == len(d.items) {
		d.room(max(2*d.n, leastRoom))
	}
	if at == Front {
		d.head = (d.head + len(d.items) - 1) % len(d.items)
		d.items[d.head] = it
	} else {
		d.items[(d.head+d.n)%len(d.items)] = it
	}
	d.n++
	d.values += it.size
}

// pop is for a list with values only.
func (d *deque) pop(at End) lua.LValue {
	i := d.head
	if at == Back {
		i = (d.head + d.n - 1) % len(d.items)
	} else {
		d.head = (d.head + 1) % len(d.items)
	}
	it := d.items[i]
	d.items[i] = item{}
	d.n--
	d.values -= it.size
	if d.n < len(d.items)/4 && len(d.items) > leastRoom {
		d.room(len(d.items) / 2)
	}
	return it.value
}

func (d *deque) room(size int) {
	items := make([]item, size)
	for i := range d.n {
		items[i] = d.items[(d.head+i)%len(d.items)]
	}
	d.items, d.head = items, 0
}
