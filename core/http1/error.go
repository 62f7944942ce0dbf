package http1

import (
	"errors"
	"io"

	"github.com/moongate/moongate/core"
)

// What a peer may do wrong. A client's fault carries the status that answers it; the same faults in an upstream's answer become 502
// further up. Each ends the connection.
var (
	errBareLF           = fault(400, "line ends in a bare LF")
	errEmptyHead        = fault(400, "head has no start line")
	errLineTooLong      = fault(414, "request line too long")
	errHeadTooLarge     = fault(431, "header too large")
	errTooManyOptions   = fault(400, "too many connection options")
	errNoColon          = fault(400, "header line without a colon")
	errFold             = fault(400, "folded header line")
	errFieldName        = fault(400, "malformed header name")
	errFieldValue       = fault(400, "control character in a header value")
	errContentLength    = fault(400, "malformed or repeated Content-Length")
	errTransferEncoding = fault(400, "malformed or repeated Transfer-Encoding")
	errTwoFramings      = fault(400, "Transfer-Encoding beside Content-Length")
	errUnknownCoding    = fault(501, "unknown transfer coding")
	errRequestLine      = fault(400, "malformed request line")
	errMethod           = fault(400, "malformed method")
	errTarget           = fault(400, "malformed request target")
	errNoConnect        = fault(501, "CONNECT is not served here")
	errNoTrace          = fault(501, "TRACE is not served here")
	errVersion          = fault(505, "HTTP version not supported")
	errHost             = fault(400, "missing, repeated or malformed Host")
	errTwoTypes         = fault(400, "repeated Content-Type")
	errExpect           = fault(417, "unknown expectation")
	errChunk            = fault(400, "malformed chunked body")
	errTrailer          = fault(400, "malformed trailer")

	errStatusLine = errors.New("malformed status line")
	errFraming    = errors.New("more than one length or an unknown coding")

	// ErrTooManyFields means that a head has more than MaxFields lines.
	ErrTooManyFields = fault(431, "too many header fields")

	// ErrCut means that a connection ended in the middle of a message.
	ErrCut = errors.New("connection ended in the middle of a message")
)

func fault(status int, text string) *core.Error {
	return &core.Error{Status: status, Public: text, Close: true}
}

func cutError(err error) error {
	if err == io.EOF {
		return ErrCut
	}
	return err
}
