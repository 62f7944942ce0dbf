package gateway

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// AccessLog writes one JSON line for each request to a file, to standard output or nowhere. Writing never blocks a request: lines go into a
// buffer that a goroutine empties, and when the buffer is full they are dropped and counted. It is safe for concurrent use.
type AccessLog struct {
	dropped atomic.Uint64

	mu     sync.Mutex
	buf    []byte // lines that wait
	second second
	out    io.Writer
	closed bool

	wake  chan struct{}
	ended chan struct{}

	writing sync.Mutex // held while lines are written, so that no file is closed under them
	spare   []byte     // a buffer that has been written
}

// maxWaiting is how many bytes of lines may wait for a slow reader.
const maxWaiting = 4 << 20

// flushEvery is how long a line waits at most.
const flushEvery = 100 * time.Millisecond

// OpenAccessLog opens the log: "stdout", "off", or a file's path, which is created when need be and appended to.
func OpenAccessLog(where string) (*AccessLog, error) {
	l := &AccessLog{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	out, err := openLog(where)
	if err != nil {
		return nil, err
	}
	l.out = out
	go l.run()
	return l, nil
}

// openLog gives nil for "off".
func openLog(where string) (io.Writer, error) {
	switch where {
	case "off":
		return nil, nil
	case "stdout":
		return os.Stdout, nil
	}
	return os.OpenFile(where, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
}

// Dropped is the number of lines that found no room.
func (l *AccessLog) Dropped() uint64 { return l.dropped.Load() }

// Reopen makes later lines go to where; a file of the same path is opened anew, so that one that was moved away is let go.
func (l *AccessLog) Reopen(where string) error {
	out, err := openLog(where)
	if err != nil {
		return err
	}
	l.flush()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	old := l.out
	l.out = out
	l.mu.Unlock()
	if f, ok := old.(*os.File); ok && f != os.Stdout {
		return f.Close()
	}
	return nil
}

// Write renders and queues the line of an exchange. extra is empty or JSON members with a leading comma.
func (l *AccessLog) Write(x *core.Exchange, extra []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil || l.closed {
		return
	}
	if len(l.buf) > maxWaiting {
		l.dropped.Add(1)
		return
	}
	empty := len(l.buf) == 0
	l.buf = appendLine(l.buf, &l.second, x, extra)
	if empty || len(l.buf) > 256<<10 {
		l.poke()
	}
}

// Close writes what waits and closes the file.
func (l *AccessLog) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	l.poke()
	<-l.ended
	if f, ok := l.out.(*os.File); ok && f != os.Stdout {
		return f.Close()
	}
	return nil
}

func (l *AccessLog) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run empties the buffer a little after its first line came, so that busy times make few writes.
func (l *AccessLog) run() {
	defer close(l.ended)
	for range l.wake {
		if closed, much := l.state(); !closed && !much {
			select {
			case <-time.After(flushEvery):
			case <-l.wake:
			}
		}
		closed, _ := l.state()
		if l.flush(); closed {
			return
		}
	}
}

// state tells whether the log has been closed, and whether so much waits that it should be written now.
func (l *AccessLog) state() (closed, much bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed, len(l.buf) > 256<<10
}

// flush writes what waits.
func (l *AccessLog) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	out, lines := l.out, l.buf
	l.buf = l.spare[:0]
	l.mu.Unlock()
	if len(lines) > 0 && out != nil {
		_, _ = out.Write(lines)
	}
	if l.spare = nil; cap(lines) <= 1<<20 {
		l.spare = lines
	}
}
