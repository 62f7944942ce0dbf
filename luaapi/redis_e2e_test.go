//go:build e2e

package luaapi_test

import (
	"testing"

	"github.com/moongate/moongate/core/redis/redistest"
	"github.com/moongate/moongate/luaapi/luatest"
)

// TestARealRedisDoesWhatScriptsAsk asks redis-server itself.
func TestARealRedisDoesWhatScriptsAsk(t *testing.T) {
	s := redistest.Start(t)
	holdsAt(t, s.Address, "30s", `
		local function call(...) return gw.redis.call("main", ...) end
		assert(call("SET", "k", "v", "PX", 60000) == "OK" and call("GET", "k") == "v" and call("GET", "none") == nil)
		assert(call("SET", "k", "w", "NX") == nil)
		assert(call("HSET", "h", "a", 1, "b", "x\0y") == 2)
		local h = call("HGETALL", "h")
		assert(h.a == "1" and h.b == "x\0y")
		assert(gw.json.encode(call("MGET", "k", "none")) == '["v",null]')
		assert(gw.json.encode(call("LRANGE", "none", 0, -1)) == "[]")
		assert(call("INCRBY", "n", "9007199254740992") == 2 ^ 53)
		assert(tostring(call("INCR", "n")) == "9007199254740993")
		local v, err = call("INCR", "k")
		assert(v == nil and err:find("not an integer", 1, true), err)
		for i = 1, 2 do -- with the script, then with its digest
			assert(gw.redis.eval("main", 'return redis.call("INCRBY", KEYS[1], ARGV[1])', { "e" }, { 2 }) == 2 * i)
		end
		local v, err = gw.redis.eval("main", "return nonsense(")
		assert(v == nil and err:find("compiling", 1, true), err)
		assert(gw.json.encode(gw.redis.eval("main", "return { 1, false, 'x', { 2 } }")) == '[1,null,"x",[2]]')
		local all, err = gw.redis.pipeline("main", { { "INCR", "p" }, { "INCR", "k" }, { "EXPIRE", "p", 60 } })
		assert(all[1] == 1 and all[2] == gw.json.null and all[3] == 1 and err:find("^command 2: "), err)`)
}

// TestAFrozenRedisCostsItsTimeLimitAndComesBack stops the server in its tracks.
func TestAFrozenRedisCostsItsTimeLimitAndComesBack(t *testing.T) {
	s := redistest.Start(t)
	b := asking(t, s.Address, "200ms", `
		local v, err = gw.redis.call("main", "INCR", "n")
		return gw.respond(200, v and "counted" or err)`)
	answered := func() bool { return b.Do(luatest.Request{}).Body == "counted" }
	redistest.Until(t, "it counts", answered, b.Log)
	s.Freeze()
	redistest.Until(t, "it says that Redis is away", func() bool { return !answered() }, b.Log)
	s.Thaw()
	redistest.Until(t, "it counts again", answered, b.Log)
}

// TestAClusterAnswersForAllKeys has keys on several servers.
func TestAClusterAnswersForAllKeys(t *testing.T) {
	nodes := redistest.StartCluster(t)
	b := bench(t, "[redis.main]\naddress = \""+nodes[0].Address+"\"\ncluster = true\ntimeout = \"30s\"\n[scripts]\nbudget = \"10s\"\n", onRequest(`
		for i = 1, 50 do assert(gw.redis.call("main", "SET", "key" .. i, i) == "OK") end
		for i = 1, 50 do assert(gw.redis.call("main", "GET", "key" .. i) == tostring(i)) end
		local v, err = gw.redis.call("main", "MGET", "key1", "key2")
		assert(v == nil and err:find("CROSSSLOT", 1, true), tostring(err))
		assert(gw.redis.eval("main", "return redis.call('GET', KEYS[1])", { "key7" }) == "7")`))
	t.Cleanup(b.Redis.Close)
	if a := b.Do(luatest.Request{}); a.Err != nil {
		t.Error(a.Err)
	}
}
