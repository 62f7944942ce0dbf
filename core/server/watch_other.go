//go:build !linux

package server

import (
	"sync"
	"syscall"
)

// watcher looks at the sockets of long requests itself, where the kernel offers no better way: a peek that finds the end of the stream
// means that the client has left. Pipelined bytes in front of the end hide it.
type watcher struct {
	srv   *Server
	done  chan struct{}
	once  sync.Once
	ended sync.WaitGroup
}

func newWatcher(s *Server) *watcher {
	w := &watcher{srv: s, done: make(chan struct{})}
	w.ended.Go(w.sweep)
	return w
}

func (w *watcher) arm(c *client) {
	c.armed = 0 // look again at the next sweep
	rc := descriptor(c.conn.NetConn())
	if rc == nil {
		return
	}
	gone := false
	_ = rc.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil
	})
	if gone {
		c.left()
	}
}

func (w *watcher) forget(*client) {}

func (w *watcher) close() {
	w.once.Do(func() { close(w.done) })
	w.ended.Wait()
}
