package route_test

import (
	"fmt"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

// A table as a company has it: for each service an exact path, a prefix and a pattern.
func benchTable(b *testing.B, n int) (*route.Table, []string) {
	var rules []route.Rule
	var paths []string
	for i := range n {
		r := route.Rule{Route: &core.Route{ID: i + 1, Name: fmt.Sprint("r", i)}}
		service := fmt.Sprintf("/api/service-%d", i)
		switch i % 3 {
		case 0:
			r.Path = service + "/login"
			paths = append(paths, r.Path)
		case 1:
			r.Path = service + "/**"
			paths = append(paths, service+"/123/detail")
		case 2:
			r.Path = service + "/users/{id}"
			paths = append(paths, service+"/users/4711")
		}
		rules = append(rules, r)
	}
	t, err := route.New(rules)
	if err != nil {
		b.Fatal(err)
	}
	return t, paths
}

func BenchmarkMatch(b *testing.B) {
	for kind, name := range []string{"exact", "prefix", "pattern", "none"} {
		for _, n := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/routes=%d", name, n), func(b *testing.B) {
				t, paths := benchTable(b, n)
				var requests [][]byte
				for i, p := range paths {
					if kind == 3 {
						p = "/web" + p
					} else if i%3 != kind {
						continue
					}
					requests = append(requests, []byte(p))
				}
				x := &core.Exchange{}
				b.ReportAllocs()
				i, step := 0, len(requests)*7/11|1
				for b.Loop() {
					x.Request.Path = requests[i]
					if i += step; i >= len(requests) {
						i %= len(requests)
					}
					if rt, _ := t.Match(x, nil); (rt == nil) != (kind == 3) {
						b.Fatal("wrong match")
					}
				}
			})
		}
	}
}

func BenchmarkMatchOnePathAmong(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			t, paths := benchTable(b, n)
			x := &core.Exchange{}
			x.Request.Path = []byte(paths[7])
			b.ReportAllocs()
			for b.Loop() {
				t.Match(x, nil)
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
