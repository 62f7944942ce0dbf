package luaapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestHeadersAreReadInAnyCaseAndJoined(t *testing.T) {
	holds(t, `
		local h = req.headers
		assert(h["x-a"] == "1" and h["X-A"] == "1" and h.x_a == nil)
		assert(h["X-Missing"] == nil)
		assert(h["X-Empty"] == "")
		assert(h["Accept"] == "text/html, text/plain")
		assert(h["Cookie"] == "a=1; b=2")
		assert(h.Host == "example.com")
		local all = h:all("accept")
		assert(#all == 2 and all[1] == "text/html" and all[2] == "text/plain")
		assert(#h:all("X-Missing") == 0)
	`, luatest.Request{Headers: lines("X-A", "1", "Accept", "text/html", "X-Empty", "", "accept", "text/plain", "Cookie", "a=1", "cookie", "b=2")})
}

func TestHeadersAreSetAddedAndDeletedInPlace(t *testing.T) {
	_, seen := run(t, `
		req.headers["X-Set"] = "new"
		req.headers["x-twice"] = "once"
		req.headers["X-Gone"] = nil
		req.headers["X-Number"] = 1234567.5
		req.headers:add("X-Added", 1)
		req.headers:add("X-Added", "2")
	`, luatest.Request{Headers: lines("X-Twice", "1", "X-Gone", "1", "X-Twice", "2", "x-gone", "2", "X-Kept", "y")})
	want := lines("X-Twice", "once", "X-Kept", "y", "X-Set", "new", "X-Number", "1234567.5", "X-Added", "1", "X-Added", "2")
	if !slices.Equal(seen.Headers, want) {
		t.Errorf("upstream saw %v, want %v", seen.Headers, want)
	}
}

func TestHeadersMayChangeWhileTheyAreWalked(t *testing.T) {
	_, seen := run(t, `
		local n = 0
		for name, value in pairs(req.headers) do
			n = n + 1
			req.headers[name] = nil
			req.headers["Y-" .. name] = value
		end
		assert(n == 3)
	`, luatest.Request{Headers: lines("A", "1", "B", "2", "C", "3")})
	if want := lines("Y-A", "1", "Y-B", "2", "Y-C", "3"); !slices.Equal(seen.Headers, want) {
		t.Errorf("upstream saw %v, want %v", seen.Headers, want)
	}
}

func TestSetCookieLinesStayApart(t *testing.T) {
	cookies := lines("Set-Cookie", "a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT", "Set-Cookie", "b=2", "Set-Cookie", "b=3")
	a := respond(t, `
		assert(res.headers["Set-Cookie"] == "a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT")
		assert(#res.headers:all("set-cookie") == 3)
		res.headers:add("Set-Cookie", "c=4")
	`, luatest.Answer{Status: 200, Headers: cookies})
	if want := append(cookies, lines("Set-Cookie", "c=4")...); a.Err != nil || !slices.Equal(a.Headers, want) {
		t.Errorf("client saw %v (%v), want %v", a.Headers, a.Err, want)
	}
}

func TestNoLineBreakGetsOntoTheWire(t *testing.T) {
	for _, evil := range []string{`a\r\nSet-Cookie: p=1`, `a\nb`, `a\rb`, `a\0b`} {
		for what, body := range map[string]string{
			"header X-A":      `req.headers["X-A"] = "` + evil + `"`,
			"header X-B":      `req.headers:add("X-B", "` + evil + `")`,
			"no header can":   `req.headers["X-` + evil + `"] = "v"`,
			"header X-C":      `return gw.respond(200, "", { ["X-C"] = "` + evil + `" })`,
			"header X-D":      `return gw.respond(200, "", { ["X-D"] = { "fine", "` + evil + `" } })`,
			"header Location": `return gw.redirect("/` + evil + `")`,
			"req.path":        `req.path = "/` + evil + `"`,
			"req.raw_query":   `req.raw_query = "` + evil + `"`,
			"req.host":        `req.host = "` + evil + `"`,
			"req.method":      `req.method = "` + evil + `"`,
			"cookie k":        `req.cookies.k = "` + evil + `"`,
			"cookie's name":   `req.cookies["` + evil + `"] = "v"`,
		} {
			a, seen := run(t, body, luatest.Request{})
			if a.Status != 500 || seen.Method != "" || a.Err == nil || !strings.Contains(a.Err.Error(), what) {
				t.Errorf("%s: status %d, error %v", body, a.Status, a.Err)
			}
		}
	}
}

func TestHeadersThatTheGatewayWritesAreRefused(t *testing.T) {
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Keep-Alive", "TE", "Expect", "X-Trace-Id"} {
		a, _ := run(t, `req.headers["`+name+`"] = "1"`, luatest.Request{})
		if a.Status != 500 || !strings.Contains(a.Err.Error(), name) {
			t.Errorf("%s: status %d, error %v", name, a.Status, a.Err)
		}
	}
}

func TestNumbersBecomeTextWithoutExponent(t *testing.T) {
	for number, want := range map[string]string{
		"1234567.5": "1234567.5", "100/2": "50", "1e15": "1000000000000000", "2^53": "9007199254740992", "1e20": "100000000000000000000",
		"0.1": "0.1", "-3": "-3", "0.000001": "0.000001", "12345678.9": "12345678.9",
	} {
		a, seen := run(t, `req.headers["X-N"] = `+number+`
			req:set_body(gw.json.encode({ n = `+number+` }))`, luatest.Request{})
		if seen.Header("X-N") != want || seen.Body != `{"n":`+want+`}` {
			t.Errorf("%s: header %q, body %q (%v), want %s", number, seen.Header("X-N"), seen.Body, a.Err, want)
		}
	}
	for _, number := range []string{"0/0", "math.huge", "-1/0"} {
		holds(t, `local ok, err = pcall(gw.json.encode, { n = `+number+` }); assert(not ok and err:find("no JSON form"))`, luatest.Request{})
	}
}

func TestOnlyItsOwnersSetAnIdentityHeader(t *testing.T) {
	b := bench(t, "", map[string]string{
		"auth": `return { stage = "auth", identity = { "X-Tenant" }, on_request = function(req) req.headers["X-Tenant"] = "a" end }`,
		"other": `return { stage = "transform", on_request = function(req)
			local ok, err = pcall(function() req.headers["x_tenant"] = "b" end)
			assert(not ok and err:find("only auth.lua may set it", 1, true), err)
			req.headers["X-Tenants"] = "c"
		end }`,
	})
	if got := b.Pipeline.Identity(); !slices.Equal(got, []string{"X-Tenant"}) {
		t.Errorf("identity headers %v", got)
	}
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	if a := b.Do(luatest.Request{}); a.Err != nil || seen.Header("X-Tenant") != "a" {
		t.Errorf("%v, upstream saw %v", a.Err, seen.Headers)
	}
}
