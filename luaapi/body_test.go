package luaapi_test

import (
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

// readers is a pipeline in which an auth script reads the body twice, a rewrite script changes it, and a log script reads it.
var readers = map[string]string{
	"auth": `return { stage = "auth", on_request = function(req, ctx)
		assert(req:body() == req:body())
		ctx.seen = #req:body()
	end }`,
	"rewrite": `return { stage = "transform", on_request = function(req)
		local body = req:body()
		if #body > 0 then req:set_body("X" .. body:sub(2)) end
	end }`,
	"last": `return { stage = "log", on_log = function(entry, ctx)
		entry:write({ body = #entry.req:body(), first = entry.req:body():sub(1, 1), seen = ctx.seen })
	end }`,
}

func TestEveryReaderSeesTheBodyAsItStands(t *testing.T) {
	for size, logged := range map[int]string{0: `,"body":0,"first":"","seen":0`, 5: `,"body":5,"first":"X","seen":5`, 300 << 10: `,"body":307200,"first":"X","seen":307200`} {
		for _, length := range []int64{int64(size), -1} {
			b := bench(t, "", readers)
			var seen luatest.Forwarded
			b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
			x := b.Exchange(luatest.Request{Method: "POST", Headers: lines("Content-Encoding", "identity", "Content-MD5", "x", "X-Kept", "1")})
			x.Request.Body.Attach(strings.NewReader(strings.Repeat("a", size)), length)
			a := b.Serve(x)
			want := strings.Repeat("a", size)
			if size > 0 {
				want = "X" + want[1:]
			}
			if a.Status != 200 || seen.Body != want || len(b.Lines) != 1 || b.Lines[0] != logged {
				t.Errorf("%d bytes: status %d, %v, upstream saw %d bytes, logged %q", size, a.Status, a.Err, len(seen.Body), b.Lines)
			}
			if size > 0 && (seen.Header("Content-Encoding") != "" || seen.Header("Content-MD5") != "" || seen.Header("X-Kept") == "") {
				t.Errorf("%d bytes: upstream saw %v", size, seen.Headers)
			}
		}
	}
}

func TestABodyBeyondTheBufferEndsTheRequestBeforeAScriptSeesAPart(t *testing.T) {
	for _, body := range []string{`req:body()`, `req:json()`, `req:json_get("a")`, `pcall(function() return req:body() end); return gw.respond(200, "fooled")`} {
		for _, length := range []int64{2 << 20, -1} {
			b := bench(t, "", onRequest(body))
			asked := false
			b.Upstream = func(luatest.Forwarded) luatest.Answer { asked = true; return luatest.Answer{Status: 200} }
			x := b.Exchange(luatest.Request{})
			x.Request.Body.Attach(strings.NewReader(strings.Repeat("a", 2<<20)), length)
			if a := b.Serve(x); a.Status != 413 || asked {
				t.Errorf("%s with length %d: status %d, forwarded %t", body, length, a.Status, asked)
			}
		}
	}
}

func TestABodyThatFitsNowhereStillGoesOnWhole(t *testing.T) {
	b := bench(t, "", onRequest(`assert(not req:body_fits())`))
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	x := b.Exchange(luatest.Request{})
	text := strings.Repeat("0123456789", 200<<10)
	x.Request.Body.Attach(strings.NewReader(text), -1)
	if a := b.Serve(x); a.Status != 200 {
		t.Fatal(a.Status, a.Err)
	}
	if seen.Body != text {
		t.Errorf("%d bytes went on", len(seen.Body))
	}
}

type cutReader struct{ text string }

func (r *cutReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, errors.New("connection reset")
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func TestABodyThatIsCutEndsTheRequest(t *testing.T) {
	b := bench(t, "", onRequest(`pcall(function() return req:body() end)`))
	x := b.Exchange(luatest.Request{})
	x.Request.Body.Attach(&cutReader{"half"}, 8)
	if a := b.Serve(x); a.Status != 400 {
		t.Errorf("status %d, %v", a.Status, a.Err)
	}
}

func TestTheBodyThatNobodyReadIsGoneAfterwards(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": filter("on_log", "entry", `local body, err = entry.req:body()
		entry:write({ body = body or gw.json.null, err = err })`)})
	x := b.Exchange(luatest.Request{})
	x.Request.Body.Attach(strings.NewReader("text"), 4)
	b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 200} }
	x.Request.Body.Read(make([]byte, 1))
	for _, s := range b.Pipeline.Stages(x.Route) {
		s.Log(x)
	}
	if len(b.Lines) != 1 || !strings.Contains(b.Lines[0], "read it in on_request") {
		t.Errorf("%q, %s", b.Lines, b.Log())
	}
}

func TestAChangedAnswerTellsTheTruthAboutItself(t *testing.T) {
	a := respond(t, `
		assert(res:body() == "hello" and res.source == "upstream")
		res:set_body("bye")
		res.status = 203
	`, luatest.Answer{Status: 200, Body: "hello", Headers: lines("Content-Length", "5", "ETag", `"1"`, "Last-Modified", "x", "Content-Encoding", "gzip",
		"Accept-Ranges", "bytes", "Digest", "y", "Content-Type", "text/plain")})
	if a.Status != 203 || a.Body != "bye" || len(a.Headers) != 1 || a.Header("Content-Type") != "text/plain" {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerBeyondTheBufferStreamsOn(t *testing.T) {
	text := strings.Repeat("x", 2<<20)
	a := respond(t, `local body, err = res:body()
		assert(body == nil and err == "too large")
		local value, err = res:json()
		assert(value == nil and err == "too large")`, luatest.Answer{Status: 200, Body: text})
	if a.Err != nil || a.Body != text {
		t.Errorf("%v, %d bytes", a.Err, len(a.Body))
	}
}

func TestAnAnswerThatHasStartedCannotBeChanged(t *testing.T) {
	for _, body := range []string{`res:set_body("x")`, `res.status = 201`, `res.headers["X-A"] = "1"`} {
		b := bench(t, "", map[string]string{"filter": filter("on_response", "res", body)})
		x := b.Exchange(luatest.Request{})
		x.Turn, x.Response.Status, x.Response.Started = 1, 200, true
		err := b.Pipeline.Stages(x.Route)[0].Response(x)
		var fault *core.Error
		if !errors.As(err, &fault) || fault.Status != 500 {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestWrongAnswersRaise(t *testing.T) {
	for _, body := range []string{`res.status = 99`, `res.status = 200.5`, `res.status = "200"`, `res.status = 101`, `res.status = 204; res:set_body("x")`,
		`res.source = "x"`, `res.nope = 1`, `gw.respond(200)`, `ctx.upstream = "main"`, `res.req.headers["X-A"] = "1"`, `res.req.method = "PUT"`, `res.req.query.a = "1"`,
		`res.headers["Content-Length"] = "1"`, `res.headers["Connection"] = "x"`, `return 1`, `return res`} {
		if a := respond(t, body, luatest.Answer{Status: 200}); a.Status != 500 {
			t.Errorf("%s: status %d", body, a.Status)
		}
	}
}

func TestTheRequestIsReadWhereTheAnswerIs(t *testing.T) {
	a := respond(t, `
		assert(res.req.headers.Origin == "https://a.example" and res.req.path == "/" and res.req == res.req)
		res.headers["Access-Control-Allow-Origin"] = res.req.headers["origin"]
	`, luatest.Answer{Status: 200})
	if a.Err != nil || a.Header("Access-Control-Allow-Origin") != "https://a.example" {
		t.Errorf("%+v", a)
	}
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.String()
}

func TestJSONIsReadThroughItsCompression(t *testing.T) {
	gz := compressed(t, `{"a":1}`)
	a := respond(t, `
		assert(res:json().a == 1 and res:json_get("a") == 1 and #res:body() > 20)
		res:set_body("plain")
	`, luatest.Answer{Status: 200, Body: gz, Headers: lines("Content-Encoding", "gzip")})
	if a.Err != nil || a.Body != "plain" || a.Header("Content-Encoding") != "" {
		t.Errorf("%+v", a)
	}
	holds(t, `assert(req:json().a == 1 and req:json_get("a") == 1)`, luatest.Request{Body: gz, Headers: lines("Content-Encoding", "GZIP")})
	for coding, want := range map[string]string{"br": "encoded as br", "deflate": "not deflate, though it says so"} {
		holds(t, `local v, err = req:json(); assert(v == nil and err:find("`+want+`"), err)`,
			luatest.Request{Body: gz, Headers: lines("Content-Encoding", coding)})
	}
	bomb := compressed(t, strings.Repeat(" ", 8<<20)+"1")
	holds(t, `local v, err = req:json(); assert(v == nil and err == "too large", err)`, luatest.Request{Body: bomb, Headers: lines("Content-Encoding", "gzip")})
}
