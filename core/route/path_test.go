package route_test

import (
	"errors"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

func TestCanonicalUnderEachPolicy(t *testing.T) {
	const refused = ""
	for _, c := range []struct{ raw, seen, strict, normalise string }{
		{"/", "/", "/", "/"},
		{"/a/b/", "/a/b/", "/a/b/", "/a/b/"},
		{"", "/", "/", "/"},
		{"*", "*", "*", "*"},
		{"/%61%2D%7E", "/a-~", "/%61%2D%7E", "/%61%2D%7E"},
		{"/a%2fb%20c%7Ed%E9", "/a%2fb%20c~d%E9", "/a%2fb%20c%7Ed%E9", "/a%2fb%20c%7Ed%E9"},
		{"/api/queues/%2F/q", "/api/queues/%2F/q", "/api/queues/%2F/q", "/api/queues/%2F/q"},
		{"/%252e%252e/x", "/%252e%252e/x", "/%252e%252e/x", "/%252e%252e/x"},
		{"/a;v=1/b;w", "/a;v=1/b;w", "/a;v=1/b;w", "/a;v=1/b;w"},
		{"/a/;s=1", "/a/;s=1", "/a/;s=1", "/a/;s=1"},
		{"/.well-known/x", "/.well-known/x", "/.well-known/x", "/.well-known/x"},
		{"/.../x..y", "/.../x..y", "/.../x..y", "/.../x..y"},
		{"/\xff.js", "/\xff.js", "/\xff.js", "/\xff.js"},
		{"/%ff", "/%ff", "/%ff", "/%ff"},

		{"/open/../private", "/private", refused, "/private"},
		{"/open/%2e%2E/private", "/private", refused, "/private"},
		{"/open/.%2e/private", "/private", refused, "/private"},
		{"/open/..;/private", "/private", refused, "/private"},
		{"/open/%2e%2e;x=1/private", "/private", refused, "/private"},
		{`/open\..\private`, "/private", refused, "/private"},
		{`/open/..\private`, "/private", refused, "/private"},
		{`/open\x`, "/open/x", refused, "/open/x"},
		{"/../../x", "/x", refused, "/x"},
		{"/a/./b", "/a/b", refused, "/a/b"},
		{"/a/.", "/a/", refused, "/a/"},
		{"/a/..", "/", refused, "/"},
		{"/a/b/..;x", "/a/", refused, "/a/"},
		{"//a", "/a", refused, "/a"},
		{"/a//b", "/a/b", refused, "/a/b"},
		{"/a//", "/a/", refused, "/a/"},
		{"/;x/private", "/private", refused, "/private"},
		{"/%61/../%62%2f", "/b%2f", refused, "/%62%2f"},
		{"/a%zz", "/a%25zz", refused, "/a%zz"},
		{"/a%", "/a%25", refused, "/a%"},
		{"/%%32e/x", "/%252e/x", refused, "/%%32e/x"},
		{"/a%00b", "/a%00b", refused, "/a%00b"},
	} {
		p, err := route.Canonical([]byte(c.raw), nil)
		if err != nil {
			t.Errorf("%q: %v", c.raw, err)
			continue
		}
		if string(p.Seen) != c.seen {
			t.Errorf("%q is seen as %q, want %q", c.raw, p.Seen, c.seen)
		}
		got, err := p.Under(core.PathStrict)
		if string(got) != c.strict || (err != nil) != (c.strict == refused) {
			t.Errorf("%q under strict: %q, %v, want %q", c.raw, got, err, c.strict)
		}
		if err != nil && status(err) != 400 {
			t.Errorf("%q is refused with %v, want 400", c.raw, err)
		}
		if got, err := p.Under(core.PathNormalise); string(got) != c.normalise || err != nil {
			t.Errorf("%q under normalise: %q, %v, want %q", c.raw, got, err, c.normalise)
		}
		if got, err := p.Under(core.PathRaw); c.raw != "" && string(got) != c.raw || err != nil {
			t.Errorf("%q under raw: %q, %v", c.raw, got, err)
		}
	}
}

func TestCanonicalRefusesUnderEveryPolicy(t *testing.T) {
	for _, raw := range []string{
		"a/b", "http://x/", "**", "/a b", "/a\tb", "/a\x00b", "/a\x7f", "/a?b", "/a#b", "/.\n", "/%2f?",
		"/open/..%2fprivate", "/open%2F..%2fprivate", "/open%2f..", "/open%5c..%5Cprivate", "/open/%2e%2e%5cprivate", "/a%2f./b",
		"/open/..%3bx/private", "/open/..;x%2fprivate", "/open/..%00/private", "/a;x=%2f../private", "/a;%5c..;/private",
	} {
		if p, err := route.Canonical([]byte(raw), nil); status(err) != 400 {
			t.Errorf("%q: seen as %q, error %v, want 400", raw, p.Seen, err)
		}
	}
}

func TestCanonicalCopiesNothingWhereNothingChanges(t *testing.T) {
	for _, s := range []string{"/", "/api/user/123", "/a;v=1/.well-known/%2F", "/a%2fb"} {
		raw := []byte(s)
		var p route.Path
		allocs := testing.AllocsPerRun(100, func() { p, _ = route.Canonical(raw, nil) })
		if &p.Seen[0] != &raw[0] || allocs != 0 {
			t.Errorf("%q: copied, %v allocations", s, allocs)
		}
	}
	raw, buf := []byte("/%61/../%62%%"), make([]byte, 0, 4*len("/%61/../%62%%")+2)
	if n := testing.AllocsPerRun(100, func() { route.Canonical(raw, buf) }); n != 0 {
		t.Errorf("%v allocations with a buffer that is large enough", n)
	}
}

func status(err error) int {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
