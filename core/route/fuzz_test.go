package route_test

import (
	"bytes"
	"net/url"
	stdpath "path"
	"regexp"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

// No reader, however it decodes, may find one of these in a path that was seen.
var (
	dotSegment   = regexp.MustCompile(`(?i)(^|/|\\|%2f|%5c)(\.|%2e){1,2}(;|%3b|%00|/|\\|%2f|%5c|$)`)
	emptySegment = regexp.MustCompile(`/(;[^/]*)?/`)
)

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		"/", "", "*", "/a/b", "/open/../private", "/open/%2e%2e/private", "/open/..;/private", `/open\..\private`, "/%%32e%2", "/a%2f..",
		"/;a/..;b/%2E;", "/\xff/%ff", "/a%5c.%2e%3b", "/a;%2f..", "//", "/a/./b/../..", "/%25%32%65", "/.%00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		given := bytes.Clone(raw)
		p, err := route.Canonical(raw, make([]byte, 0, 4*len(raw)+2))
		if !bytes.Equal(raw, given) {
			t.Fatalf("%q was changed to %q", given, raw)
		}
		if err != nil {
			if status(err) != 400 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if dotSegment.Match(p.Seen) || emptySegment.Match(p.Seen) {
			t.Fatalf("%q is seen as %q", raw, p.Seen)
		}
		again, err := route.Canonical(p.Seen, nil)
		if err != nil || !bytes.Equal(again.Seen, p.Seen) {
			t.Fatalf("%q is seen as %q and that as %q, %v", raw, p.Seen, again.Seen, err)
		}
		resolved, err := p.Under(core.PathNormalise)
		if err != nil || dotSegment.Match(resolved) {
			t.Fatalf("%q is sent as %q, %v", raw, resolved, err)
		}
		once, err := route.Canonical(resolved, nil)
		if err != nil || !bytes.Equal(once.Seen, p.Seen) {
			t.Fatalf("%q is seen as %q but its resolved form %q as %q, %v", raw, p.Seen, resolved, once.Seen, err)
		}
		if sent, _ := p.Under(core.PathRaw); len(raw) > 0 && !bytes.Equal(sent, raw) {
			t.Fatalf("%q under raw is %q", raw, sent)
		}
		checkTheirs(t, raw, p.Seen)
		strict, err := p.Under(core.PathStrict)
		if err != nil {
			return
		}
		if len(raw) > 0 && !bytes.Equal(strict, raw) {
			t.Fatalf("%q under strict is %q", raw, strict)
		}
		a, errA := url.PathUnescape(string(strict))
		b, errB := url.PathUnescape(string(p.Seen))
		if errA != nil || errB != nil || a != b {
			t.Fatalf("%q means %q, %v, but is seen as %q: %q, %v", raw, a, errA, p.Seen, b, errB)
		}
		checkStripped(t, strict, p.Seen)
	})
}

// ownWays are what the gateway reads in a way of its own, so that no upstream can read more into it.
var ownWays = regexp.MustCompile(`(?i)[;\\]|%(2f|3b|5c|00)`)

// checkTheirs holds what is seen against what net/http's server parses and its ServeMux cleans.
func checkTheirs(t *testing.T, raw, seen []byte) {
	theirs, err := url.ParseRequestURI(string(raw))
	if err != nil || raw[0] != '/' || theirs.RawQuery != "" || theirs.ForceQuery || ownWays.Match(raw) {
		return
	}
	ours, err := url.PathUnescape(string(seen))
	if want := stdpath.Clean(theirs.Path); err != nil || strings.TrimRight(ours, "/") != strings.TrimRight(want, "/") {
		t.Fatalf("%q is %q to net/http and seen as %q, %v", raw, want, ours, err)
	}
}

// checkStripped takes one segment from both forms: what is left still means the same.
func checkStripped(t *testing.T, raw, seen []byte) {
	rt := &core.Route{StripSegments: 1}
	left := route.Target(rt, raw, seen, nil)
	if len(raw) > 0 && !bytes.HasSuffix(raw, left) && string(left) != "/" {
		t.Fatalf("%q without a segment is %q", raw, left)
	}
	p, err := route.Canonical(left, nil)
	if want := route.Target(rt, seen, seen, nil); err != nil || !bytes.Equal(p.Seen, want) {
		t.Fatalf("%q without a segment is seen as %q, want %q, %v", raw, p.Seen, want, err)
	}
}

// FuzzMatchPath asks one table with every kind of path about any request line.
func FuzzMatchPath(f *testing.F) {
	table := table(f, path("/a/b"), path("/a/{id}"), path("/x/*/**"), path("/**/z/{name}"), prefix("/p/"), expression("^/[^/]*%"), path("/**"),
		host("*.x.com", "/a/**"), host("[::1]", "/a"))
	f.Add([]byte("a.x.com"), []byte("/a/b"))
	f.Add([]byte("[::1]:1"), []byte("/x;/z/%c3;/\xff"))
	f.Fuzz(func(t *testing.T, host, raw []byte) {
		p, err := route.Canonical(raw, nil)
		if err != nil {
			return
		}
		x := &core.Exchange{}
		x.Request.Host, x.Request.Path = host, p.Seen
		rt, err := table.Match(x, nil)
		if err != nil || rt == nil {
			t.Fatalf("%q %q: %v, %v", host, raw, rt, err)
		}
		for _, param := range x.Request.Params {
			if len(param.Value) == 0 || bytes.ContainsAny(param.Value, "/;") {
				t.Fatalf("%q: param %s is %q", raw, param.Name, param.Value)
			}
		}
	})
}
