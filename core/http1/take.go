package http1

import "bytes"

// Take gives what was read and not consumed to whoever goes on with the connection in another protocol. The copy is the caller's.
func (c *Conn) Take() []byte {
	rest := bytes.Clone(c.in[c.r:c.w])
	c.r = c.w
	return rest
}

// IsAuthority tells whether b is uri-host [":" port] of RFC 3986 section 3.2.2 without user information.
func IsAuthority(b []byte) bool { return len(b) > 0 && validHost(b) }
