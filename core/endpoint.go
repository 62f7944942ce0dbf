package core

// Endpoint is one address of an upstream. It is immutable; what lives (connections, health, load) belongs to the upstream and
// is found by Index.
type Endpoint struct {
	Upstream  string // name of the upstream that it belongs to
	Address   string // host:port to dial
	Authority string // what goes out as Host: the address without the scheme's default port
	Scheme    string // "http" or "https"
	Weight    int    // 0 is drained
	Index     int    // place in its upstream's list
}

// String is the endpoint's URL, as logs show it.
func (e *Endpoint) String() string { return e.Scheme + "://" + e.Authority }
