package luaapi_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

// pieces are chunks of their own, one a read, as a network brings them.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// chunked sends a request and an answer in pieces through filters, and gives the answer and what the upstream saw.
func chunked(t *testing.T, settings string, scripts map[string]string, sent ...string) (luatest.Answer, luatest.Forwarded, *luatest.Bench) {
	t.Helper()
	b := bench(t, settings, scripts)
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200, Body: f.Body} }
	x := b.Exchange(luatest.Request{Method: "POST"})
	p := pieces(sent)
	x.Request.Body.Attach(&p, -1)
	return b.Serve(x), seen, b
}

func TestChunksPassTheFiltersInOrderAndBackInReverse(t *testing.T) {
	mark := func(name, stage, order string) string {
		return `return { stage = "` + stage + `", order = ` + order + `,
			on_request_chunk = function(chunk, ctx, conf, last) return chunk .. "` + name + `" .. (last and "!" or "") end,
			on_response_chunk = function(chunk, ctx, conf, last) return chunk .. "` + strings.ToLower(name) + `" end }`
	}
	a, seen, _ := chunked(t, "", map[string]string{"a": mark("A", "auth", "1"), "b": mark("B", "auth", "2"), "c": mark("C", "transform", "1")}, "1", "2")
	if seen.Body != "1ABC2ABCA!B!C!" {
		t.Errorf("upstream saw %q", seen.Body)
	}
	if want := seen.Body + "cbacba"; a.Body != want || a.Err != nil {
		t.Errorf("the client saw %q, want %q; %v", a.Body, want, a.Err)
	}
}

func TestAChunkIsLeftReplacedOrSwallowed(t *testing.T) {
	for body, want := range map[string]string{
		`return nil`:                            "one two three ",
		`return chunk:upper()`:                  "ONE TWO THREE ",
		`if chunk == "two " then return "" end`: "one three ",
		`return ""`:                             "",
		`ctx.all = (ctx.all or "") .. chunk; return last and ctx.all:reverse() or ""`: " eerht owt eno",
		`return last and "end" or nil`:                                         "one two three end",
		`return (chunk:gsub("o", ""))`:                                         "ne tw three ",
		`ctx.n = (ctx.n or 0) + #chunk; return last and tostring(ctx.n) or ""`: "14",
	} {
		script := "return { stage = \"transform\", on_request_chunk = function(chunk, ctx, conf, last) " + body + " end }"
		a, seen, b := chunked(t, "", map[string]string{"filter": script}, "one ", "two ", "three ")
		if seen.Body != want || a.Status != 200 {
			t.Errorf("%s: upstream saw %q, want %q; %v %s", body, seen.Body, want, a.Err, b.Log())
		}
	}
}

func TestALongBodyComesInChunksOfABoundedSize(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<16)
	script := `return { stage = "transform", on_request_chunk = function(chunk, ctx, conf, last)
		assert(#chunk <= 32768)
		ctx.calls, ctx.last = (ctx.calls or 0) + 1, (ctx.last or 0) + (last and 1 or 0)
		return chunk:lower()
	end, on_log = function(entry, ctx) entry:write { calls = ctx.calls, last = ctx.last } end }`
	for name, read := range map[string]io.Reader{"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text))} {
		b := bench(t, "", map[string]string{"filter": script})
		var seen luatest.Forwarded
		b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
		x := b.Exchange(luatest.Request{Method: "POST"})
		x.Request.Body.Attach(read, int64(len(text)))
		if a := b.Serve(x); a.Err != nil || seen.Body != text {
			t.Errorf("%s: %v, %d of %d bytes", name, a.Err, len(seen.Body), len(text))
		}
		if len(b.Lines) != 1 || !strings.Contains(b.Lines[0], `"last":1`) {
			t.Errorf("%s: %q", name, b.Lines)
		}
	}
}

func TestAFilterAnswersInTheMiddleOfABody(t *testing.T) {
	script := `return { stage = "transform", on_request_chunk = function(chunk, ctx)
		ctx.size = (ctx.size or 0) + #chunk
		if ctx.size > 5 then return gw.respond(413, "upload too large", { ["X-Size"] = ctx.size }) end
	end, on_response = function(res) res.headers["X-Seen"] = res.source end }`
	a, seen, b := chunked(t, "", map[string]string{"filter": script}, "123", "456", "789")
	if a.Status != 413 || a.Source != "filter" || a.Err != nil || a.Header("X-Size") != "6" || a.Header("X-Seen") != "filter" || !strings.Contains(a.Body, "upload too large") {
		t.Errorf("%+v %s", a, b.Log())
	}
	if seen.Method != "" {
		t.Errorf("the upstream saw %+v", seen)
	}
}

func TestAFailureInAChunkIsNeverAnOpenDoor(t *testing.T) {
	for body, want := range map[string]string{
		`error("broken")`:            "filter.lua:1: broken",
		`while true do end`:          "time budget",
		`return 5`:                   "on_request_chunk returned 5: it returns a string",
		`return ctx`:                 "on_request_chunk returned a handle",
		`return false`:               "on_request_chunk returned false",
		`gw.respond(403)`:            "gw.respond was called and its result not returned",
		`gw.respond(403); return ""`: "gw.respond was called and its result not returned",
		`ctx.upstream = "canary"`:    "ctx.upstream can be changed in on_request only",
		`leak = chunk`:               "cannot set global 'leak'",
		`return gw.respond(99)`:      "a status is a whole number",
		`for i = 1, 20 do ctx["k" .. i] = ("x"):rep(100000) .. i end`: "hold more of a body in ctx",
	} {
		script := `return { stage = "transform", on_request_chunk = function(chunk, ctx, conf, last) ` + body + ` end }`
		a, seen, b := chunked(t, short, map[string]string{"filter": script}, "text")
		if a.Status != 500 || seen.Method != "" || a.Err == nil || !strings.Contains(a.Err.Error(), want) || strings.Contains(a.Body, "lua") {
			t.Errorf("%s: status %d, %v, want %s; upstream saw %q, log %s", body, a.Status, a.Err, want, seen.Body, b.Log())
		}
	}
}

func TestAnAnswerWhoseChunkFailsIsCut(t *testing.T) {
	script := `return { stage = "transform", on_response_chunk = function(chunk, ctx, conf, last) error("broken") end }`
	a, _, _ := chunked(t, "", map[string]string{"filter": script}, "text")
	if a.Body != "" || a.Err == nil || !strings.Contains(a.Err.Error(), "filter.lua:1: broken") {
		t.Errorf("%+v", a)
	}
}

func TestAFilterThatMayFailIsPassedByForTheRestOfABody(t *testing.T) {
	script := `return { stage = "transform", on_error = "continue", on_request_chunk = function(chunk, ctx)
		ctx.n = (ctx.n or 0) + 1
		if ctx.n == 2 then error("broken") end
		return "<" .. chunk .. ">"
	end }`
	a, seen, b := chunked(t, "", map[string]string{"filter": script}, "1", "2", "3")
	if a.Err != nil || seen.Body != "<1>23" {
		t.Errorf("upstream saw %q, %v", seen.Body, a.Err)
	}
	if log := b.Log(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "the rest of the body passes it by") || !strings.Contains(log, "filter.lua:3: broken") {
		t.Errorf("log %s", log)
	}
}

func TestABodyThatIsNotThereIsNotCalledFor(t *testing.T) {
	script := `return { stage = "transform", on_request_chunk = function() error("called") end, on_response_chunk = function() error("called") end }`
	b := bench(t, "", map[string]string{"filter": script})
	b.Upstream = func(luatest.Forwarded) luatest.Answer { return luatest.Answer{Status: 204} }
	if a := b.Do(luatest.Request{}); a.Err != nil || a.Status != 204 {
		t.Errorf("%+v", a)
	}
}

func TestAChangedStreamTellsTheTruthAboutItself(t *testing.T) {
	script := `return { stage = "transform", on_request_chunk = function() end, on_response_chunk = function(chunk) return chunk:upper() end }`
	b := bench(t, "", map[string]string{"filter": script})
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer {
		seen = f
		return luatest.Answer{Status: 200, Body: "hello", Headers: lines("ETag", `"1"`, "Last-Modified", "x", "Accept-Ranges", "bytes", "Content-Digest", "y", "Content-Length", "5",
			"Content-Type", "text/plain")}
	}
	r := luatest.Request{Method: "POST", Body: "text", Headers: lines("Range", "bytes=0-1", "If-Range", `"1"`, "Content-MD5", "x", "X-Kept", "1")}
	x := b.Exchange(r)
	a := b.Serve(x)
	if a.Body != "HELLO" || len(a.Headers) != 1 || a.Header("Content-Type") != "text/plain" || x.Response.Body.Length() != 5 {
		t.Errorf("%+v", a)
	}
	if seen.Header("Range") != "" || seen.Header("If-Range") != "" || seen.Header("Content-MD5") != "" || seen.Header("X-Kept") == "" {
		t.Errorf("upstream saw %+v", seen)
	}
}

// looking is a filter that leaves bodies as they are and notes what it sees.
const looking = `return { stage = "transform", leaves_bodies = true,
	on_request_chunk = function(chunk, ctx, conf, last) gw.shared.rpush("seen", "request", chunk .. (last and "!" or "")) end,
	on_response_chunk = function(chunk, ctx, conf, last) gw.shared.rpush("seen", "response", chunk .. (last and "!" or "")) return chunk end }`

// seenBy is what was noted.
func seenBy(t *testing.T, b *luatest.Bench, which string) string {
	t.Helper()
	reader, err := luatest.New(luatest.Options{Before: b, Files: map[string]string{"gateway.toml": config, "scripts/reader.lua": `return { stage = "log", on_request = function()
		local all = ""
		repeat local one = gw.shared.lpop("seen", "` + which + `") all = all .. (one or "") until not one
		return gw.respond(200, all)
	end }`}})
	if err != nil {
		t.Fatal(err)
	}
	return reader.Do(luatest.Request{}).Body
}

func TestABodyThatIsOnlyLookedAtKeepsItsHead(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": looking})
	headers := lines("ETag", `"1"`, "Last-Modified", "x", "Accept-Ranges", "bytes", "Content-Digest", "y", "Content-Length", "5")
	b.Upstream = func(f luatest.Forwarded) luatest.Answer {
		if f.Header("Content-MD5") != "x" || f.Body != "text" || f.Header("Range") != "" {
			t.Errorf("upstream saw %+v", f)
		}
		return luatest.Answer{Status: 200, Body: "hello", Headers: headers}
	}
	x := b.Exchange(luatest.Request{Method: "POST", Body: "text", Headers: lines("Content-MD5", "x", "Range", "bytes=0-1")})
	stage := b.Pipeline.Stages(x.Route)[0].(core.BodyStage)
	if err := stage.StreamRequest(x); err != nil || x.Request.Body.Length() != 4 {
		t.Errorf("the request's length is %d, %v", x.Request.Body.Length(), err)
	}
	x = b.Exchange(luatest.Request{Method: "POST", Body: "text", Headers: lines("Content-MD5", "x", "Range", "bytes=0-1")})
	a := b.Serve(x)
	if a.Body != "hello" || len(a.Headers) != len(headers) || a.Err != nil {
		t.Errorf("%+v", a)
	}
	if got := seenBy(t, b, "request") + " " + seenBy(t, b, "response"); got != "text! hello!" {
		t.Errorf("the functions saw %q", got)
	}
	x = b.Exchange(luatest.Request{})
	x.Response.Status, x.Reached = 200, 1
	x.Response.Body.Attach(strings.NewReader("hello"), 5)
	if err := stage.StreamResponse(x); err != nil {
		t.Fatal(err)
	}
	if length := x.Response.Body.Length(); length != 5 {
		t.Errorf("the answer's length is %d", length)
	}
}

func TestACodedBodyIsDecodedForWhoOnlyLooksToo(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": looking})
	b.Upstream = func(luatest.Forwarded) luatest.Answer {
		return luatest.Answer{Status: 200, Body: coded(t, "gzip", "hello"), Headers: lines("Content-Encoding", "gzip", "ETag", `"1"`)}
	}
	if a := b.Do(luatest.Request{}); a.Body != "hello" || a.Header("ETag") != "" || a.Header("Content-Encoding") != "" || a.Err != nil {
		t.Errorf("%+v", a)
	}
	if got := seenBy(t, b, "response"); got != "hello!" {
		t.Errorf("the function saw %q", got)
	}
}

func TestOneFilterThatChangesBodiesIsEnough(t *testing.T) {
	b := bench(t, "", map[string]string{"filter": looking, "other": `return { stage = "transform", on_response_chunk = function(chunk) return chunk:upper() end }`})
	b.Upstream = func(luatest.Forwarded) luatest.Answer {
		return luatest.Answer{Status: 200, Body: "hello", Headers: lines("ETag", `"1"`)}
	}
	if a := b.Do(luatest.Request{}); a.Body != "HELLO" || a.Header("ETag") != "" {
		t.Errorf("%+v", a)
	}
}

func TestAFilterThatLeavesBodiesCannotChangeThem(t *testing.T) {
	for _, text := range []string{`""`, `"other"`, `chunk .. "x"`} {
		script := `return { stage = "transform", leaves_bodies = true, on_request_chunk = function(chunk) return ` + text + ` end }`
		a, seen, _ := chunked(t, "", map[string]string{"filter": script}, "text")
		if a.Status != 500 || a.Err == nil || !strings.Contains(a.Err.Error(), "filter.lua:1: on_request_chunk returned another text, and the script says leaves_bodies = true") || seen.Body != "" {
			t.Errorf("%s: %+v, upstream saw %q", text, a, seen.Body)
		}
	}
}

// later is a source whose end comes after its bytes, when it is let.
type later struct {
	pieces
	ended bool
}

func (s *later) AtHand() bool { return len(s.pieces) > 0 || s.ended }

// A receiver that counts has a whole body before its end has come: the last bytes wait for the functions' last call.
func TestTheLastCallMayStillRefuseABodyOfKnownLength(t *testing.T) {
	script := `return { stage = "transform", leaves_bodies = true, on_request_chunk = function(chunk, ctx, conf, last)
		if last then return gw.respond(400, "not whole") end
	end }`
	b := bench(t, "", map[string]string{"filter": script})
	x := b.Exchange(luatest.Request{Method: "POST"})
	src := &later{pieces: pieces{strings.Repeat("a", 32<<10), strings.Repeat("b", 32<<10)}}
	x.Request.Body.Attach(src, 64<<10)
	if err := b.Pipeline.Stages(x.Route)[0].(core.BodyStage).StreamRequest(x); err != nil {
		t.Fatal(err)
	}
	body := &x.Request.Body
	got := make([]byte, 64<<10)
	if n, err := io.ReadFull(body, got[:32<<10]); n != 32<<10 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if body.AtHand() {
		t.Error("the last bytes are at hand before the end has come")
	}
	src.ended = true
	if !body.AtHand() {
		t.Error("nothing is at hand after the end has come")
	}
	n, err := body.Read(got)
	if _, answered := errors.AsType[*core.Answered](err); n != 0 || !answered {
		t.Errorf("%d more bytes, %v", n, err)
	}
}

func TestAPartOfAnAnswerIsNotWorkedOn(t *testing.T) {
	script := `return { stage = "transform", on_response_chunk = function(chunk) return chunk:upper() end }`
	b := bench(t, "", map[string]string{"filter": script})
	b.Upstream = func(luatest.Forwarded) luatest.Answer {
		return luatest.Answer{Status: 206, Body: "hello", Headers: lines("Content-Range", "bytes 0-4/10")}
	}
	if a := b.Do(luatest.Request{}); a.Status != 502 || strings.Contains(a.Body, "hello") {
		t.Errorf("%+v", a)
	}
}

func coded(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestACodedBodyIsDecodedForTheFunctions(t *testing.T) {
	script := `return { stage = "transform", on_request_chunk = function(chunk) return chunk:upper() end,
		on_response_chunk = function(chunk) return chunk:lower() end }`
	text := strings.Repeat("Hello, World! ", 10000)
	for _, coding := range []string{"gzip", "br"} {
		b := bench(t, "", map[string]string{"filter": script})
		var seen luatest.Forwarded
		b.Upstream = func(f luatest.Forwarded) luatest.Answer {
			seen = f
			return luatest.Answer{Status: 200, Body: coded(t, coding, text), Headers: lines("Content-Encoding", coding)}
		}
		a := b.Do(luatest.Request{Method: "POST", Body: coded(t, coding, text), Headers: lines("Content-Encoding", coding)})
		if seen.Body != strings.ToUpper(text) || seen.Header("Content-Encoding") != "" {
			t.Errorf("%s: upstream saw %d bytes, %v", coding, len(seen.Body), seen.Headers)
		}
		if a.Err != nil || a.Body != strings.ToLower(text) || a.Header("Content-Encoding") != "" {
			t.Errorf("%s: the client saw %d bytes, %v %v", coding, len(a.Body), a.Headers, a.Err)
		}
	}
}

func TestACodingThatIsNotKnownIsRefused(t *testing.T) {
	request := `return { stage = "transform", on_request_chunk = function(chunk) end }`
	b := bench(t, "", map[string]string{"filter": request})
	asked := false
	b.Upstream = func(luatest.Forwarded) luatest.Answer { asked = true; return luatest.Answer{Status: 200} }
	if a := b.Do(luatest.Request{Method: "POST", Body: "x", Headers: lines("Content-Encoding", "rot13")}); a.Status != 415 || asked {
		t.Errorf("%+v", a)
	}
	if a := b.Do(luatest.Request{Method: "POST", Body: "not gzip", Headers: lines("Content-Encoding", "gzip")}); a.Status != 400 || asked {
		t.Errorf("%+v", a)
	}
	response := `return { stage = "transform", on_response_chunk = function(chunk) end }`
	b = bench(t, "", map[string]string{"filter": response})
	b.Upstream = func(luatest.Forwarded) luatest.Answer {
		return luatest.Answer{Status: 200, Body: "x", Headers: lines("Content-Encoding", "rot13")}
	}
	if a := b.Do(luatest.Request{}); a.Status != 502 || strings.Contains(a.Body, "rot13") {
		t.Errorf("%+v", a)
	}
}

func TestThoseWhoReadTheBodyWholeStillSeeItAfterItHasPassed(t *testing.T) {
	script := `return { stage = "transform", on_request = function(req) req:set_body(req:body() .. "!") end,
		on_request_chunk = function(chunk) return chunk:upper() end,
		on_log = function(entry) entry:write { body = entry.req:body() } end }`
	_, seen, b := chunked(t, "", map[string]string{"filter": script}, "te", "xt")
	if seen.Body != "TEXT!" || len(b.Lines) != 1 || b.Lines[0] != `,"body":"text!"` {
		t.Errorf("upstream saw %q, logged %q, %s", seen.Body, b.Lines, b.Log())
	}
}

func TestGatewayAnswersPassTheChunkFunctionsToo(t *testing.T) {
	script := `return { stage = "transform", on_response_chunk = function(chunk) return (chunk:gsub("no route", "nothing here")) end }`
	b := bench(t, "", map[string]string{"filter": script})
	if a := b.Do(luatest.Request{Route: "-"}); a.Status != 404 || !strings.Contains(a.Body, "nothing here") {
		t.Errorf("%+v", a)
	}
	script = `return { stage = "transform", on_request = function() return gw.respond(200, "secret 1234") end,
		on_response_chunk = function(chunk) return (chunk:gsub("%d", "*")) end }`
	b = bench(t, "", map[string]string{"filter": script})
	if a := b.Do(luatest.Request{}); a.Status != 200 || a.Body != "secret ****" {
		t.Errorf("%+v", a)
	}
}

func TestAVMIsNotHeldWhileAChunkIsWaitedFor(t *testing.T) {
	script := `return { stage = "transform", on_request_chunk = function(chunk) return chunk:upper() end }`
	b := bench(t, oneVM, map[string]string{"filter": script})
	route := b.Route("all")
	stage := b.Pipeline.Stages(route)[0].(core.BodyStage)
	open := func() (*core.Exchange, *io.PipeWriter) {
		x := new(core.Exchange)
		x.Route = route
		r, w := io.Pipe()
		x.Request.Body.Attach(r, -1)
		if err := stage.StreamRequest(x); err != nil {
			t.Fatal(err)
		}
		return x, w
	}
	x, w := open()
	y, v := open()
	for i, text := range []string{"one", "two", "three"} {
		for _, on := range []struct {
			x *core.Exchange
			w *io.PipeWriter
		}{{x, w}, {y, v}} {
			go io.WriteString(on.w, text)
			buf := make([]byte, 100)
			n, err := on.x.Request.Body.Read(buf)
			if err != nil || string(buf[:n]) != strings.ToUpper(text) {
				t.Fatalf("%d: %q %v", i, buf[:n], err)
			}
		}
	}
	w.CloseWithError(errors.New("gone"))
	v.Close()
	if _, err := x.Request.Body.Read(make([]byte, 10)); err == nil || err.Error() != "gone" {
		t.Errorf("%v, want the source's error", err)
	}
	if _, err := y.Request.Body.Read(make([]byte, 10)); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
}
