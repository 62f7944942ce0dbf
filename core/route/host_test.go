package route_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/core/route"
)

func TestHostsMatch(t *testing.T) {
	table := table(t, host("api.example.com", "/**"), host("*.example.com", "/**"), host("*.eu.example.com", "/**"),
		host("[::1]", "/**"), host("2001:DB8::0:1", "/**"), host("10.0.0.1", "/**"), path("/**"))
	for _, c := range []struct{ host, want string }{
		{"api.example.com", "api.example.com/**"},
		{"API.Example.COM:8080", "api.example.com/**"},
		{"api.example.com.", "api.example.com/**"},
		{"api.example.com.:443", "api.example.com/**"},
		{"www.example.com", "*.example.com/**"},
		{"x.api.example.com", "*.example.com/**"},
		{"a.b.eu.example.com", "*.eu.example.com/**"},
		{"eu.example.com", "*.example.com/**"},
		{"example.com", "/**"},
		{".example.com", "/**"},
		{"badexample.com", "/**"},
		{"[::1]:8080", "[::1]/**"},
		{"[0:0::0:1]", "[::1]/**"},
		{"[2001:db8::1]", "2001:DB8::0:1/**"},
		{"[::1%25eth0]", "/**"},
		{"[::1", "/**"},
		{"10.0.0.1:80", "10.0.0.1/**"},
		{"", "/**"},
		{":80", "/**"},
		{"\x80\xff", "/**"},
		{strings.Repeat("a.", 4000) + "example.com", "/**"},
	} {
		x := exchange("/")
		x.Request.Host = []byte(c.host)
		if got := match(t, table, x); got != c.want {
			t.Errorf("host %q goes to %q, want %q", c.host, got, c.want)
		}
	}
}

func TestHostFallsBackToLessSpecificOnes(t *testing.T) {
	table := table(t,
		named("exact", func(r *route.Rule) {
			r.Hosts, r.Path, r.Methods = []string{"a.x.com", "b.x.com"}, "/p", []string{"POST"}
		}),
		named("suffix", func(r *route.Rule) { r.Hosts, r.PathPrefix = []string{"*.x.com"}, "/p" }),
		named("none", func(r *route.Rule) { r.Path = "/p/q" }))
	for _, c := range []struct{ host, method, path, want string }{
		{"a.x.com", "POST", "/p", "exact"},
		{"b.x.com", "POST", "/p", "exact"},
		{"a.x.com", "GET", "/p", "suffix"},
		{"a.x.com", "GET", "/p/q", "suffix"},
		{"x.com", "GET", "/p/q", "none"},
		{"a.x.com", "GET", "/q", ""},
	} {
		x := exchange(c.path)
		x.Request.Host, x.Request.Method = []byte(c.host), c.method
		if got := match(t, table, x); got != c.want {
			t.Errorf("%+v goes to %q", c, got)
		}
	}
}
