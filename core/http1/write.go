package http1

import (
	"strconv"
	"time"

	"github.com/moongate/moongate/core"
)

// The appenders below assemble heads in a write buffer. They take names and values as valid: whoever let a script set one has checked it.

// AppendField appends one header line.
func AppendField(dst, name, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendStatusLine appends the status line. reason may be empty: then the standard phrase is used.
func AppendStatusLine(dst []byte, status int, reason []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	if len(reason) > 0 {
		dst = append(dst, reason...)
	} else {
		dst = append(dst, core.StatusText(status)...)
	}
	return append(dst, "\r\n"...)
}

// AppendLength appends Content-Length.
func AppendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// AppendChunked appends the field that announces a chunked body.
func AppendChunked(dst []byte) []byte { return append(dst, "Transfer-Encoding: chunked\r\n"...) }

// AppendDate appends the Date of now (RFC 9110 section 5.6.7).
func AppendDate(dst []byte) []byte {
	dst = append(dst, "Date: "...)
	dst = time.Now().UTC().AppendFormat(dst, "Mon, 02 Jan 2006 15:04:05 GMT")
	return append(dst, "\r\n"...)
}

// AppendChunk appends data as one chunk; without data it appends nothing, because an empty chunk would end the body.
func AppendChunk(dst, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// AppendLastChunk ends a chunked body with the trailers that may stand in a trailer section.
func AppendLastChunk(dst []byte, trailer *core.Header) []byte {
	dst = append(dst, "0\r\n"...)
	for _, f := range trailer.Fields() {
		if TrailerAllowed(f.Name) {
			dst = AppendField(dst, f.Name, f.Value)
		}
	}
	return append(dst, "\r\n"...)
}
