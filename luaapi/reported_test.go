package luaapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/luatest"
)

// TestNumbersThatAreNoneNeverMakeInvalidText: NaN and the infinities, wherever a number becomes text.
func TestNumbersThatAreNoneNeverMakeInvalidText(t *testing.T) {
	holds(t, `assert(math.huge == 1 / 0 and -math.huge == -1 / 0 and math.huge > 1e308)`, luatest.Request{})
	for number, text := range map[string]string{"0/0": "nan", "math.huge": "inf", "1/0": "inf", "-1/0": "-inf"} {
		if a, _ := run(t, `return gw.respond(200, { n = `+number+` })`, luatest.Request{}); a.Status != 500 || a.Err == nil || !strings.Contains(a.Err.Error(), "no JSON form") {
			t.Errorf("respond with %s: status %d, %v, %s", number, a.Status, a.Err, a.Body)
		}
		if a, seen := run(t, `req.headers["X-N"] = `+number, luatest.Request{}); a.Err != nil || seen.Header("X-N") != text {
			t.Errorf("a header from %s: %q, %v", number, seen.Header("X-N"), a.Err)
		}
		b := bench(t, "", map[string]string{"filter": filter("on_log", "entry", `entry:write({ n = `+number+`, deep = { `+number+` } })`)})
		b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 200} }
		b.Do(luatest.Request{})
		if len(b.Lines) != 1 || b.Lines[0] != "" {
			t.Errorf("%s makes the lines %q, want one without it", number, b.Lines)
		}
		b = bench(t, "", onRequest(`gw.log.info("n", { n = `+number+` })`))
		b.Do(luatest.Request{})
		if line := b.Log(); !json.Valid([]byte(line)) || !strings.Contains(line, `"n":"`+text+`"`) {
			t.Errorf("%s is logged as %s", number, line)
		}
	}
}

// TestAClaimKeepsItsDigitsOnTheWayToAHeader: a user's number that no float holds.
func TestAClaimKeepsItsDigitsOnTheWayToAHeader(t *testing.T) {
	const key, number = "0123456789abcdef0123456789abcdef", "9007199254740993"
	token, err := auth.Sign([]byte(key), map[string]any{"sub": number, "id": json.Number("12345678901234567890")}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	a, seen := run(t, `local claims = assert(gw.jwt.verify(req.bearer, { secret = "`+key+`" }))
		ctx.user = claims.sub
		req.headers["X-Sub"], req.headers["X-Number"], req.headers["X-User"] = claims.sub, claims.id, ctx.user
		req:set_body(gw.json.encode({ id = claims.id }))`, luatest.Request{Headers: lines("Authorization", "Bearer "+token)})
	if got := seen.Header("X-Sub") + " " + seen.Header("X-Number") + " " + seen.Header("X-User") + " " + seen.Body; got != number+" 12345678901234567890 "+number+` {"id":12345678901234567890}` {
		t.Errorf("the upstream saw %s (%v)", got, a.Err)
	}
}

// TestNoLineBreakGetsOntoTheWireBehindTheUpstream: what a response function writes, and what is logged.
func TestNoLineBreakGetsOntoTheWireBehindTheUpstream(t *testing.T) {
	for _, evil := range []string{`a\r\nSet-Cookie: p=1`, `a\nb`, `a\rb`, `a\0b`} {
		for what, body := range map[string]string{
			"header X-A":        `res.headers["X-A"] = "` + evil + `"`,
			"header X-B":        `res.headers:add("X-B", "` + evil + `")`,
			"no header can":     `res.headers["X-` + evil + `"] = "v"`,
			"header Set-Cookie": `res.headers:add("Set-Cookie", "sid=` + evil + `")`,
			"value of cookie":   `res.headers:add("Set-Cookie", gw.cookie.format("sid", "` + evil + `"))`,
			"header Location":   `res.headers.Location = "/` + evil + `"`,
		} {
			a := respond(t, body, luatest.Answer{Status: 200, Body: "ok"})
			if a.Status != 500 || a.Err == nil || !strings.Contains(a.Err.Error(), what) || a.Header("Set-Cookie")+a.Header("X-A")+a.Header("X-B")+a.Header("Location") != "" {
				t.Errorf("%s: status %d, error %v, headers %q", body, a.Status, a.Err, a.Headers)
			}
		}
		b := bench(t, "", map[string]string{"filter": filter("on_log", "entry", `entry:write({ ["`+evil+`"] = "`+evil+`" }); gw.log.info("`+evil+`", { k = "`+evil+`" })`)})
		b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 200} }
		b.Do(luatest.Request{})
		if all := strings.Join(b.Lines, ""); len(b.Lines) != 1 || strings.ContainsAny(all, "\r\n\x00") || !json.Valid([]byte(`{"a":1`+all+"}")) {
			t.Errorf("the access line has %q", b.Lines)
		}
		if line := b.Log(); strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r\x00") || !json.Valid([]byte(line)) {
			t.Errorf("the log has %q", line)
		}
	}
}

// TestATableThatIsMadeEmptyIsAnObjectUntilItIsCalledAnArray: also one that a decoded document held.
func TestATableThatIsMadeEmptyIsAnObjectUntilItIsCalledAnArray(t *testing.T) {
	holds(t, `
		local doc = req:json()
		table.remove(doc.list)
		doc.props.k = nil
		doc.new, doc.array = {}, gw.json.array {}
		assert(gw.json.encode(doc) == '{"list":[],"props":{},"array":[],"new":{}}', gw.json.encode(doc))
	`, luatest.Request{Body: `{"list":[1],"props":{"k":1}}`})
}

// TestNoClientKeepsItsRequestOutOfTheLog: a header that is too long once it is written as JSON costs what a script adds, not the line.
func TestNoClientKeepsItsRequestOutOfTheLog(t *testing.T) {
	for _, extra := range []string{`{ header = entry.req.headers["X-Quotes"] }`, `{ 1, 2 }`, `{ f = print }`, `{ list = { list = gw.json.null, [3] = 1 } }`} {
		b := bench(t, "", map[string]string{"filter": filter("on_log", "entry", `entry:write(`+extra+`)`)})
		b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 200} }
		b.Do(luatest.Request{Headers: lines("X-Quotes", strings.Repeat(`"`, 40<<10))})
		if len(b.Lines) != 1 || b.Lines[0] != "" || !strings.Contains(b.Log(), "filter.lua:3: bad argument") {
			t.Errorf("%s: lines %.40q", extra, b.Lines)
		}
	}
}
