package gateway_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What follows reads HTTP/1.1 as RFC 9112 has it, with nothing let pass, and shares no line with the gateway: it is whom the gateway's bytes
// are shown to.

// message is one request or answer.
type message struct {
	start      [3]string   // method, target, version; or version, status, reason
	fields     [][2]string // in order
	body       string
	trailer    [][2]string
	chunked    bool
	untilClose bool // an answer that only the end of its connection ends
}

// verdict is what a reader thinks of the front of a stream.
type verdict int

const (
	whole verdict = iota // a message
	short                // the front of one
	wrong                // none
)

const (
	tokenChars = "[!#$%&'*+.^_`|~0-9A-Za-z-]"
	text       = `[^\x00-\x08\x0a-\x1f\x7f]` // tab, printable, and whatever has the eighth bit
)

var (
	requestLine = regexp.MustCompile(`^(` + tokenChars + `+) ([\x21\x22\x24-\x7e]+) (HTTP/1\.[01])$`)
	statusLine  = regexp.MustCompile(`^(HTTP/1\.[01]) ([1-5][0-9][0-9])(?: (` + text + `*))?$`)
	fieldLine   = regexp.MustCompile(`^(` + tokenChars + `+):(` + text + `*)$`)
	authority   = regexp.MustCompile(`^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?$`)
	digitsOnly  = regexp.MustCompile(`^[0-9]{1,18}$`)
	chunkLine   = regexp.MustCompile(`^([0-9A-Fa-f]{1,15})(?:[ \t]*;[ \t]*` + tokenChars + `+(?:[ \t]*=[ \t]*(?:` + tokenChars +
		`+|"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\` + text + `)*"))?)*$`)
	absoluteForm = regexp.MustCompile(`(?i)^https?://([^/?]+)(.*)$`)
)

// values are a message's values of a name.
func (m *message) values(name string) (list []string) {
	for _, f := range m.fields {
		if strings.EqualFold(f[0], name) {
			list = append(list, f[1])
		}
	}
	return list
}

func (m *message) status() int {
	n, _ := strconv.Atoi(m.start[1])
	return n
}

// readLine takes a line that ends in CRLF and holds no other CR or LF.
func readLine(b []byte) (line string, rest []byte, v verdict) {
	i := bytes.IndexAny(b, "\r\n")
	switch {
	case i < 0 || i == len(b)-1 && b[i] == '\r':
		return "", nil, short
	case b[i] == '\n' || b[i+1] != '\n':
		return "", nil, wrong
	}
	return string(b[:i]), b[i+2:], whole
}

func readFields(b []byte) (fields [][2]string, rest []byte, v verdict) {
	for {
		var line string
		if line, b, v = readLine(b); v != whole || line == "" {
			return fields, b, v
		}
		m := fieldLine.FindStringSubmatch(line)
		if m == nil {
			return nil, nil, wrong
		}
		fields = append(fields, [2]string{m[1], strings.Trim(m[2], " \t")})
	}
}

// readRequest reads a request off the front of a stream.
func readRequest(b []byte) (m message, rest []byte, v verdict) {
	line, b, v := readLine(b)
	if v != whole {
		return m, nil, v
	}
	s := requestLine.FindStringSubmatch(line)
	if s == nil {
		return m, nil, wrong
	}
	copy(m.start[:], s[1:])
	if m.fields, b, v = readFields(b); v != whole {
		return m, nil, v
	}
	if !m.hasAuthority() {
		return m, nil, wrong
	}
	length, ok := m.framing()
	if !ok {
		return m, nil, wrong
	}
	return m.readBody(b, max(length, 0))
}

// hasAuthority checks target and Host (RFC 9112 section 3.2).
func (m *message) hasAuthority() bool {
	method, target := m.start[0], m.start[1]
	mayBeEmpty := m.start[2] == "HTTP/1.0"
	switch {
	case method == "CONNECT":
		return false // no gateway has a use for it
	case target[0] == '/', target == "*" && method == "OPTIONS":
	default:
		s := absoluteForm.FindStringSubmatch(target)
		if s == nil || !authority.MatchString(s[1]) {
			return false
		}
		mayBeEmpty = true
	}
	hosts := m.values("Host")
	if len(hosts) > 1 || len(hosts) == 0 && m.start[2] == "HTTP/1.1" {
		return false
	}
	return len(hosts) == 0 || hosts[0] == "" && mayBeEmpty || authority.MatchString(hosts[0])
}

// framing finds the one way in which the body is framed (RFC 9112 section 6.3): a length, -1 for none, or chunks.
func (m *message) framing() (length int64, ok bool) {
	codings, lengths := m.values("Transfer-Encoding"), m.values("Content-Length")
	version := m.start[0]
	if !strings.HasPrefix(version, "HTTP/") {
		version = m.start[2]
	}
	switch {
	case len(codings) == 0 && len(lengths) == 0:
		return -1, true
	case len(codings)+len(lengths) > 1:
		return 0, false
	case len(codings) == 1:
		m.chunked = true
		return -1, strings.EqualFold(codings[0], "chunked") && version == "HTTP/1.1"
	}
	length, err := strconv.ParseInt(lengths[0], 10, 64)
	return length, err == nil && digitsOnly.MatchString(lengths[0])
}

// readAnswer reads an answer, to a request of that method, off the front of a stream.
func readAnswer(b []byte, method string) (m message, rest []byte, v verdict) {
	line, b, v := readLine(b)
	if v != whole {
		return m, nil, v
	}
	s := statusLine.FindStringSubmatch(line)
	if s == nil {
		return m, nil, wrong
	}
	copy(m.start[:], s[1:])
	if m.fields, b, v = readFields(b); v != whole {
		return m, nil, v
	}
	length, ok := m.framing()
	switch status := m.status(); {
	case !ok:
		return m, nil, wrong
	case method == "HEAD" || status < 200 || status == 204 || status == 304:
		m.chunked = false
		return m, b, whole
	case length < 0 && !m.chunked:
		m.untilClose, m.body = true, string(b)
		return m, nil, whole
	}
	return m.readBody(b, length)
}

func (m *message) readBody(b []byte, length int64) (message, []byte, verdict) {
	if !m.chunked {
		if int64(len(b)) < length {
			m.body = string(b)
			return *m, nil, short
		}
		m.body = string(b[:length])
		return *m, b[length:], whole
	}
	var body strings.Builder
	for {
		line, rest, v := readLine(b)
		if v != whole {
			m.body = body.String()
			return *m, nil, v
		}
		s := chunkLine.FindStringSubmatch(line)
		if s == nil {
			return *m, nil, wrong
		}
		size, _ := strconv.ParseInt(s[1], 16, 64)
		if b = rest; size == 0 {
			m.body = body.String()
			m.trailer, rest, v = readFields(b)
			return *m, rest, v
		}
		body.Write(b[:min(size, int64(len(b)))])
		if int64(len(b)) < size {
			m.body = body.String()
			return *m, nil, short
		}
		if b = b[size:]; len(b) < 2 {
			m.body = body.String()
			return *m, nil, short
		}
		if string(b[:2]) != "\r\n" {
			return *m, nil, wrong
		}
		b = b[2:]
	}
}

func (m message) String() string {
	fields := fmt.Sprintf("%.80q", m.fields)
	return fmt.Sprintf("%.200q %s body %.60q (%d) trailer %q", m.start, fields, m.body, len(m.body), m.trailer)
}
