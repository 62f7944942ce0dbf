package server

import (
	"sync"
	"syscall"
)

// watcher is told by the kernel (epoll, EPOLLRDHUP, one-shot) when a watched client closes its end. Pipelined bytes in front of the end do
// not hide it.
type watcher struct {
	srv  *Server
	epfd int
	done chan struct{}

	mu     sync.Mutex
	byID   map[uint64]*client
	nextID uint64
	wake   [2]int
	closed bool
	ended  sync.WaitGroup
}

func newWatcher(s *Server) *watcher {
	w := &watcher{srv: s, done: make(chan struct{}), byID: map[uint64]*client{}, nextID: 1}
	var err error
	if w.epfd, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err == nil {
		err = syscall.Pipe2(w.wake[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK)
	}
	if err == nil {
		err = syscall.EpollCtl(w.epfd, syscall.EPOLL_CTL_ADD, w.wake[0], &syscall.EpollEvent{Events: syscall.EPOLLIN})
	}
	if err != nil {
		s.log.Error("clients that leave will not be noticed", "error", err)
		w.epfd = -1
		return w
	}
	w.ended.Go(w.sweep)
	w.ended.Go(w.wait)
	return w
}

// rdhup is EPOLLRDHUP with the one-shot flag; package syscall spells the latter as a negative constant on some systems.
const rdhup = uint32(0x2000 | 1<<30)

func (w *watcher) arm(c *client) {
	rc := descriptor(c.conn.NetConn())
	if rc == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	op := syscall.EPOLL_CTL_MOD
	if c.id == 0 {
		op = syscall.EPOLL_CTL_ADD
		c.id = w.nextID
		w.nextID++
		w.byID[c.id] = c
	}
	ev := syscall.EpollEvent{Events: rdhup, Fd: int32(c.id), Pad: int32(c.id >> 32)}
	_ = rc.Control(func(fd uintptr) { _ = syscall.EpollCtl(w.epfd, op, int(fd), &ev) })
}

// forget is called before a client's descriptor can be used by another.
func (w *watcher) forget(c *client) {
	if c.id == 0 {
		return
	}
	w.mu.Lock()
	delete(w.byID, c.id)
	w.mu.Unlock()
}

func (w *watcher) wait() {
	events := make([]syscall.EpollEvent, 64)
	for {
		n, err := syscall.EpollWait(w.epfd, events, -1)
		if err != nil && err != syscall.EINTR {
			return
		}
		for i := range max(n, 0) {
			id := uint64(uint32(events[i].Fd)) | uint64(uint32(events[i].Pad))<<32
			if id == 0 {
				return
			}
			w.mu.Lock()
			c := w.byID[id]
			w.mu.Unlock()
			if c != nil {
				c.left()
			}
		}
	}
}

func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.epfd < 0 {
		return
	}
	w.closed = true
	close(w.done)
	_, _ = syscall.Write(w.wake[1], []byte{0})
	w.mu.Unlock()
	w.ended.Wait()
	w.mu.Lock()
	_ = syscall.Close(w.epfd)
	_ = syscall.Close(w.wake[0])
	_ = syscall.Close(w.wake[1])
}
