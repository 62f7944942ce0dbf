package gateway

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/moongate/moongate/core"
)

// second renders times of RFC 3339 with milliseconds. The calendar is asked once a second; most lines differ in their last digits only.
type second struct {
	unix int64
	text []byte // up to the point
}

func (s *second) append(b []byte, t time.Time) []byte {
	if unix := t.Unix(); s.text == nil || unix != s.unix {
		s.unix, s.text = unix, t.UTC().AppendFormat(s.text[:0], "2006-01-02T15:04:05.")
	}
	ms := t.Nanosecond() / 1e6
	return append(append(b, s.text...), byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// appendLine renders the access line of an exchange, newline included. What a client sent is escaped; what is unknown is left out.
func appendLine(b []byte, s *second, x *core.Exchange, extra []byte) []byte {
	r, w := &x.Request, &x.Response
	b = append(b, `{"time":"`...)
	b = s.append(b, x.Times.Start.Wall())
	b = append(b, `","request_id":"`...)
	b = append(b, x.RequestID...)
	b = append(b, `","trace_id":"`...)
	b = append(b, x.TraceID...)
	b = append(b, '"')
	b = member(b, `,"method":`, core.Bytes(r.Method))
	b = member(b, `,"path":`, r.Path)
	b = append(b, `,"protocol":"`...)
	b = append(b, r.Proto.String()...)
	b = append(b, '"')
	if x.Route != nil {
		b = member(b, `,"route":`, core.Bytes(x.Route.Name))
	}
	b = member(b, `,"upstream":`, core.Bytes(x.Upstream))
	if e := x.Endpoint; e != nil {
		b = append(b, `,"endpoint":"`...)
		b = append(b, e.Label()...)
		b = append(b, '"')
	}
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(w.Status), 10)
	b = member(b, `,"source":`, core.Bytes(w.Source.String()))
	b = append(b, `,"bytes_in":`...)
	b = strconv.AppendInt(b, r.Body.Taken(), 10)
	b = append(b, `,"bytes_out":`...)
	b = strconv.AppendInt(b, w.BodySent, 10)
	if r.ClientIP.IsValid() {
		b = append(b, `,"client_ip":"`...)
		b = append(r.ClientIP.AppendTo(b), '"')
	} else {
		b = append(b, `,"client_ip":"unix"`...)
	}
	b = member(b, `,"user":`, core.Bytes(x.User))
	b = borders(b, &x.Times)
	if x.Err != nil {
		b = member(b, `,"error":`, []byte(x.Err.Error()))
	}
	b = append(b, extra...)
	return append(b, "}\n"...)
}

// borders renders the milliseconds since the request's head at each border that was crossed.
func borders(b []byte, t *core.Times) []byte {
	b = append(b, `,"ms":{`...)
	first := true
	for _, border := range [...]struct {
		name string
		at   core.Instant
	}{{`"filters":`, t.Filtered}, {`"connected":`, t.Connected}, {`"sent":`, t.Sent}, {`"first_byte":`, t.FirstByte}, {`"last_byte":`, t.Done}} {
		if border.at == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, border.name...)
		b = appendMillis(b, border.at.Sub(t.Start))
	}
	return append(b, '}')
}

// appendMillis writes a duration in milliseconds with three decimals.
func appendMillis(b []byte, d time.Duration) []byte {
	us := max(d.Microseconds(), 0)
	b = strconv.AppendInt(b, us/1000, 10)
	f := us % 1000
	return append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
}

func member(b []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return appendJSON(append(b, name...), value)
}

// appendJSON writes a JSON string (RFC 8259 section 7). Bytes that are no UTF-8 become U+FFFD.
func appendJSON(b, s []byte) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= utf8.RuneSelf:
			b = append(b, `\ufffd`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
