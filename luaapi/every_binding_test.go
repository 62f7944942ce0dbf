package luaapi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/luatest"
	"github.com/moongate/moongate/luaapi/store"
	"github.com/moongate/moongate/luaapi/vm"
)

// callable is how a script names a function of the binding table, and whether it gets a handle first.
func callable(f vm.Func) (expression, self string) {
	owner, method, ok := strings.Cut(f.Name, ":")
	if !ok {
		return f.Name, "nil"
	}
	switch owner {
	case "metric":
		return "made.counter." + method, "made.counter"
	case "set":
		return "made.set." + method, "made.set"
	case "verifier":
		return "made.verifier." + method, "made.verifier"
	case "answer":
		return "made.answer()." + method, "made.answer()"
	case "req":
		return "self and self.body and self." + method, "self"
	}
	return "self and self." + method, "self"
}

// everyBinding is a filter that calls functions of the whole binding table, with arguments that it makes of the bytes of the request's
// body, in every phase; and that afterwards looks whether anything of an earlier request can be seen.
func everyBinding() string {
	var calls strings.Builder
	for _, f := range append(luaapi.Funcs(), luaapi.Methods()...) {
		expression, self := callable(f)
		fmt.Fprintf(&calls, "  { %q, function(self) return %s, %s end },\n", f.Name, expression, self)
	}
	return `
local made = { counter = gw.metric.counter("made", { "a" }), gauge = gw.metric.gauge("level"), set = gw.ip.set({ "10.0.0.0/8" }),
  verifier = gw.auth.network({ networks = { office = "192.0.2.0/24" } }) }
function made.answer() return (gw.http.get("http://answers.example/a")) end
local calls = {
` + calls.String() + `}
local words = { "sha256", "RS256", "HS256", "main", "canary", "partners", "ip", "header:X-A", "GET", "/a/*", "/users/{id}", "user.name", "a.0", "10.0.0.0/8", "::1",
  "http://127.0.0.1:9001/x?y=1#z", "(a+)+$", "(?P<n>x)|y", "$1 ${n} %1", "{\"a\":[1,null]}", "2026-01-01T00:00:00Z", "rfc3339", "X-A", "Set-Cookie", "a=1; Path=/",
  "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----", ("k"):rep(32), ("y"):rep(70000), "\r\n", "\0", "\255", "500ms", "url", "upstream", "path", "method", "query", "headers", "body", "json", "form", "timeout", "fraction", "key" }
local numbers = { 0, 1, -1, 2.5, 1e308, -1e308, 0/0, 1/0, -1/0, 200, 404, 999, 2^31, 2^53, 65536, 0.001, 30 }

local function reader(bytes)
  local at = 0
  local read = {}
  function read.byte()
    at = at + 1
    return bytes:byte(at) or 0
  end
  function read.value(depth, self, ctx, conf)
    local kind, n = read.byte() % 20, read.byte()
    if kind == 0 then return nil
    elseif kind == 1 then return n % 2 == 0
    elseif kind == 2 then return numbers[n % #numbers + 1]
    elseif kind == 3 then return n - 128
    elseif kind <= 6 then return words[n % #words + 1]
    elseif kind == 7 then
      at = at + n
      return bytes:sub(at - n + 1, at)
    elseif kind <= 10 and depth < 4 then
      local t = {}
      for i = 1, n % 5 do
        local key = kind == 8 and i or words[read.byte() % #words + 1]
        t[key] = read.value(depth + 1, self, ctx, conf)
      end
      return t
    elseif kind == 11 then return function() return read.value(4, self, ctx, conf) end
    elseif kind == 12 then return error
    elseif kind == 13 then return self
    elseif kind == 14 then return n % 2 == 0 and ctx or conf
    elseif kind == 15 then return n % 2 == 0 and gw or gw.json.null
    elseif kind == 16 then return coroutine.create(function() coroutine.yield(self) end)
    elseif kind == 17 then return ({ made.counter, made.gauge, made.set, self and self.headers })[n % 4 + 1]
    elseif kind == 18 then return gw.json.decode("123456789012345678901")
    elseif kind == 19 and n % 2 == 0 then -- what gw.http and gw.mirror understand, but for one member
      local t = n % 4 == 0 and { fraction = numbers[n % #numbers + 1], headers = { ["X-A"] = "b" } } or { url = "http://answers.example/a", timeout = n % 8, json = { n } }
      if read.byte() % 2 == 0 then t[words[read.byte() % #words + 1]] = read.value(depth + 1, self, ctx, conf) end
      return t
    end
    return { secret = ("k"):rep(32), algorithm = words[n % 3 + 1], issuer = n }
  end
  return read
end

local function play(bytes, self, ctx, conf)
  local read = reader(bytes)
  for _ = 1, 8 do
    local call = calls[(read.byte() * 256 + read.byte()) % #calls + 1]
    local found, f, owner = pcall(call[2], self)
    if found and f then
      local args, n = {}, read.byte() % 6
      for i = 1, n do args[i] = read.value(0, self, ctx, conf) end
      if owner ~= nil and read.byte() % 8 > 0 then
        pcall(f, owner, unpack(args, 1, n))
      else
        pcall(f, unpack(args, 1, n))
      end
    end
  end
end

-- What a request may see of those before it: nothing.
local function fingerprint()
  local names = {}
  local function walk(path, t)
    for k, v in pairs(t) do
      names[#names + 1] = path .. tostring(k) .. "=" .. tostring(v)
      if type(v) == "table" and v ~= t and #path < 20 then walk(path .. tostring(k) .. ".", v) end
    end
  end
  walk("gw.", gw)
  for _, lib in ipairs({ "string", "table", "math", "os", "coroutine" }) do walk(lib .. ".", _G[lib]) end
  table.sort(names)
  return gw.crypto.hex_encode(gw.crypto.sha256(table.concat(names, "\n")))
end
local at_load = fingerprint()

-- Timers get their bytes from the request before them; "check" lets them look.
gw.time.every(1, function()
  local bytes = gw.shared.get("bytes of timers", "bytes") or ""
  if bytes == "check" then
    assert(fingerprint() == at_load, "a library has changed")
    gw.shared.set("bytes of timers", "checked", true)
    return
  end
  play(bytes, nil, nil, nil)
end)

local M = { stage = "transform", config = { list = { "list", default = { 1 } }, bytes = { "string", default = "" } } }
function M.init(conf)
  play(gw.crypto.hex_decode(conf.bytes), nil, nil, conf)
end
function M.on_request(req, ctx, conf)
  local bytes = req.headers["X-Bytes"] and gw.crypto.hex_decode(req.headers["X-Bytes"]) or ""
  gw.shared.set("bytes of timers", "bytes", req.headers["X-Check"] and "check" or bytes)
  if req.headers["X-Check"] then
    assert(fingerprint() == at_load, "a library has changed")
    assert(next(conf.list) == 1 and #conf.list == 1 and conf.state == nil)
    for k in pairs(ctx) do error("ctx has " .. k) end
    assert(ctx.user == nil and req:body() == "" and ctx.upstream == "main" and leaked == nil and rawget(_G, "leaked") == nil)
    assert(("a"):upper() == "A" and getmetatable("") == "string" or getmetatable("") == false)
    return
  end
  play(bytes, req, ctx, conf)
end
function M.on_response(res, ctx, conf)
  if not res.req.headers["X-Check"] then play(gw.crypto.hex_decode(res.req.headers["X-Bytes"] or "") or "", res, ctx, conf) end
end
function M.on_log(entry, ctx, conf)
  if not entry.req.headers["X-Check"] then play(gw.crypto.hex_decode(entry.req.headers["X-Bytes"] or "") or "", entry, ctx, conf) end
end
return M
`
}

// newEveryBinding runs the filter whose init plays some bytes, in hex, with a budget that no input needs.
func newEveryBinding(t testing.TB, budget, bytes string) *luatest.Bench {
	t.Helper()
	b, err := luatest.New(luatest.Options{Files: map[string]string{"scripts/filter.lua": everyBinding(), "gateway.toml": config +
		"[limiter.partners]\nrate = \"1/s\"\n[scripts]\nvms = 1\nbudget = \"" + budget + "\"\n[filter.filter]\nbytes = \"" + bytes + "\"\n"}})
	if err != nil {
		t.Fatalf("%s: %v", bytes, err)
	}
	b.Calls = func(c luatest.Called) luatest.Answer {
		switch len(c.Path) % 3 {
		case 0:
			return luatest.Answer{Err: errors.New("refused")}
		case 1:
			return luatest.Answer{Status: 500, Body: "no JSON"}
		}
		return luatest.Answer{Status: 200, Headers: lines("X-A", "1"), Body: `{"a":[1,{"b":null}]}`}
	}
	return b
}

// playBytes sends one request whose bytes say what is called, runs the timers with them, and then looks whether requests and timers see anything
// of it.
func playBytes(t testing.TB, b *luatest.Bench, bytes []byte) {
	t.Helper()
	hex := fmt.Sprintf("%x", bytes)
	a := b.Do(luatest.Request{Method: "POST", Target: "/a?x=1&y=%zz", Body: `{"a":1}`, Headers: lines("X-Bytes", hex, "X-A", "1", "Cookie", "a=1; b=2")})
	ticked := b.Pipeline.Tick()
	log := b.Log()
	if text := log + fmt.Sprint(a.Err, ticked); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		t.Fatalf("%s: a Go panic: %v %v %s", hex, a.Err, ticked, log)
	}
	if a := b.Do(luatest.Request{Headers: lines("X-Check", "1")}); a.Err != nil {
		t.Fatalf("%s: the next request sees: %v", hex, a.Err)
	}
	if err := b.Pipeline.Tick(); err != nil {
		t.Fatalf("%s: the next timer sees: %v", hex, err)
	}
	b.Log()
	b.Lines = b.Lines[:0]
}

// bytesFrom are what a seed says, 20 to 220 of them.
func bytesFrom(random *rand.Rand) []byte {
	bytes := make([]byte, 20+random.IntN(200))
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	return bytes
}

// taken are bytes that stand for arguments which a function takes.
var taken = map[string][]byte{
	"gw.mirror":       {2, 4, 4, 19, 52, 1}, // "canary", a table
	"gw.delay":        {1, 2, 15},           // 0.001
	"gw.http.request": {1, 19, 2, 1},        // a table
	"gw.http.get":     {1, 5, 15},           // a URL
	"gw.http.post":    {2, 5, 15, 0},
}

// TestNoCallOfAnyBindingPanicsOrLeaks calls every function first in turn, from requests, answers, logs and timers; what follows it is random.
func TestNoCallOfAnyBindingPanicsOrLeaks(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 0))
	b := newEveryBinding(t, "5s", "")
	for i, f := range append(luaapi.Funcs(), luaapi.Methods()...) {
		rounds := 2
		if strings.HasPrefix(f.Name, "gw.http.") || f.Name == "gw.mirror" || f.Name == "gw.delay" {
			rounds = 10 // few arguments are taken
		}
		for round := range rounds {
			bytes := bytesFrom(random)
			bytes[0], bytes[1] = byte(i>>8), byte(i)
			if round%2 == 0 {
				copy(bytes[2:], taken[f.Name])
			}
			playBytes(t, b, bytes)
		}
		if t.Failed() {
			t.Fatal(f.Name)
		}
	}
	if len(b.Called) == 0 || len(b.Mirrored) == 0 || b.Delayed == 0 {
		t.Errorf("%d calls, %d mirrored, %v delayed: not all of it was reached", len(b.Called), len(b.Mirrored), b.Delayed)
	}
	checked := false
	b.Shared.Each(func(name string, st store.Stats) { checked = checked || name == "bytes of timers" && st.Entries == 2 })
	if !checked {
		t.Error("the timer did not run")
	}
}

// TestNoCallWhileLoadingPanics does the same in init, for what can only be made there: verifiers, sets, metrics, timers.
func TestNoCallWhileLoadingPanics(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 0))
	for i, f := range luaapi.Funcs() {
		if luaapi.MayBeCalledIn(f, "init") && !luaapi.MayBeCalledIn(f, "on_request") {
			bytes := bytesFrom(random)
			bytes[0], bytes[1] = byte(i>>8), byte(i)
			playBytes(t, newEveryBinding(t, "5s", fmt.Sprintf("%x", bytes)), nil)
		}
	}
}

// FuzzEveryBinding has a budget that keeps an input from taking long, so that the fuzzer, which tries an input many times to make it smaller, does not
// stand still.
func FuzzEveryBinding(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x02\x07\x05hello\x08\x03"))
	for i := range append(luaapi.Funcs(), luaapi.Methods()...) {
		f.Add([]byte{byte(i >> 8), byte(i), 3, 19, 5, 0, 30, 3, 10, 19, 4, 1, 13, 0, 9})
	}
	b := newEveryBinding(f, "100ms", "")
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if len(bytes) <= 300 {
			playBytes(t, b, bytes)
		}
	})
}
