package core

import "strings"

// Endpoint is one address of an upstream. It is immutable; what lives (connections, health, load) belongs to the upstream and
// is found by Index.
type Endpoint struct {
	Upstream  string // name of the upstream that it belongs to
	Address   string // host:port to dial, or unix:/path
	Authority string // what goes out as Host: the address without the scheme's default port; "localhost" for a Unix socket
	Scheme    string // "http" or "https"
	Weight    int    // 0 is drained
	Index     int    // place in its upstream's list
}

// String is the endpoint's URL, as logs show it.
func (e *Endpoint) String() string {
	if e.unix() {
		return e.Address
	}
	return e.Scheme + "://" + e.Authority
}

// Label names the endpoint among those of its upstream, as access lines and metrics show it: host:port, or unix:/path.
func (e *Endpoint) Label() string {
	if e.unix() {
		return e.Address
	}
	return e.Authority
}

func (e *Endpoint) unix() bool { return strings.HasPrefix(e.Address, "unix:") }
