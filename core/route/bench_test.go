package route_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

// A table as a company has it: for each service an exact path, a prefix or a pattern.
func benchTable(b *testing.B, n int) *route.Table {
	var rules []route.Rule
	for i := range n {
		r := route.Rule{Route: &core.Route{ID: i + 1, Name: fmt.Sprint("r", i)}}
		service := fmt.Sprintf("/api/service-%d", i)
		switch i % 3 {
		case 0:
			r.Path = service + "/login"
		case 1:
			r.Path = service + "/**"
		case 2:
			r.Path = service + "/users/{id}"
		}
		rules = append(rules, r)
	}
	t, err := route.New(rules)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkMatch asks for another route each time, all of them equally often: the worst that can happen to the caches. Writing the
// path takes part in the time, as the case "writing" shows.
func BenchmarkMatch(b *testing.B) {
	kinds := []struct{ name, start, end string }{
		{"exact", "/api/service-", "/login"}, {"prefix", "/api/service-", "/123/detail"}, {"pattern", "/api/service-", "/users/4711"},
		{"none", "/web/service-", "/login"}, {"writing", "/api/service-", "/123/detail"},
	}
	for kind, k := range kinds {
		for _, n := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/routes=%d", k.name, n), func(b *testing.B) {
				t := benchTable(b, n)
				x := &core.Exchange{}
				path := make([]byte, 0, 64)
				i := uint64(kind % 3)
				b.ReportAllocs()
				for b.Loop() {
					path = append(path[:0], k.start...)
					path = strconv.AppendUint(path, i, 10)
					path = append(path, k.end...)
					if i += 3 * 619; i >= uint64(n)/3*3 {
						i %= uint64(n) / 3 * 3
					}
					x.Request.Path = path
					if k.name == "writing" {
						continue
					}
					if rt, _ := t.Match(x, nil); (rt == nil) != (k.name == "none") {
						b.Fatalf("wrong match of %s", path)
					}
				}
			})
		}
	}
}

func BenchmarkMatchOnePathAmong(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			t := benchTable(b, n)
			x := &core.Exchange{}
			x.Request.Path = []byte("/api/service-7/123/detail")
			b.ReportAllocs()
			for b.Loop() {
				if rt, _ := t.Match(x, nil); rt == nil {
					b.Fatal("no match")
				}
			}
		})
	}
}

func BenchmarkMatchHost(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			var rules []route.Rule
			for i := range n {
				rules = append(rules, route.Rule{Route: &core.Route{Name: fmt.Sprint(i)}, Hosts: []string{fmt.Sprintf("*.tenant-%d.example.com", i)},
					PathPrefix: "/api"})
			}
			t, err := route.New(rules)
			if err != nil {
				b.Fatal(err)
			}
			x := &core.Exchange{}
			x.Request.Host, x.Request.Path = []byte("www.tenant-5.example.com:8080"), []byte("/api/user/1")
			b.ReportAllocs()
			for b.Loop() {
				if rt, _ := t.Match(x, nil); rt == nil {
					b.Fatal("no match")
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	for _, raw := range []string{"/api/user/123", "/api/user/1%7E3/%2Fx", "/a/../b"} {
		b.Run(raw, func(b *testing.B) {
			in, buf := []byte(raw), make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				route.Canonical(in, buf)
			}
		})
	}
}

func BenchmarkTarget(b *testing.B) {
	rt := &core.Route{StripSegments: 2}
	path := []byte("/api/user/123/detail")
	b.ReportAllocs()
	for b.Loop() {
		route.Target(rt, path, path, nil)
	}
}
