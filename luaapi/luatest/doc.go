// Package luatest runs the tests of scripts: NAME_test.lua beside NAME.lua, through the real pipeline, with an upstream that the test
// speaks for. Nothing goes over the network but what is asked of a [redis.NAME].
//
//	test("lets nobody in without a token", function(t)
//	  t.config { secret = ("x"):rep(32) }
//	  local res = t.request { path = "/api" }
//	  t.equal(res.status, 401)
//	  t.equal(res.forwarded, nil)
//	end)
//
// From Go, [RunFile] runs one file and tells how each test ended; a [Bench] is the pipeline alone, for Go tests of what scripts see.
package luatest
