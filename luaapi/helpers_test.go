package luaapi_test

import (
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

// run sends a request through a filter that is the body of on_request, and gives what the upstream saw.
func run(t *testing.T, body string, r luatest.Request) (luatest.Answer, luatest.Forwarded) {
	t.Helper()
	b := bench(t, "", onRequest(body))
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer {
		seen = f
		return luatest.Answer{Status: 200}
	}
	a := b.Do(r)
	return a, seen
}

// holds runs Lua that asserts for itself.
func holds(t *testing.T, body string, r luatest.Request) {
	t.Helper()
	if a, _ := run(t, body, r); a.Err != nil {
		t.Errorf("%v\n%s", a.Err, body)
	}
}

// respond sends a request whose upstream gives an answer through a filter that is the body of on_response.
func respond(t *testing.T, body string, answer luatest.Answer) luatest.Answer {
	t.Helper()
	b := bench(t, "", map[string]string{"filter": filter("on_response", "res", body)})
	b.Upstream = func(luatest.Forwarded) luatest.Answer { return answer }
	return b.Do(luatest.Request{Headers: [][2]string{{"Origin", "https://a.example"}}})
}

func lines(pairs ...string) (list [][2]string) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, [2]string{pairs[i], pairs[i+1]})
	}
	return list
}
