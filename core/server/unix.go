package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// unixListener is a Unix socket whose file goes with it.
type unixListener struct {
	*net.UnixListener
	path string
	file fs.FileInfo // as it was made: another process may have put its own there since
}

// listenUnix opens a socket at path with these permissions. A socket that nobody listens at any more is replaced.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := clearStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	u := &unixListener{UnixListener: l, path: path}
	if u.file, err = os.Lstat(path); err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		_ = u.Close()
		return nil, err
	}
	return u, nil
}

// clearStale removes what an ended process has left at path, and nothing else.
func clearStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("there is a file that is no socket")
	}
	nc, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = nc.Close()
		return fmt.Errorf("another process listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// Addr names the socket as the configuration does.
func (u *unixListener) Addr() net.Addr { return unixAddr(u.path) }

type unixAddr string

func (a unixAddr) Network() string { return "unix" }
func (a unixAddr) String() string  { return "unix:" + string(a) }

// Close stops listening and removes the file.
func (u *unixListener) Close() error {
	err := u.UnixListener.Close()
	if now, fault := os.Lstat(u.path); err == nil && fault == nil && u.file != nil && os.SameFile(now, u.file) {
		err = os.Remove(u.path)
	}
	return err
}
