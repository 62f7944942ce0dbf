package luaapi_test

import (
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

// TestHostileScriptsMakeNobodyElseLate lets scripts of one stage do their worst while another stage serves: its requests all come through.
func TestHostileScriptsMakeNobodyElseLate(t *testing.T) {
	b := bench(t, "[scripts]\nvms = 4\nwait = \"10s\"\n[[route]]\nname = \"good\"\npath = \"/good\"\nupstream = \"main\"\n[route.filter.bad]\nenabled = false\n", map[string]string{
		"bad": `local M = { stage = "auth" }
local ways = {
  function() return ("x"):rep(1e10) end,
  function() local s = "x" for i = 1, 40 do s = s .. s end end,
  function() local t = {} t[50000000] = 1 end,
  function() local s = ("x"):rep(100) while true do s = s .. s .. s .. s .. s .. s .. s .. s end end,
  function() local function f() return f() end return f() end,
  function() return (("a"):rep(9e5)):match(".*.*b") end,
  function() while true do coroutine.wrap(function() end)() end end,
  function() local function f() return 1 + f() end return f() end,
}
function M.on_request(req)
  while true do
    for _, way in ipairs(ways) do pcall(way) end
  end
end
return M`,
		"good": `return { stage = "transform", on_request = function(req) req.headers["X-Good"] = req.path:upper() end }`,
	})
	stop := make(chan struct{})
	var bad, good sync.WaitGroup
	request := func(route string, stage int) error {
		x := new(core.Exchange)
		x.Route = b.Route(route)
		x.Request.Path = []byte("/good")
		_, err := b.Pipeline.Stages(x.Route)[stage].Request(x)
		return err
	}
	for range 4 {
		bad.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if request("all", 0) == nil {
					t.Error("a hostile script came to its end")
				}
			}
		})
	}
	var slowest [4]time.Duration
	for worker := range slowest {
		good.Go(func() {
			for range 200 {
				start := time.Now()
				if err := request("good", 0); err != nil {
					t.Error(err)
				}
				slowest[worker] = max(slowest[worker], time.Since(start))
			}
		})
	}
	good.Wait()
	close(stop)
	bad.Wait()
	for _, d := range slowest {
		if d > 10*time.Second {
			t.Errorf("a request took %v", d)
		}
	}
}

func TestAContextKeptFromAChunkRaises(t *testing.T) {
	b := bench(t, oneVM, map[string]string{"filter": `local M = { stage = "transform" }
local kept
function M.on_request_chunk(chunk, ctx)
  if kept then
    local ok, err = pcall(function() return kept.user end)
    assert(not ok and err:find("used after its request", 1, true), err)
    return "raised"
  end
  kept = ctx
end
return M`})
	if a := b.Do(luatest.Request{Method: "POST", Body: "one"}); a.Err != nil {
		t.Fatal(a.Err)
	}
	body := ""
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { body = f.Body; return luatest.Answer{Status: 200} }
	if a := b.Do(luatest.Request{Method: "POST", Body: "two"}); a.Err != nil || body != "raisedraised" {
		t.Errorf("%v, upstream saw %q", a.Err, body)
	}
}
