package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Passed are sockets that listened before the process began. Whoever started it has opened them and keeps them open, so that clients wait while one
// process ends and the next begins, and are not refused. A listener whose address is that of such a socket gets it instead of a new one, as often as it
// is opened anew, but by one at a time: two would get the connections by chance. The nil Passed has none. It is safe for concurrent use.
type Passed struct{ sockets []*passedSocket }

type passedSocket struct {
	file *os.File
	addr net.Addr
	held atomic.Bool // a listener is open on it
}

// NewPassed takes over files that listen. The error names one that does not.
func NewPassed(files []*os.File) (*Passed, error) {
	p := &Passed{}
	for _, f := range files {
		s := &passedSocket{file: f}
		l, err := s.open()
		if err != nil {
			return nil, fmt.Errorf("the socket %s that was passed cannot be listened on: %w", f.Name(), err)
		}
		s.addr = l.Addr()
		_ = l.Close()
		p.sockets = append(p.sockets, s)
	}
	return p, nil
}

// open makes a listener of its own on the socket, whose end leaves the socket as it is.
func (s *passedSocket) open() (net.Listener, error) {
	if err := listens(s.file); err != nil {
		return nil, err
	}
	l, err := net.FileListener(s.file)
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		return passedUnix{u}, nil
	}
	return l, err
}

var errHeld = errors.New("another listener has the socket that was passed for it")

// hold is open for the one who may accept from the socket until he closes what he gets.
func (s *passedSocket) hold() (net.Listener, error) {
	if !s.held.CompareAndSwap(false, true) {
		return nil, errHeld
	}
	l, err := s.open()
	if err != nil {
		s.held.Store(false)
		return nil, err
	}
	return &holder{Listener: l, socket: s}, nil
}

// holder is a listener that has a socket for itself.
type holder struct {
	net.Listener
	socket *passedSocket
	once   sync.Once
}

// Close implements net.Listener.
func (h *holder) Close() error {
	err := h.Listener.Close()
	h.once.Do(func() { h.socket.held.Store(false) })
	return err
}

// listens tells what is wrong with a file that is no socket that listens for streams.
func listens(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var is int
	if fault := raw.Control(func(fd uintptr) { is, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN) }); fault != nil {
		return fault
	}
	if err == nil && is == 0 {
		err = errors.New("it is none that listens for streams")
	}
	return err
}

// passedUnix is a Unix socket whose file belongs to whoever opened it.
type passedUnix struct{ *net.UnixListener }

// Addr names the socket as the configuration does.
func (u passedUnix) Addr() net.Addr { return unixAddr(u.UnixListener.Addr().String()) }

// find gives the socket that listens on an address, host:port or unix:/path; nil when none does.
func (p *Passed) find(address string) *passedSocket {
	if p == nil {
		return nil
	}
	for _, s := range p.sockets {
		if s.has(address) {
			return s
		}
	}
	return nil
}

func (s *passedSocket) has(address string) bool {
	own, ok := s.addr.(*net.TCPAddr)
	if !ok {
		return s.addr.String() == address
	}
	if strings.HasPrefix(address, "unix:") {
		return false
	}
	wanted, err := net.ResolveTCPAddr(Network(address), address)
	if err != nil || wanted.Port != own.Port || wanted.Zone != own.Zone {
		return false
	}
	return wanted.IP.Equal(own.IP) || len(wanted.IP) == 0 && own.IP.IsUnspecified()
}

// Unused are the addresses of sockets that nobody listens on now: their clients wait in vain.
func (p *Passed) Unused() (addresses []string) {
	if p == nil {
		return nil
	}
	for _, s := range p.sockets {
		if !s.held.Load() {
			addresses = append(addresses, s.addr.String())
		}
	}
	return addresses
}

// Open listens on an address, host:port or unix:/path: on the socket that was passed for it, which nobody else may have open, else on a new one, for
// whose file, if it is a Unix socket, mode are the permissions.
func (p *Passed) Open(address string, mode fs.FileMode) (net.Listener, error) {
	if s := p.find(address); s != nil {
		return s.hold()
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path, mode)
	}
	return net.Listen(Network(address), address)
}

// Listen opens an address for connections without TLS. Closing removes the file of a Unix socket that was made here.
func (p *Passed) Listen(address string, mode fs.FileMode) (*Listener, error) {
	open, err := p.Open(address, mode)
	if err != nil {
		return nil, err
	}
	l := &Listener{Listener: open}
	l.set.Store(&listening{at: l})
	return l, nil
}
