package luaapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

const oneVM = "[scripts]\nvms = 1\n"

func TestNothingOfOneRequestIsSeenByTheNext(t *testing.T) {
	b := bench(t, oneVM, map[string]string{
		"filter": `
local M = { stage = "transform", config = { list = { "list", default = { 1 } } } }
local kept = {}
local function try(f) return (pcall(f)) end
function M.init(conf) return { table = {} } end
function M.on_request(req, ctx, conf)
  if req.headers["X-First"] then
    kept.req, kept.headers, kept.query, kept.cookies, kept.params, kept.ctx = req, req.headers, req.query, req.cookies, req.params, ctx
    ctx.secret = "s"
    assert(not try(function() leaked = req.headers["X-First"] end))
    assert(not try(function() string.upper = function() return "evil" end end))
    assert(not try(function() rawset(string, "upper", print) end))
    assert(not try(function() table.insert(gw.json, 1) end))
    assert(not try(function() require("util").field = 1 end))
    assert(not try(function() conf.list[2] = "leak" end))
    assert(not try(function() conf.state.table.leak = "leak" end))
    assert(not try(function() getmetatable(req).__index = print end))
    assert(not try(function() setmetatable(ctx, {}) end))
    return gw.respond(200, "first", { ["X-Seen"] = req.headers["X-First"] })
  end
  assert(leaked == nil and string.upper("a") == "A" and require("util").field == nil)
  assert(#conf.list == 1 and conf.state.table.leak == nil and ctx.secret == nil)
  local messages = {}
  for _, use in ipairs {
    function() return kept.req.path end, function() return kept.req.headers end, function() return kept.headers["X-First"] end,
    function() return kept.query.a end, function() return kept.cookies.a end, function() return kept.params.a end,
    function() return kept.ctx.secret end, function() kept.ctx.user = "root" end, function() kept.headers["X-A"] = "1" end,
    function() kept.req.path = "/evil" end, function() return req.body(kept.req) end, function() return pairs(kept.headers) end,
    function() return req.headers.all(kept.headers, "X-First") end,
  } do
    local ok, err = pcall(use)
    assert(not ok and err:find("used after its request", 1, true), err)
  end
  assert(kept.req ~= req)
end
return M`,
		"lib/util": `return { value = 1 }`,
		"other": `return { stage = "transform", order = 60, on_request = function(req)
			assert(leaked == nil and string.upper("a") == "A" and require("util").field == nil)
		end }`,
	})
	if a := b.Do(luatest.Request{Target: "/?a=1", Headers: lines("X-First", "value", "Cookie", "a=1")}); a.Err != nil || a.Header("X-Seen") != "value" {
		t.Fatalf("first: %+v", a)
	}
	for range 2 {
		if a := b.Do(luatest.Request{}); a.Err != nil {
			t.Fatalf("second: %v", a.Err)
		}
	}
}

func TestHandlesOfAnAnswerEndWithIt(t *testing.T) {
	b := bench(t, oneVM, map[string]string{"filter": `
local M = { stage = "transform" }
local kept
function M.on_response(res, ctx)
  if kept then
    for _, use in ipairs { function() return kept.res.status end, function() return kept.req.path end, function() return kept.headers.a end } do
      local ok, err = pcall(use)
      assert(not ok and err:find("used after its request", 1, true), err)
    end
  end
  kept = { res = res, req = res.req, headers = res.req.headers }
end
return M`})
	for range 3 {
		if a := b.Do(luatest.Request{}); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}

func TestContextPassesThroughStagesAndPhases(t *testing.T) {
	b := bench(t, "", map[string]string{
		"first": `return { stage = "log", on_request = function(req, ctx)
			ctx.a, ctx.n, ctx.yes, ctx.list = "text", 1.5, true, { 1, { deep = "x" }, null = gw.json.null }
			ctx.gone = 1
			ctx.gone = nil
		end, on_log = function(entry, ctx)
			entry:write({ a = ctx.a, n = ctx.n, deep = ctx.list[2].deep, answer = ctx.answer })
		end }`,
		"second": `return { stage = "transform", on_request = function(req, ctx)
			assert(ctx.a == "text" and ctx.n == 1.5 and ctx.yes == true and ctx.gone == nil and ctx.list[2].deep == "x")
			local ok, err = pcall(function() ctx.list[2].deep = "y" end)
			assert(not ok and err:find("read-only", 1, true), err)
			local seen = {}
			for k in pairs(ctx) do seen[#seen + 1] = k end
			table.sort(seen)
			assert(table.concat(seen, " ") == "a list n yes")
			local again = ctx.list
			ctx.list = again
			assert(ctx.list == again)
		end, on_response = function(res, ctx)
			ctx.answer = ctx.a .. res.status
		end }`,
	})
	if a := b.Do(luatest.Request{}); a.Err != nil {
		t.Fatal(a.Err)
	}
	if want := `,"a":"text","n":1.5,"deep":"x","answer":"text200"`; len(b.Lines) != 1 || b.Lines[0] != want {
		t.Errorf("logged %q, %s", b.Lines, b.Log())
	}
}

func TestAThousandRequestsAtOnceNeverMix(t *testing.T) {
	b := bench(t, patient+"vms = 8\n", map[string]string{
		"remember": `return { stage = "auth", on_request = function(req, ctx)
			ctx.user, ctx.id, ctx.pair = req.headers["X-Id"], req.headers["X-Id"], { req.headers["X-Id"] }
		end }`,
		"use": `return { stage = "transform", on_response = function(res, ctx)
			res.headers["X-Id"] = ctx.id .. ctx.pair[1] .. ctx.user .. res.req.headers["X-Id"]
		end }`,
	})
	var wait sync.WaitGroup
	for worker := range 10 {
		wait.Go(func() {
			x := new(core.Exchange)
			for i := range 100 {
				id := fmt.Sprint(worker, "-", i, ";")
				x.Reset()
				x.Route = b.Route("all")
				x.Request.Header.Add("X-Id", id)
				for _, s := range b.Pipeline.Stages(x.Route) {
					if _, err := s.Request(x); err != nil {
						t.Error(err)
					}
				}
				x.Response.Status = 200
				stages := b.Pipeline.Stages(x.Route)
				for i := len(stages) - 1; i >= 0; i-- {
					if err := stages[i].Response(x); err != nil {
						t.Error(err)
					}
				}
				if got := string(x.Response.Header.Get("X-Id")); got != strings.Repeat(id, 4) {
					t.Errorf("%s: got %s", id, got)
				}
			}
		})
	}
	wait.Wait()
}
