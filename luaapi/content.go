package luaapi

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/moongate/moongate/core"
)

// content takes the content coding off a body (RFC 9110 section 8.4), for those who read what it says. More than limit bytes are an
// error, and so is a coding that is not known.
func content(h *core.Header, body []byte, limit int64) ([]byte, error) {
	coding := h.GetKind(core.KindContentEncoding)
	if len(coding) == 0 || core.EqualFoldString(coding, "identity") || len(body) == 0 {
		return body, nil
	}
	if h.CountKind(core.KindContentEncoding) > 1 {
		return nil, errors.New("encoded more than once")
	}
	var from io.Reader
	var err error
	switch {
	case core.EqualFoldString(coding, "gzip") || core.EqualFoldString(coding, "x-gzip"):
		from, err = gzip.NewReader(bytes.NewReader(body))
	case core.EqualFoldString(coding, "deflate"):
		from, err = zlib.NewReader(bytes.NewReader(body))
	default:
		return nil, errors.New("encoded as " + visible(string(coding)) + ", which cannot be read here")
	}
	if err != nil {
		return nil, errors.New("not " + visible(string(coding)) + ", though it says so")
	}
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return nil, errors.New("not " + visible(string(coding)) + ", though it says so")
	case int64(len(text)) > limit:
		return nil, errors.New("too large")
	}
	return text, nil
}
