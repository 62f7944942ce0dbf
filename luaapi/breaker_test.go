package luaapi_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/moongate/moongate/luaapi/luatest"
)

func TestAFilterThatOnlyFailsRestsAndIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench(t, "", onRequest(`if req.path == "/bad" then error("broken") end`))
		status := func(path string) int { return b.Do(luatest.Request{Target: path}).Status }
		for range 100 {
			if got := status("/bad"); got != 500 {
				t.Fatalf("within a second: status %d, want 500", got)
			}
		}
		time.Sleep(time.Second)
		if got := status("/bad"); got != 500 {
			t.Fatalf("the failure that trips it: status %d, want 500", got)
		}
		if got := status("/good"); got != 503 {
			t.Errorf("tripped: status %d, want 503", got)
		}
		time.Sleep(5 * time.Second)
		if got := status("/good"); got != 200 {
			t.Errorf("after its rest: status %d, want 200", got)
		}
		if got := status("/bad"); got != 500 {
			t.Errorf("it counts anew: status %d, want 500", got)
		}
	})
}

func TestAFilterThatServesSomebodyNeverRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench(t, "", onRequest(`if req.path == "/bad" then error("broken") end`))
		for range 100 {
			b.Do(luatest.Request{Target: "/good"})
			for range 30 {
				if a := b.Do(luatest.Request{Target: "/bad"}); a.Status != 500 {
					t.Fatalf("status %d, want 500", a.Status)
				}
			}
			time.Sleep(900 * time.Millisecond)
		}
	})
}

func TestAFilterThatMayFailIsPassedByWhileItRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench(t, "[filter.filter]\non_error = \"continue\"\n", onRequest(`error("broken")`))
		for range 30 {
			if a := b.Do(luatest.Request{}); a.Status != 200 {
				t.Fatalf("status %d, want 200", a.Status)
			}
			time.Sleep(time.Second)
		}
	})
}
