package http1

import (
	"bytes"
	"errors"
	"os"
	"time"
)

// Take gives what was read and not consumed to whoever goes on with the connection in another protocol. The copy is the caller's.
func (c *Conn) Take() []byte {
	rest := bytes.Clone(c.in[c.r:c.w])
	c.r = c.w
	return rest
}

// IsAuthority tells whether b is uri-host [":" port] of RFC 3986 section 3.2.2 without user information.
func IsAuthority(b []byte) bool { return len(b) > 0 && validHost(b) }

// IsLength tells whether b is a Content-Length (RFC 9110 section 8.6) that fits int64.
func IsLength(b []byte) bool {
	_, ok := parseLength(b)
	return ok
}

// Brimful tells whether the last read took as much as it had room for, or as it was allowed to: then nobody knows whether the peer has sent
// more.
func (c *Conn) Brimful() bool { return c.brimful }

// Withholds tells whether TLS has taken more off the socket than it was asked for. Nobody reads the connection meanwhile, and a limit is set
// before the next read.
func (c *Conn) Withholds() bool {
	if _, ok := c.nc.(*Secure); !ok {
		return false
	}
	c.reads.armed = 0
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	_, err := c.nc.Read(c.one[:])
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
