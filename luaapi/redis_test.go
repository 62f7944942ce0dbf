package luaapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/redis/redistest"
	"github.com/moongate/moongate/luaapi/luatest"
)

// asking builds a bench with a filter that asks the Redis of an address, called main.
func asking(t *testing.T, address, timeout, body string) *luatest.Bench {
	t.Helper()
	b := bench(t, "[redis.main]\naddress = \""+address+"\"\ntimeout = \""+timeout+"\"\n[scripts]\nbudget = \"10s\"\n", onRequest(body))
	t.Cleanup(b.Redis.Close)
	return b
}

// holdsAt runs Lua that asserts for itself with a Redis.
func holdsAt(t *testing.T, address, timeout, body string) {
	t.Helper()
	if a := asking(t, address, timeout, body).Do(luatest.Request{}); a.Err != nil {
		t.Errorf("%v\n%s", a.Err, body)
	}
}

// answersOf is how a fake answers GET of each key.
var redisReplies = map[string]string{
	"text": "$5\r\nhello\r\n", "empty": "$0\r\n\r\n", "none": "$-1\r\n", "nulls": "_\r\n", "status": "+OK\r\n", "int": ":42\r\n", "big": ":9007199254740993\r\n",
	"double": ",2.5\r\n", "true": "#t\r\n", "list": "*3\r\n:1\r\n$-1\r\n*1\r\n+x\r\n", "nothing": "*0\r\n", "hash": "%2\r\n+a\r\n:1\r\n+b\r\n_\r\n",
	"wrong": "-WRONGTYPE no\r\n", "mixed": "*2\r\n-ERR half\r\n:1\r\n",
}

func TestAnswersOfRedisAreWhatScriptsExpect(t *testing.T) {
	f := redistest.NewFake(t)
	f.Answer(func(args []string) string { return redisReplies[args[len(args)-1]] })
	holdsAt(t, f.Address, "30s", `
		local function get(key) return gw.redis.call("main", "GET", key) end
		local function both(key) local v, err = get(key) return tostring(v) .. "," .. tostring(err) end
		assert(get("text") == "hello" and get("empty") == "" and get("status") == "OK" and get("int") == 42)
		assert(get("double") == 2.5 and get("true") == true)
		assert(both("none") == "nil,nil" and both("nulls") == "nil,nil", both("none"))
		assert(tostring(get("big")) == "9007199254740993")
		assert(gw.json.encode(get("list")) == '[1,null,["x"]]' and gw.json.encode(get("nothing")) == "[]")
		local hash = get("hash") -- whose members come in any order
		assert(hash.a == 1 and hash.b == gw.json.null and gw.json.encode(hash):len() == 16, gw.json.encode(hash))
		assert(both("wrong") == "nil,WRONGTYPE no", both("wrong"))
		assert(gw.json.encode(get("mixed")) == '[{"err":"half"},1]', gw.json.encode(get("mixed")))

		local answers, err = gw.redis.pipeline("main", { { "GET", "int" }, { "GET", "none" }, { "GET", "wrong" }, { "get", "text" } })
		assert(gw.json.encode(answers) == '[42,null,null,"hello"]' and err == "command 3: WRONGTYPE no", err)
		assert(#gw.redis.pipeline("main", {}) == 0)
	`)
}

func TestACommandIsSentAsItIsWritten(t *testing.T) {
	f := redistest.NewFake(t)
	f.Answer(func(args []string) string {
		if args[0] == "EVALSHA" {
			return "-NOSCRIPT No matching script\r\n"
		}
		return redistest.Bulk(strings.Join(args, "|"))
	})
	holdsAt(t, f.Address, "30s", `
		assert(gw.redis.call("main", "SET", "k", 1e15, "PX", 1500, "\0\r\n") == "SET|k|1000000000000000|PX|1500|\0\r\n")
		assert(gw.redis.eval("main", "return 1", { "k1", "k2" }, { "a", 2 }) == "EVAL|return 1|2|k1|k2|a|2")
		assert(gw.redis.eval("main", "return 1") == "EVAL|return 1|0")
	`)
}

func TestMisuseOfRedisRaises(t *testing.T) {
	f := redistest.NewFake(t)
	for call, want := range map[string]string{
		`gw.redis.call("other", "GET", "k")`:            "there is no [redis.other]: there are main",
		`gw.redis.call({}, "GET", "k")`:                 "there is no [redis.]: there are main",
		`gw.redis.call({ "main", wait = 1 }, "GET")`:    `there is no "wait": write { "NAME", timeout = "50ms" }`,
		`gw.redis.call({ "main", timeout = 0 }, "GET")`: "a timeout in seconds above 0",
		`gw.redis.eval({ "main", timeout = "5" }, "x")`: "a timeout in seconds above 0",
		`gw.redis.call("main")`:                         "strings and numbers expected, got nil",
		`gw.redis.call("main", "")`:                     "a command has a name",
		`gw.redis.call("main", "GET", {})`:              "strings and numbers expected, got table",
		`gw.redis.call("main", "GET", true)`:            "strings and numbers expected, got boolean",
		`gw.redis.call("main", "blpop", "k", 0)`:        "BLPOP cannot be sent over a connection that others share: use LPOP",
		`gw.redis.call("main", "SUBSCRIBE", "c")`:       "SUBSCRIBE cannot be sent",
		`gw.redis.call("main", "FlushAll")`:             "FLUSHALL is not for scripts",
		`gw.redis.call("main", "KEYS", "*")`:            "KEYS is not for scripts: use SCAN",
		`gw.redis.pipeline("main", { { "MULTI" } })`:    "MULTI cannot be sent",
		`gw.redis.pipeline("main", { { "CONFIG" } })`:   "CONFIG is not for scripts",
		`gw.redis.pipeline("main", { {} })`:             "command 1 is empty",
		`gw.redis.pipeline("main", { "GET" })`:          "a list of strings and numbers expected, got string",
		`gw.redis.pipeline("main", "GET")`:              "table expected",
		`gw.redis.eval("main", "return 1", "k")`:        "a list of strings and numbers expected, got string",
		`gw.redis.eval("main", "return 1", {}, { {} })`: "strings and numbers expected, got table",
	} {
		a := asking(t, f.Address, "30s", call).Do(luatest.Request{})
		if a.Err == nil || !strings.Contains(a.Err.Error(), want) || !strings.Contains(a.Err.Error(), "filter.lua:3") {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
	if f.Seen() != 0 {
		t.Errorf("%d commands were sent", f.Seen())
	}
}

// A Redis that fails, however it does, costs the time limit and gives nil, err.
func TestARedisThatFailsIsAnErrorAndNoMore(t *testing.T) {
	for name, fail := range map[string]func(f *redistest.Fake){
		"refused":      (*redistest.Fake).Down,
		"black-holed":  func(f *redistest.Fake) { f.Silence(true) },
		"slow":         func(f *redistest.Fake) { f.Slow("k", time.Minute) },
		"half a reply": func(f *redistest.Fake) { f.Answer(func([]string) string { return "$10\r\nhalf" }) },
		"nonsense":     func(f *redistest.Fake) { f.Answer(func([]string) string { return "HTTP/1.1 200 OK\r\n\r\n" }) },
	} {
		t.Run(name, func(t *testing.T) {
			f := redistest.NewFake(t)
			fail(f)
			holdsAt(t, f.Address, "50ms", `
				local v, err = gw.redis.call("main", "GET", "k")
				assert(v == nil and err:find("^redis is unavailable: "), tostring(v) .. tostring(err))
				local all, err = gw.redis.pipeline("main", { { "GET", "k" }, { "GET", "k" } })
				assert(all == nil and err:find("^redis is unavailable: "), tostring(err))
				local v, err = gw.redis.eval("main", "return 1", { "k" })
				assert(v == nil and err:find("^redis is unavailable: "), tostring(err))`)
		})
	}
}

// TestAScriptMayHaveLessTimeThanRedis: that it did not wait is nothing against Redis, which is asked on.
func TestAScriptMayHaveLessTimeThanRedis(t *testing.T) {
	f := redistest.NewFake(t)
	f.Slow("k", time.Minute)
	f.Slow("x", time.Minute)
	holdsAt(t, f.Address, "50s", `
		local main = { "main", timeout = "20ms" }
		local function late(v, err) assert(v == nil and err == "redis is unavailable: timed out after 20ms", tostring(v) .. tostring(err)) end
		for _ = 1, 5 do
			late(gw.redis.call(main, "GET", "k"))
			late(gw.redis.pipeline(main, { { "GET", "k" } }))
			late(gw.redis.eval({ "main", timeout = 0.02 }, "x", { "k" }))
		end`)
	holdsAt(t, f.Address, "20ms", `
		local v, err = gw.redis.call({ "main", timeout = 20 }, "GET", "k")
		assert(v == nil and err == "redis is unavailable: no answer within the time limit", err)`)
}

func TestALateReplyReachesNobody(t *testing.T) {
	f := redistest.NewFake(t)
	f.Slow("late", 500*time.Millisecond)
	b := asking(t, f.Address, "200ms", `
		local v, err = gw.redis.call("main", "GET", req.path)
		assert(v == "value of " .. req.path or v == nil and err ~= nil, v)
		return gw.respond(200, v or "none")`)
	for _, path := range []string{"/a", "late", "/b", "/c", "late", "/d"} {
		if a := b.Do(luatest.Request{Target: path}); a.Err != nil || path != "late" && a.Body != "value of "+path && a.Body != "none" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}
