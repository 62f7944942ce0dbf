package gateway

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// AccessLog writes one JSON line for each request to a file, to standard output or nowhere. Writing never blocks a request: lines go into a
// buffer that a goroutine empties. Lines that find the buffer full, or cannot be written, are dropped and counted, and the log of the process
// says when that begins and when it ends. It is safe for concurrent use.
type AccessLog struct {
	dropped atomic.Uint64
	log     *slog.Logger

	mu     sync.Mutex
	buf    []byte // lines that wait
	second second
	out    io.Writer
	closed bool

	wake  chan struct{}
	ended chan struct{}

	writing sync.Mutex // held while lines are written, so that no file is closed under them
	spare   []byte     // a buffer that has been written
	torn    bool       // the last line that was written has no end
	lost    uint64     // lines since writing began to fail; 0: it works
}

// maxWaiting is how many bytes of lines may wait for a slow reader.
const maxWaiting = 4 << 20

// flushEvery is how long a line waits at most.
const flushEvery = 100 * time.Millisecond

// closeWithin is how long the last lines may take when the log is closed: somebody may have stopped reading.
const closeWithin = 5 * time.Second

// OpenAccessLog opens the access log: "stdout", "off", or a file's path, which is created when need be and appended to. log is told what
// becomes of it.
func OpenAccessLog(where string, log *slog.Logger) (*AccessLog, error) {
	l := &AccessLog{log: log, wake: make(chan struct{}, 1), ended: make(chan struct{})}
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

// Dropped is the number of lines that found no room, or could not be written.
func (l *AccessLog) Dropped() uint64 { return l.dropped.Load() }

// Reopen makes later lines go to where; a file of the same path is opened anew, so that one that was moved away is let go. It waits for lines
// that are being written, except where both are standard output, which stays as it is.
func (l *AccessLog) Reopen(where string) error {
	out, err := openLog(where)
	if err != nil {
		return err
	}
	if out == os.Stdout && l.goesTo(out) {
		return nil
	}
	l.flush()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	old := l.out
	l.out, l.torn = out, false
	l.mu.Unlock()
	if f, ok := old.(*os.File); ok && f != os.Stdout {
		return f.Close()
	}
	return nil
}

func (l *AccessLog) goesTo(out io.Writer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out == out
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

var errUnread = errors.New("the end of the access log was not written: nobody reads it")

// Close writes what waits and closes the file. It fails when the last lines are still not written after five seconds.
func (l *AccessLog) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.mu.Unlock()
	if was {
		return nil
	}
	l.poke()
	select {
	case <-l.ended:
	case <-time.After(closeWithin):
		return errUnread
	}
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
		l.put(out, lines)
	}
	if l.spare = nil; cap(lines) <= 1<<20 {
		l.spare = lines
	}
}

// put writes lines. What cannot be written is lost, since those that come next are of more worth than a buffer that grows; a line that was
// torn gets its end before them.
func (l *AccessLog) put(out io.Writer, lines []byte) {
	var n int
	var err error
	if l.torn {
		_, err = out.Write([]byte{'\n'})
	}
	if err == nil {
		l.torn = false
		n, err = out.Write(lines)
	}
	switch {
	case err != nil:
		l.torn = l.torn || n > 0 && lines[n-1] != '\n'
		lost := uint64(bytes.Count(lines[n:], []byte{'\n'}))
		if l.lost == 0 {
			l.log.Error("access log cannot be written", "error", err)
		}
		l.lost += lost
		l.dropped.Add(lost)
	case l.lost > 0:
		l.log.Info("access log is written again", "lost_lines", l.lost)
		l.lost = 0
	}
}
