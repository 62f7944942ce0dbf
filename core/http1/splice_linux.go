package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/moongate/moongate/core"
)

// Long bodies of known length that nobody looks at go from socket to socket inside the kernel, through a pipe (splice(2)). One MiB then
// costs about half of what it costs through a buffer. The standard library does the same behind io.Copy, but loses what is in the pipe when a
// deadline passes, and deadlines here may pass too early (see reading).

// spliceFrom is the length from which it is worth a pipe.
const spliceFrom = 64 << 10

const (
	pipeSize      = 64 << 10  // 1 MiB is not measurably faster
	fcntlPipeSize = 1031      // F_SETPIPE_SZ
	spliceFlags   = 0x1 | 0x2 // SPLICE_F_MOVE | SPLICE_F_NONBLOCK
	keptPipes     = 64
	mostPipes     = 1024 // at once: more bodies than that are copied, since each pipe takes two descriptors and pipeSize of the kernel's memory
)

var errNoPipe = errors.New("no pipe to be had")

// pipe is a kernel's buffer with its two ends.
type pipe struct{ r, w int }

var pipes struct {
	mu   sync.Mutex
	kept []pipe // empty
	open int    // kept ones included
}

func takePipe() (pipe, error) {
	pipes.mu.Lock()
	if n := len(pipes.kept); n > 0 {
		p := pipes.kept[n-1]
		pipes.kept = pipes.kept[:n-1]
		pipes.mu.Unlock()
		return p, nil
	}
	full := pipes.open >= mostPipes
	if !full {
		pipes.open++
	}
	pipes.mu.Unlock()
	if full {
		return pipe{}, errNoPipe
	}
	p, err := openPipe()
	if err != nil {
		pipes.mu.Lock()
		pipes.open--
		pipes.mu.Unlock()
	}
	return p, err
}

// openPipe makes a pipe of pipeSize. A user who has many gets small ones, which are worse than copying.
func openPipe() (pipe, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return pipe{}, err
	}
	p := pipe{ends[0], ends[1]}
	if _, _, fault := syscall.Syscall(syscall.SYS_FCNTL, uintptr(p.w), fcntlPipeSize, pipeSize); fault != 0 {
		p.close()
		return pipe{}, fault
	}
	return p, nil
}

// give keeps the pipe for another body when it is empty.
func (p pipe) give(empty bool) {
	pipes.mu.Lock()
	defer pipes.mu.Unlock()
	if empty && len(pipes.kept) < keptPipes {
		pipes.kept = append(pipes.kept, p)
		return
	}
	pipes.open--
	p.close()
}

func (p pipe) close() {
	_ = syscall.Close(p.r)
	_ = syscall.Close(p.w)
}

// splicer moves one body.
type splicer struct {
	from, to *Conn
	src, dst syscall.RawConn
	pipe     pipe
	left     int64 // to be read
	held     int64 // in the pipe
	n        int64 // moved by the last step
	err      error // of the last step

	pull, push func(fd uintptr) bool // into the pipe and out of it, bound once
}

// spliceable tells whether the body can be moved to c in the kernel, and how.
func spliceable(c *Conn, body *core.Body) (*splicer, *BodyReader) {
	b, ok := body.Direct().(*BodyReader)
	if !ok || b.mode != bodyLength || b.err != nil || b.OnRead != nil || b.left-int64(b.conn.Buffered()) < spliceFrom {
		return nil, nil
	}
	src, dst := rawSocket(b.conn.nc), rawSocket(c.nc)
	if src == nil || dst == nil {
		return nil, nil
	}
	p, err := takePipe()
	if err != nil {
		return nil, nil
	}
	s := &splicer{from: b.conn, to: c, src: src, dst: dst, pipe: p}
	s.pull, s.push = s.fill, s.drain
	return s, b
}

func rawSocket(nc net.Conn) syscall.RawConn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		if raw, err := nc.(syscall.Conn).SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// splice sends head and what is buffered of the body, and moves the rest. The body has ended then, or is broken.
func (s *splicer) splice(head []byte, b *BodyReader, body *core.Body) (sent int64, err error) {
	defer func() { s.pipe.give(s.held == 0) }()
	if len(head) > 0 {
		if err := s.to.Flush(head); err != nil {
			return 0, err
		}
	}
	c := b.conn
	n, err := s.to.Write(c.in[c.r:c.w])
	c.r += n
	b.left -= int64(n)
	body.Count(int64(n))
	sent = int64(n)
	for s.left = b.left; err == nil && b.left > 0; b.left = s.left {
		if err = s.receive(); err != nil {
			b.err = err
			return sent, &ReadError{err}
		}
		body.Count(s.n)
		if s.left == 0 {
			b.tell()
		}
		for s.held > 0 && err == nil {
			err = s.send()
			sent += s.n
		}
	}
	if c.brimful = true; err == nil {
		b.err = io.EOF
		_, _ = body.Read(nil) // which learns it so
	}
	return sent, err
}

// receive moves bytes from the sender's socket into the empty pipe.
func (s *splicer) receive() error {
	c := s.from
	set := c.nc.SetReadDeadline
	began, err := c.reads.begin(set)
	for err == nil {
		s.n, s.err = 0, nil
		fault := s.src.Read(s.pull)
		if fault == nil {
			fault = s.err
		}
		switch {
		case s.n > 0:
			s.left -= s.n
			s.held += s.n
			c.Read += s.n
			c.reads.took(began, int(s.n))
			return nil
		case fault == nil:
			return ErrCut
		case !errors.Is(fault, os.ErrDeadlineExceeded):
			return cutError(fault)
		}
		err = c.reads.missed(began, set)
	}
	return err
}

// send moves bytes from the pipe into the receiver's socket.
func (s *splicer) send() (err error) {
	c := s.to
	for w := c.writes.begin(c.nc); err == nil; {
		s.n, s.err = 0, nil
		fault := s.dst.Write(s.push)
		if fault == nil {
			fault = s.err
		}
		s.held -= s.n
		c.Written += s.n
		c.writes.patience.Moved(int(s.n))
		switch {
		case s.n > 0:
			return c.writes.end(&w)
		case fault == nil:
			return io.ErrShortWrite
		}
		err = c.writes.missed(&w, c.nc, 0, fault)
	}
	return err
}

// fill and drain do one splice without waiting. They tell false when the socket is not ready.
func (s *splicer) fill(fd uintptr) bool {
	return s.step(int(fd), s.pipe.w, min(s.left, pipeSize))
}

func (s *splicer) drain(fd uintptr) bool { return s.step(s.pipe.r, int(fd), s.held) }

func (s *splicer) step(from, to int, most int64) bool {
	for {
		s.n, s.err = syscall.Splice(from, nil, to, nil, int(most), spliceFlags)
		if s.err != syscall.EINTR {
			break
		}
	}
	s.n = max(s.n, 0)
	return s.err != syscall.EAGAIN
}
