package core

// Client is the client's end of an exchange. The goroutine that owns the exchange calls it; codecs implement it.
type Client interface {
	// Continue tells a client that waits for it to send its body (100, RFC 9110 section 10.1.1), once. It does nothing for others.
	Continue() error
	// Inform passes on an interim answer (1xx other than 100 and 101). Clients that cannot take one are spared.
	Inform(status int, header *Header) error
	// Respond sends x.Response: the head, then the body to its end. A *ReadError-like cause (the body could not be read) and a client
	// that is gone both come back as errors; either way the client never sees a clean end of a body that had none.
	Respond() error
	// StopBody makes a pending read of the request's body end. It is for an answer that is complete before the body is.
	StopBody()
	// ResumeBody takes StopBody back, and tells whether it can: then the body may be read on from where it was. Nobody reads it just then.
	ResumeBody() bool
	// Ease says that the answer has begun while the request's body is still coming: from then on the client may take its time with it.
	// Safe for concurrent use with a reader of the body.
	Ease()
}
