package http1

import (
	"github.com/moongate/moongate/core"
)

// ParseResponse reads an upstream's head into w (RFC 9112 sections 4, 5 and 6). method is that of the request it answers. Any fault is
// an error: the connection is then of no use.
func ParseResponse(head []byte, method string, w *core.Response) (Framing, error) {
	line, fields := nextLine(head)
	http10, err := parseStatusLine(line, w)
	if err != nil {
		return Framing{}, err
	}
	var f framing
	if err := parseFields(fields, &w.Header, &f); err != nil {
		return Framing{}, err
	}
	out := Framing{Length: f.length, Close: f.close || http10 && !f.keepAlive, Upgrade: f.upgrade}
	switch {
	case f.unknownCoding || f.chunked && (f.length >= 0 || http10):
		return out, errFraming
	case method == "HEAD" || !core.BodyAllowed(w.Status):
		out.Length = 0
	case f.chunked:
		out.Chunked = true
	case f.length < 0:
		out.Close = true
	}
	return out, nil
}

func parseStatusLine(b []byte, w *core.Response) (http10 bool, err error) {
	if len(b) < 12 || string(b[:7]) != "HTTP/1." || b[7] != '0' && b[7] != '1' || b[8] != ' ' || len(b) > 12 && b[12] != ' ' {
		return false, errStatusLine
	}
	status := 0
	for _, c := range b[9:12] {
		if !digit(c) {
			return false, errStatusLine
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 || status > 599 {
		return false, errStatusLine
	}
	w.Status, w.Reason = status, nil
	if len(b) > 13 {
		if w.Reason = b[13:]; !cleanValue(w.Reason) {
			return false, errStatusLine
		}
	}
	return b[7] == '0', nil
}
