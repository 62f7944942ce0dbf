package luaapi_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestRequestFieldsTellTheRequest(t *testing.T) {
	holds(t, `
		assert(req.method == "PATCH" and req.path == "/a/b%2Fc" and req.raw_path == "/a/b%2Fc")
		assert(req.raw_query == "x=1" and req.host == "example.com" and req.scheme == "http")
		assert(req.client_ip == "2001:db8::1" and req.remote_addr == "[2001:db8::1]:50000")
		assert(req.route == "all" and req.tls == nil and req.bearer == nil)
		assert(req.params.id == "7" and req.params.none == nil)
		for name, value in pairs(req.params) do assert(name == "id" and value == "7") end
		assert(type(req) == "userdata" and req.headers == req.headers)
	`, luatest.Request{Method: "PATCH", Target: "/a/b%2Fc?x=1", ClientIP: "2001:db8::1", Params: map[string]string{"id": "7"}})
}

func TestTheBearerTokenIsFoundAsTheStandardsSay(t *testing.T) {
	for value, want := range map[string]string{
		"Bearer T": `"T"`, "bearer T": `"T"`, "BEARER   T": `"T"`, "Basic eA==": "nil", "Bearer": "nil", "BearerT": "nil",
		"Bearer T x": `""`, "Bearer A, Bearer B": `""`,
	} {
		holds(t, `assert(req.bearer == `+want+`, tostring(req.bearer))`, luatest.Request{Headers: lines("Authorization", value)})
	}
	holds(t, `assert(req.bearer == "")`, luatest.Request{Headers: lines("Authorization", "Bearer A", "authorization", "Bearer B")})
}

func TestQueryPairsAreSeenAsTheyCome(t *testing.T) {
	for query, check := range map[string]string{
		"a=1;role=admin":                      `q.a == "1;role=admin" and q.role == nil`,
		"x=%zz&role=user&role=admin":          `q.x == "%zz" and q.role == "user" and req:query_all("role")[2] == "admin"`,
		strings.Repeat("f=1&", 10000) + "r=2": `q.r == "2" and #req:query_all("f") == 10000`,
		"a;b=%zz&&c=":                         `q["a;b"] == "%zz" and q.c == "" and req.raw_query == "a;b=%zz&&c="`,
		"%61=b%20c+d":                         `q.a == "b c d"`,
		"all=1&add=2":                         `q.all == "1" and q.add == "2"`,
		"":                                    `q.a == nil and req.raw_query == ""`,
	} {
		_, seen := run(t, `local q = req.query; assert(`+check+`)`, luatest.Request{Target: "/?" + query})
		if seen.Method == "" || seen.Query != query {
			t.Errorf("%.40s: upstream saw %.60q", query, seen.Query)
		}
	}
}

func TestQueryWritesTouchOnlyTheirOwnPairs(t *testing.T) {
	for body, want := range map[string]string{
		`req.query.b = "x y&z"`:                               "a=%zz&b=x%20y%26z&c",
		`req.query.b = nil`:                                   "a=%zz&c",
		`req.query.new = 1e15`:                                "a=%zz&b=1&b=2&c&new=1000000000000000",
		`req:query_add("a", "2")`:                             "a=%zz&b=1&b=2&c&a=2",
		`req.raw_query = "q=1"`:                               "q=1",
		`req.raw_query = nil`:                                 "",
		`for k in pairs(req.query) do req.query[k] = nil end`: "",
	} {
		if a, seen := run(t, body, luatest.Request{Target: "/?a=%zz&b=1&b=2&c"}); a.Err != nil || seen.Query != want {
			t.Errorf("%s: upstream saw %q (%v), want %q", body, seen.Query, a.Err, want)
		}
	}
}

func TestPathMethodAndHostAreWritten(t *testing.T) {
	a, seen := run(t, `
		req.path = "/new path/é%2F%zz"
		assert(req.path == "/new%20path/%C3%A9%2F%25zz")
		req.method = "PUT"
		req.host = "other.example:8080"
	`, luatest.Request{Target: "/old?q=1"})
	if a.Err != nil || seen.Path != "/new%20path/%C3%A9%2F%25zz" || seen.Query != "q=1" || seen.Method != "PUT" || seen.Host != "other.example:8080" {
		t.Errorf("%v, upstream saw %+v", a.Err, seen)
	}
	for _, body := range []string{`req.path = "x"`, `req.path = "/a/../b"`, `req.path = "/a/%2e%2E/b"`, `req.path = "/a?b"`, `req.path = {}`,
		`req.method = "CONNECT"`, `req.method = "G T"`, `req.host = ""`, `req.host = "a/b"`, `req.raw_path = "/x"`, `req.route = "y"`,
		`req.query = {}`, `req.headers = {}`, `req.nope = 1`, `req.raw_query = "a b"`} {
		if a, seen := run(t, body, luatest.Request{}); a.Status != 500 || seen.Method != "" {
			t.Errorf("%s: status %d", body, a.Status)
		}
	}
}

func TestCookiesAreReadAndWritten(t *testing.T) {
	a, seen := run(t, `
		local c = req.cookies
		assert(c.sid == "abc" and c.theme == '"dark"' and c.empty == "" and c.none == nil and c.last == "x=y")
		c.sid = nil
		c.theme = "light"
		c.new = "1"
		local n = 0
		for name in pairs(c) do n = n + 1 end
		assert(n == 4, n)
	`, luatest.Request{Headers: lines("Cookie", `sid=abc; theme="dark";empty=`, "cookie", "last=x=y; sid=2")})
	if want := "theme=light; empty=; last=x=y; new=1"; a.Err != nil || seen.Header("Cookie") != want {
		t.Errorf("%v, upstream saw %q, want %q", a.Err, seen.Header("Cookie"), want)
	}
	if _, seen := run(t, `req.cookies.a = nil`, luatest.Request{Headers: lines("Cookie", "a=1")}); len(seen.Headers) != 0 {
		t.Errorf("upstream saw %v", seen.Headers)
	}
}

func TestMisuseNamesWhatWouldBeRight(t *testing.T) {
	for body, want := range map[string]string{
		`req.headder = 1`:                          `req has no "headder": it has bearer, `,
		`return req.boddy`:                         `req has no "boddy"`,
		`req.body()`:                               `call it with a colon: req:body(...)`,
		`req.headers.all("x")`:                     `call it with a colon`,
		`req.headers["X-A"] = {}`:                  `header X-A is set to a string or a number, not to a table`,
		`req.headers[1] = "x"`:                     `a header's name is a string`,
		`ctx.endpoint = "http://x"`:                `what gw.balance.pick gives`,
		`ctx.request_id = "x"`:                     `ctx.request_id is read-only`,
		`ctx.req = req`:                            `ctx.req holds plain values`,
		`ctx.f = function() end`:                   `ctx.f holds plain values`,
		`ctx[1] = 2`:                               `ctx has names only`,
		`conf.x = 1`:                               `conf is read-only`,
		`gw.x = 1`:                                 `gw is read-only`,
		`gw.json.null = 1`:                         `gw.json is read-only`,
		`return gw.respond(99)`:                    `a status is a whole number from 200 to 599`,
		`return gw.respond(200.5)`:                 `a status is a whole number`,
		`return gw.respond(204, "x")`:              `an answer of status 204 has no body`,
		`return gw.respond(200, print)`:            `a body is a string or a table`,
		`return gw.redirect("/x", 200)`:            `a redirection is 301`,
		`gw.limit.take("nobody", "k")`:             `there is no limiter "nobody"`,
		`gw.limit.take(conf, "k")`:                 `the filter has no limiter of its own`,
		`gw.limit.key("owner")`:                    `"owner" is no kind of key`,
		`gw.balance.pick("nowhere")`:               `there is no upstream "nowhere": there are canary, main`,
		`gw.env("HOME")`:                           `add it to env of [scripts]`,
		`gw.file.read("x")`:                        `gw.file.read cannot be called in on_request`,
		`gw.metric.counter("x")`:                   `cannot be called in on_request`,
		`gw.path.match("x", "/")`:                  `a path pattern begins with a slash`,
		`gw.path.match("/**/x", "/")`:              `** stands at the end`,
		`gw.re.test("x", "(")`:                     `missing closing`,
		`gw.shared.set("s", "k", {})`:              `store gw.json.encode(t)`,
		`gw.shared.get()`:                          `bad argument #1`,
		`gw.time.format(0/0)`:                      `seconds since 1970 expected`,
		`gw.crypto.hmac("md4", "k", "d")`:          `"md4" is no hash`,
		`gw.json.encode(print)`:                    `a function has no JSON form`,
		`gw.json.encode({ 1, nil, 3 })`:            `an array with a hole at 2`,
		`gw.json.encode({ 1, x = 2 })`:             `both items and the key "x"`,
		`gw.json.encode(req)`:                      `a handle has no JSON form`,
		`local t = {}; t.t = t; gw.json.encode(t)`: `nested deeper than 100`,
	} {
		a, _ := run(t, body, luatest.Request{})
		if a.Status != 500 || a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3: ") {
			t.Errorf("%s: status %d, error %v, want %s", body, a.Status, a.Err, want)
		}
	}
}

// TestTheRequestIsSeenAsItCameOnceItHasGone: what on_request changes goes upstream, and the later functions still see what the client sent.
func TestTheRequestIsSeenAsItCameOnceItHasGone(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": `
local M = { stage = "transform" }
function M.on_request(req, ctx, conf)
  req.headers["X-Tenant"] = "changed"
  req.headers["X-New"] = "new"
  req.headers["X-Gone"] = nil
  req.cookies.session = "changed"
  req.method, req.host = "PUT", "changed.test"
end
function M.on_response(res, ctx, conf)
  local req = res.req
  assert(req.headers["X-Tenant"] == "came" and req.headers["X-New"] == nil and req.headers["X-Gone"] == "there", "headers")
  assert(req.cookies.session == "came" and req.method == "GET" and req.host == "came.test", "method, host, cookies")
end
return M`})
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer {
		seen = f
		return luatest.Answer{Status: 200}
	}
	a := b.Do(luatest.Request{Method: "GET", Host: "came.test", Headers: lines("X-Tenant", "came", "X-Gone", "there", "Cookie", "session=came")})
	if a.Err != nil || a.Status != 200 {
		t.Fatal(a.Status, a.Err)
	}
	if seen.Method != "PUT" {
		t.Errorf("upstream got %s", seen.Method)
	}
}
