package core

import "bytes"

// Cookie finds the first value of a cookie in the Cookie lines (RFC 6265 section 5.4): case counts in its name, and quotes are part of its value.
func (h *Header) Cookie(name string) (value []byte, found bool) {
	for i, fields := 0, h.Fields(); i < len(fields); i++ {
		if fields[i].Kind != KindCookie {
			continue
		}
		if value, found := cookieIn(fields[i].Value, name); found {
			return value, true
		}
	}
	return nil, false
}

func cookieIn(line []byte, name string) (value []byte, found bool) {
	for len(line) > 0 {
		pair := line
		if i := bytes.IndexByte(line, ';'); i >= 0 {
			pair, line = line[:i], line[i+1:]
		} else {
			line = nil
		}
		key, value, ok := bytes.Cut(pair, []byte{'='})
		if ok && string(Trim(key)) == name {
			return Trim(value), true
		}
	}
	return nil, false
}
