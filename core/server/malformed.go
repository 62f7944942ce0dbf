package server

import (
	"bytes"
	"encoding/binary"
)

// A request with header lines that belong to a connection is malformed, which is an error of its stream; a server may answer it before it
// resets the stream (RFC 9113 sections 8.1.1 and 8.2.2). The standard library answers such requests itself, with status 400 and a text, and
// ends their streams as if all were well. What follows turns that end into a reset.

// Texts of the standard library's answer.
var (
	malformedBegin = []byte(`request header "`)
	malformedEnds  = [][]byte{[]byte("\" is not valid in HTTP/2\n"), []byte("\" may only be \"trailers\" in HTTP/2\n")}
)

const frameHeadSize = 9

// resetMalformed finds the frame that ends such an answer in what is about to be written and returns the whole with a reset in its place; p
// itself where there is none.
func resetMalformed(p []byte) []byte {
	for from := 0; ; {
		at := bytes.Index(p[from:], malformedBegin)
		if at < 0 {
			return p
		}
		at += from
		from = at + 1
		start := at - frameHeadSize
		if start < 0 || p[start+3] != frameData || p[start+4]&flagEndStream == 0 {
			continue
		}
		size := int(p[start])<<16 | int(p[start+1])<<8 | int(p[start+2])
		if end := at + size; end <= len(p) && endsMalformed(p[at:end]) {
			out := make([]byte, 0, len(p))
			out = append(out, p[:start]...)
			out = append(out, 0, 0, 4, frameReset, 0)
			out = append(out, p[start+5:at]...) // the stream
			out = binary.BigEndian.AppendUint32(out, codeProtocol)
			return append(out, p[end:]...)
		}
	}
}

func endsMalformed(text []byte) bool {
	for _, end := range malformedEnds {
		if bytes.HasSuffix(text, end) {
			return true
		}
	}
	return false
}
