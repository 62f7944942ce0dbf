package route_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/route"
)

var errGone = errors.New("gone")

func withBody(x *core.Exchange, kind, body string, length int64) *core.Exchange {
	x.Request.Header.Add("Content-Type", kind)
	x.Request.Body.Attach(strings.NewReader(body), length)
	return x
}

func TestBodyFieldsAreTested(t *testing.T) {
	yes, no := true, false
	const kind = "application/json"
	long := `{"env":"canary","pad":"` + strings.Repeat("x", 100) + `"}`
	for _, c := range []struct {
		test       route.Condition
		kind, body string
		want       bool
	}{
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, kind, `{"env":"canary"}`, true},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, "Application/JSON; charset=utf-8", `{"env":"c\u0061nary"}`, true},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, "application/vnd.x+json", `{"env":"canary"}`, true},
		{route.Condition{Key: "user.tags.1", Matches: "^b"}, kind, `{"user":{"tags":["a","bc"]}}`, true},
		{route.Condition{Key: "n", OneOf: []string{"12"}}, kind, `{"n":12}`, true},
		{route.Condition{Key: "b", OneOf: []string{"true"}}, kind, `{"b":true}`, true},
		{route.Condition{Key: "env", Exists: &yes}, kind, `{"env":null}`, true},
		{route.Condition{Key: "env", OneOf: []string{""}}, kind, `{"env":null}`, false},
		{route.Condition{Key: "env", Exists: &no}, kind, `[1]`, true},
		{route.Condition{Key: "env", Exists: &no}, kind, `{"env":1}`, false},
		{route.Condition{Key: "env", Exists: &no}, "text/plain", `{}`, false},
		{route.Condition{Key: "env", Exists: &no}, "", `{}`, false},
		{route.Condition{Key: "env", Exists: &no}, kind, ``, false},
		{route.Condition{Key: "env", Exists: &no}, kind, `{"a":`, false},
		{route.Condition{Key: "env", Exists: &yes}, kind, `{"env":1} x`, false},
		{route.Condition{Key: "env", OneOf: []string{"canary"}}, kind, long, false},
		{route.Condition{Key: "0", Exists: &yes}, kind, strings.Repeat("[", 200_000), false},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			r := path("/")
			r.Route.BodyBuffer = 64
			if strings.HasPrefix(c.body, "[[") {
				r.Route.BodyBuffer = 1 << 20
			}
			r.Body = []route.Condition{c.test}
			x := withBody(exchange("/"), c.kind, c.body, length)
			if got := match(t, table(t, r), x) != ""; got != c.want {
				t.Errorf("%+v of %s %.40q, length %d: %v", c.test, c.kind, c.body, length, got)
			}
			if left, err := io.ReadAll(&x.Request.Body); string(left) != c.body || err != nil {
				t.Errorf("%.40q goes on as %.40q, %v", c.body, left, err)
			}
		}
	}
}

func TestCompressedBodyIsNotRead(t *testing.T) {
	r := path("/")
	yes := true
	r.Body = []route.Condition{{Key: "a", Exists: &yes}}
	x := withBody(exchange("/"), "application/json", `{"a":1}`, -1)
	x.Request.Header.Add("Content-Encoding", "gzip")
	if match(t, table(t, r), x) != "" || x.Request.Body.Taken() > 0 {
		t.Error("a compressed body was read")
	}
}

func TestBodyIsReadOnlyWhenARouteNeedsIt(t *testing.T) {
	yes := true
	field := func(key string) []route.Condition { return []route.Condition{{Key: key, Exists: &yes}} }
	table := table(t,
		named("a", func(r *route.Rule) { r.Path, r.Methods, r.Body = "/p", []string{"POST"}, field("a") }),
		named("b", func(r *route.Rule) { r.Path, r.Methods, r.Body = "/p", []string{"POST"}, field("b") }),
		path("/p"), path("/q"))
	for _, c := range []struct {
		method, path, kind string
		length             int64
		want               string
		asked              int
	}{
		{"POST", "/p", "application/json", -1, "b", 1},
		{"POST", "/p", "application/json", 7, "b", 1},
		{"POST", "/p", "application/json", 2 << 20, "/p", 0},
		{"POST", "/p", "text/plain", -1, "/p", 0},
		{"PUT", "/p", "application/json", -1, "/p", 0},
		{"POST", "/q", "application/json", -1, "/q", 0},
	} {
		x := withBody(exchange(c.path), c.kind, `{"b":1}`, c.length)
		x.Request.Method = c.method
		asked := 0
		rt, err := table.Match(x, told(func() error {
			if asked++; x.Request.Body.Taken() > 0 {
				t.Error("read before the client was told to send")
			}
			return nil
		}))
		if err != nil || rt.Name != c.want || asked != c.asked || (x.Request.Body.Taken() > 0) != (asked > 0) {
			t.Errorf("%+v: %v, %v, asked %d times, %d bytes read", c, rt, err, asked, x.Request.Body.Taken())
		}
	}
}

func TestRequestWithoutBodyIsNotAsked(t *testing.T) {
	yes := true
	table := table(t, named("a", func(r *route.Rule) { r.Body = []route.Condition{{Key: "a", Exists: &yes}} }))
	x := exchange("/")
	x.Request.Header.Add("Content-Type", "application/json")
	rt, err := table.Match(x, told(func() error { t.Error("asked"); return nil }))
	if rt != nil || err != nil {
		t.Errorf("%v, %v", rt, err)
	}
}

func TestFaultWhileReadingEndsTheSearch(t *testing.T) {
	yes := true
	table := table(t, path("/**"), named("b", func(r *route.Rule) { r.Path, r.Body = "/p", []route.Condition{{Key: "a", Exists: &yes}} }))
	x := exchange("/p")
	x.Request.Header.Add("Content-Type", "application/json")
	x.Request.Body.Attach(io.MultiReader(strings.NewReader(`{"a`), faulty{}), -1)
	if rt, err := table.Match(x, nil); rt != nil || !errors.Is(err, errGone) {
		t.Errorf("cut body: %v, %v", rt, err)
	}
	x = withBody(exchange("/p"), "application/json", `{"a":1}`, -1)
	if rt, err := table.Match(x, told(func() error { return errGone })); rt != nil || !errors.Is(err, errGone) {
		t.Errorf("client gone before 100: %v, %v", rt, err)
	}
	x = withBody(exchange("/p"), "application/json", `{"a":1}`, -1)
	x.Request.Body.Max = 3
	if rt, err := table.Match(x, nil); rt == nil || rt.Name != "/**" || err != nil {
		t.Errorf("body over max_body: %v, %v", rt, err)
	}
}

type faulty struct{}

func (faulty) Read([]byte) (int, error) { return 0, errGone }

// told is a client that is told to send its body.
type told func() error

func (t told) Continue() error { return t() }
