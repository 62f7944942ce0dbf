package server

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/moongate/moongate/core/http1"
)

// sender writes what a connection's streams have to say in as few system calls as it can. The standard library flushes after each frame
// that is followed by none at that moment, which makes two writes of every answer; here they lie in memory until nobody else wants to run.
type sender struct {
	conn *http1.Conn // which asks a pace of the client
	cut  func()      // ends the connection once what waits has been written

	mu     sync.Mutex
	room   sync.Cond // signalled when waiting has been taken
	data   []byte    // waits to be written
	spare  []byte
	busy   bool // somebody is writing, or is about to
	half   bool // nothing is added any more; whoever is busy ends the sending half of the connection
	closed bool // likewise; whoever is busy closes the connection
	writes uint64
	err    error
}

const (
	maxWaiting = 64 << 10 // bytes that may wait; a writer of more is held back
	directly   = 16 << 10 // a piece so large is written where nothing waits before it
	farewell2  = 250 * time.Millisecond
)

func (s *sender) begin(nc net.Conn, p *http1.Pace, cut func()) {
	s.conn, s.cut, s.room.L = http1.NewConn(nc), cut, &s.mu
	s.conn.Pace(p)
}

// Write takes all of p, or gives the error of an earlier write.
func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && !s.closed && len(s.data) > 0 && len(s.data)+len(p) > maxWaiting {
		s.room.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closed:
		return 0, net.ErrClosed
	case s.half: // only what keeps a connection going, window updates and the like, is said behind GOAWAY
		return len(p), nil
	case len(p) >= directly && !s.busy:
		return s.direct(p)
	}
	if s.data == nil {
		s.data = takeWaiting()
	}
	s.data = append(s.data, p...)
	if !s.busy {
		s.busy = true
		go s.flush()
	}
	return len(p), nil
}

// direct writes p as it is. It is called with s.mu held.
func (s *sender) direct(p []byte) (int, error) {
	s.busy = true
	s.writes++
	s.mu.Unlock()
	_, err := s.conn.Write(p)
	s.mu.Lock()
	s.err = err
	if len(s.data) > 0 && err == nil {
		go s.flush()
	} else {
		s.rest()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes until nothing waits. Others that can run go first: what they have to say is written with it.
func (s *sender) flush() {
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.data) > 0 && s.err == nil {
		data := s.data
		s.data, s.spare = s.spare, nil
		s.writes++
		s.room.Broadcast()
		s.mu.Unlock()
		_, err := s.conn.Write(data)
		s.mu.Lock()
		s.err = err
		if s.spare == nil {
			s.spare = data[:0]
		} else {
			giveWaiting(data)
		}
	}
	s.rest()
}

// rest ends being busy. It is called with s.mu held.
func (s *sender) rest() {
	s.busy = false
	giveWaiting(s.data)
	giveWaiting(s.spare)
	s.data, s.spare = nil, nil
	s.room.Broadcast()
	switch {
	case s.closed:
		s.cut()
	case s.err != nil:
		s.conn.Cut()
	case s.half:
		s.endHalf()
	}
}

// usualWaiting is the size that most flushes stay below; a connection at rest holds none.
const usualWaiting = 8 << 10

var waitings = sync.Pool{New: func() any { return new([usualWaiting]byte) }}

func takeWaiting() []byte { return waitings.Get().(*[usualWaiting]byte)[:0] }

func giveWaiting(b []byte) {
	if cap(b) == usualWaiting {
		waitings.Put((*[usualWaiting]byte)(b[:usualWaiting]))
	}
}

// stands tells whether the write is still under way that was when it was asked with the same number before.
func (s *sender) stands(number *uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := *number
	if *number = s.writes; !s.busy {
		*number = 0
	}
	return s.busy && (before == 0 || before == s.writes)
}

// slow is the error of a client that was too slow for its connection, nil unless that is why it has ended.
func (s *sender) slow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && errors.Is(s.err, http1.ErrTimeout) {
		return s.err
	}
	return nil
}

// closeHalf ends the sending half of the connection once what waits has been written.
func (s *sender) closeHalf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.half = true; !s.busy && !s.closed {
		s.endHalf()
	}
}

// endHalf is called with s.mu held.
func (s *sender) endHalf() {
	if half, ok := s.conn.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// close writes what waits, within a moment, and closes the connection.
func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.room.Broadcast()
	if !s.busy {
		s.cut()
		return
	}
	_ = s.conn.WritesEnd(farewell2)
}
