package route_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

func TestTableAgreesWithTheReference(t *testing.T) {
	tables, requests := 800, 40
	if testing.Short() {
		tables = 100
	}
	for seed := range tables {
		compare(t, uint64(seed), requests)
		if t.Failed() {
			return
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compare(t, seed, 20) })
}

// compare builds a random table and asks it and the reference about random requests.
func compare(t *testing.T, seed uint64, requests int) {
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	var random uint64
	rules, table := g.table(t, route.Options{Random: func(n uint64) uint64 { return random % n }})
	taken := 0
	for range requests {
		q := g.request()
		random = g.Uint64()
		x := q.exchange()
		asked := 0
		rt, err := table.Match(x, told(func() error { asked++; return nil }))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := -1
		if rt != nil {
			got = rt.ID
			taken++
		}
		if want := referenceMatch(rules, q, random); got != want {
			t.Fatalf("seed %d, request %+v:\ntable says %s\nreference %s", seed, *q, describe(rules, got), describe(rules, want))
		}
		if asked > 1 {
			t.Fatalf("seed %d: asked %d times for the body", seed, asked)
		}
		if left, _ := io.ReadAll(&x.Request.Body); string(left) != q.body {
			t.Fatalf("seed %d: body is %q after the match, was %q", seed, left, q.body)
		}
	}
}

func describe(rules []route.Rule, i int) string {
	if i < 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s %v of %q, priority %d", i, spell(&rules[i]), pathRank(&rules[i]), rules[i].Hosts, rules[i].Priority)
}

// generator makes rules and requests of so few words that they meet often.
type generator struct{ *rand.Rand }

func (g generator) table(t *testing.T, opts route.Options) ([]route.Rule, *route.Table) {
	var rules []route.Rule
	for range 1 + g.IntN(30) {
		rules = append(rules, g.rule())
	}
	for {
		for i := range rules {
			rules[i].Route.ID, rules[i].Route.Name = i, fmt.Sprint("rule ", i)
		}
		table, err := route.NewWith(rules, opts)
		if err == nil {
			checkApart(t, rules)
			return rules, table
		}
		var fault *route.Error
		if !errors.As(err, &fault) || fault.Other < 0 {
			t.Fatalf("generated rule is refused: %v", err)
		}
		a, b := &rules[fault.Rule], &rules[fault.Other]
		if !sameButWeight(a, b) || a.Weight != nil && b.Weight != nil {
			t.Fatalf("%v, but they can be told apart:\n%s\n%s", err, spell(a), spell(b))
		}
		rules = slices.Delete(rules, fault.Rule, fault.Rule+1)
	}
}

// checkApart fails when the table should have been refused.
func checkApart(t *testing.T, rules []route.Rule) {
	for i := range rules {
		for j := range i {
			a, b := &rules[i], &rules[j]
			meet := len(a.Hosts) == 0 && len(b.Hosts) == 0 ||
				slices.ContainsFunc(a.Hosts, func(h string) bool { return slices.Contains(b.Hosts, h) })
			if meet && sameButWeight(a, b) && (a.Weight == nil || b.Weight == nil) {
				t.Fatalf("two rules that cannot be told apart are taken:\n%s\n%s", spell(a), spell(b))
			}
		}
	}
}

func (g generator) one(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) rule() route.Rule {
	r := route.Rule{Route: &core.Route{BodyBuffer: int64(20 + 60*g.IntN(2))}, Priority: g.IntN(2)}
	for range g.IntN(3) {
		if h := g.one("x.com", "a.x.com", "*.x.com", "*.a.x.com", "*.com"); !slices.Contains(r.Hosts, h) {
			r.Hosts = append(r.Hosts, h)
		}
	}
	switch g.IntN(8) {
	case 0:
	case 1:
		r.PathRegex = g.one("^/a/", "b$", "^/a/b", "/c")
	case 2, 3:
		r.PathPrefix = g.path("a", "b", "%2F")
	default:
		r.Path = strings.ReplaceAll(g.path("a", "b", "c", "{n}", "*", "**"), "**/**", "**")
		for i := 0; strings.Contains(r.Path, "{n}"); i++ {
			r.Path = strings.Replace(r.Path, "{n}", fmt.Sprintf("{n%d}", i), 1)
		}
		r.Path = strings.ReplaceAll(r.Path, "**/**", "**")
	}
	if g.IntN(3) == 0 {
		r.Methods = [][]string{{"GET"}, {"POST"}, {"GET", "POST"}}[g.IntN(3)]
	}
	if g.IntN(6) == 0 {
		r.Clients = []string{g.one("10.0.0.0/8", "10.1.0.0/16")}
	}
	for _, list := range []*[]route.Condition{&r.Headers, &r.Query, &r.Cookies, &r.Body} {
		if g.IntN(5) == 0 {
			*list = append(*list, g.condition("k"))
			if g.IntN(3) == 0 {
				*list = append(*list, g.condition("l"))
			}
		}
	}
	if g.IntN(3) == 0 {
		w := g.IntN(3)
		r.Weight = &w
	}
	return r
}

func (g generator) path(words ...string) string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString("/" + g.one(words...))
	}
	if g.IntN(5) == 0 {
		b.WriteString("/")
	}
	return b.String()
}

func (g generator) condition(key string) route.Condition {
	yes := g.IntN(2) == 0
	switch g.IntN(4) {
	case 0:
		return route.Condition{Key: key, Exists: &yes}
	case 1:
		return route.Condition{Key: key, Matches: g.one("^v", "1$")}
	case 2:
		return route.Condition{Key: key, OneOf: []string{"v1", "v2"}}
	}
	return route.Condition{Key: key, OneOf: []string{g.one("v1", "v2", "")}}
}

func (g generator) request() *request {
	q := &request{
		host:   g.one("", "x.com", "A.x.com:80", "b.a.x.com.", "y.com", "z.org"),
		method: g.one("GET", "POST", "PUT"),
		path:   g.one("/", g.path("a", "b", "c", "a;x=1", "%2f", "%2F;"), g.path("a", "b", "c"), g.path("a", "b")),
		client: g.one("10.1.2.3", "10.9.9.9", "192.0.2.1"),
		query:  g.one("", "k=v1", "l=v2&k=v2", "%6b=%761&k=no", "k"),
		cookie: g.one("", "k=v1", "k=v2", "l="),
		header: map[string]string{},
	}
	for _, k := range []string{"k", "l"} {
		if g.IntN(2) == 0 {
			q.header[k] = g.one("v1", "v2", "other1", "")
		}
	}
	if g.IntN(3) > 0 {
		q.kind = g.one("application/json", "application/json", "text/plain")
		q.body = g.one(`{"k":"v1"}`, `{"k":"v2","l":"v1"}`, `{"k":"`, "", `{"l":"`+strings.Repeat("v", 30)+`"}`, `{"k":"`+strings.Repeat("v1", 50)+`"}`)
	}
	return q
}

func (q *request) exchange() *core.Exchange {
	x := &core.Exchange{}
	r := &x.Request
	r.Method, r.Host, r.Path, r.RawQuery = q.method, []byte(q.host), []byte(q.path), []byte(q.query)
	r.ClientIP = netip.MustParseAddr(q.client)
	for k, v := range q.header {
		r.Header.Add(strings.ToUpper(k), v)
	}
	if q.cookie != "" {
		r.Header.Add("Cookie", q.cookie)
	}
	if q.kind != "" {
		r.Header.Add("Content-Type", q.kind)
	}
	if q.body != "" {
		length := int64(len(q.body))
		if len(q.body)%2 == 0 {
			length = -1
		}
		r.Body.Attach(bytes.NewReader([]byte(q.body)), length)
	}
	return x
}
