package compress

import (
	"bytes"

	"github.com/moongate/moongate/core"
)

// choose finds the encoding among those on offer that the client likes best (RFC 9110 section 12.5.3); "" for none. A client that does not
// say gets none. Weights count in thousandths.
func choose(offered []string, h *core.Header) string {
	best, most, identity := "", 0, 0
	for _, name := range append(offered[:len(offered):len(offered)], "identity") {
		q := -1
		for _, f := range h.Fields() {
			if core.EqualFoldString(f.Name, "Accept-Encoding") {
				q = max(q, weight(f.Value, name))
			}
		}
		switch {
		case name == "identity":
			identity = q
		case q > most:
			best, most = name, q
		}
	}
	if identity > most {
		return ""
	}
	return best
}

// weight is what a list gives an encoding: by its name, or by "*" where it is not named; -1 when it says nothing. "identity" is only
// weighed by its name. An element whose weight is malformed is as if it were not there.
func weight(list []byte, name string) int {
	any := -1
	for item, rest := core.NextItem(list); item != nil; item, rest = core.NextItem(rest) {
		coding, params := item, []byte(nil)
		if i := bytes.IndexByte(item, ';'); i >= 0 {
			coding, params = core.Trim(item[:i]), core.Trim(item[i+1:])
		}
		q, ok := qvalue(params)
		switch {
		case !ok:
		case core.EqualFoldString(coding, name), name == Gzip && core.EqualFoldString(coding, "x-gzip"):
			return q
		case len(coding) == 1 && coding[0] == '*' && name != "identity":
			any = q
		}
	}
	return any
}

// qvalue reads q=0.123 as 123 (RFC 9110 section 12.4.2); nothing is 1000.
func qvalue(b []byte) (int, bool) {
	if len(b) == 0 {
		return 1000, true
	}
	if len(b) < 3 || b[0]|0x20 != 'q' || b[1] != '=' || len(b) > 7 || b[2] != '0' && b[2] != '1' || len(b) > 3 && b[3] != '.' {
		return 0, false
	}
	q, unit := int(b[2]-'0')*1000, 100
	for i := 4; i < len(b); i++ {
		if b[i] < '0' || b[i] > '9' {
			return 0, false
		}
		q += int(b[i]-'0') * unit
		unit /= 10
	}
	return q, q <= 1000
}
