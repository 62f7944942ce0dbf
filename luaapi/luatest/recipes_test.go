package luatest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/luatest"
)

// recipe loads one of the cookbook, with what its configuration says beside a route and an upstream main.
func recipe(t *testing.T, name, settings string, clock func() time.Duration) *luatest.Bench {
	t.Helper()
	text, err := os.ReadFile("../../docs/cookbook/" + name + ".lua")
	if err != nil {
		t.Fatal(err)
	}
	const config = "[scripts]\nvms = 8\nwait = \"1m\"\n[[upstream]]\nname = \"main\"\nendpoints = [\"http://127.0.0.1:9001\"]\n[[upstream]]\nname = \"other\"\nendpoints = [\"http://127.0.0.1:9002\"]\n" +
		"[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"main\"\n"
	b, err := luatest.New(luatest.Options{Files: map[string]string{"gateway.toml": config + settings, "scripts/" + name + ".lua": string(text)}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// atOnce runs n exchanges that all wait for one another to begin.
func atOnce(b *luatest.Bench, n int, serve func(i int, x *core.Exchange, stages []core.Stage)) {
	var all, begin sync.WaitGroup
	begin.Add(n)
	for i := range n {
		all.Go(func() {
			x := new(core.Exchange)
			x.Route = b.Route("all")
			begin.Done()
			begin.Wait()
			serve(i, x, b.Pipeline.Stages(x.Route))
		})
	}
	all.Wait()
}

// TestAThousandRequestsRememberTheirOwn: each has its own tenant, and they all wait between their phases until the last has come.
func TestAThousandRequestsRememberTheirOwn(t *testing.T) {
	b := recipe(t, "remember", "", nil)
	const n = 1000
	var between sync.WaitGroup
	between.Add(n)
	kept := make([]*core.Exchange, n)
	atOnce(b, n, func(i int, x *core.Exchange, stages []core.Stage) {
		tenant, client := fmt.Sprint("tenant-", i), fmt.Sprint("version-", i)
		if i%3 > 0 {
			x.Request.Header.Add("X-Tenant", tenant)
		} else {
			tenant = ""
		}
		if i%2 > 0 {
			x.Request.Header.Add("X-Client-Version", client)
		} else {
			client = ""
		}
		for _, s := range stages {
			if _, err := s.Request(x); err != nil {
				t.Error(err)
			}
		}
		between.Done()
		between.Wait()
		x.Response.Status = 200
		for _, s := range stages {
			if err := s.Response(x); err != nil {
				t.Error(err)
			}
		}
		if got, want := string(x.Response.Header.Get("X-Tenant"))+" "+string(x.Response.Header.Get("X-Client-Version")), tenant+" "+client; got != want {
			t.Errorf("request %d got %q, want %q", i, got, want)
		}
		kept[i] = x
	})
	for i, x := range kept {
		for _, s := range b.Pipeline.Stages(x.Route) {
			s.Log(x)
		}
		line := b.Lines[len(b.Lines)-1]
		if strings.Contains(line, fmt.Sprintf(`"tenant":"tenant-%d"`, i)) != (i%3 > 0) || strings.Contains(line, fmt.Sprintf(`"client":"version-%d"`, i)) != (i%2 > 0) {
			t.Errorf("request %d logged %q", i, line)
		}
	}
}

// TestTheSaleCountsExactly: of many requests of one user at once, in all VMs, two pass, two are degraded and all others go to the risk
// upstream; ten seconds later it begins anew.
func TestTheSaleCountsExactly(t *testing.T) {
	var now time.Duration
	b := recipe(t, "flash_sale", "[filter.flash_sale]\nrisk = \"other\"\n", func() time.Duration { return now })
	var mu sync.Mutex
	seen := map[string]int{}
	atOnce(b, 200, func(_ int, x *core.Exchange, stages []core.Stage) {
		x.User = "tom"
		what := ""
		for _, s := range stages {
			reply, err := s.Request(x)
			switch {
			case err != nil:
				t.Error(err)
			case reply != nil:
				what = fmt.Sprint(reply.Status)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		seen[what+x.Upstream+string(x.Request.Header.Get("X-Risk"))]++
	})
	if seen[""] != 2 || seen["200"] != 2 || seen["otherrepeated"] != 196 {
		t.Errorf("200 requests at once: %v", seen)
	}
	ask := func() string {
		var upstream string
		b.Upstream = func(f luatest.Forwarded) luatest.Answer {
			upstream = f.Upstream
			return luatest.Answer{Status: 200}
		}
		b.Do(luatest.Request{ClientIP: "192.0.2.9"})
		return upstream
	}
	var order []string
	for _, now = range []time.Duration{0, time.Second, 9 * time.Second, 9 * time.Second, 9 * time.Second, 11 * time.Second} {
		order = append(order, ask())
	}
	if got := strings.Join(order, ","); got != "main,main,,,other,main" {
		t.Errorf("one user's requests went to %s", got)
	}
}

// TestSeatsAreGivenUpInTime: a server has its seats for the time that one may keep them, and then for others.
func TestSeatsAreGivenUpInTime(t *testing.T) {
	var now time.Duration
	b := recipe(t, "seats", "[filter.seats]\nservers = [\"main\", \"other\"]\nseats = 2\nkeep = \"10m\"\n", func() time.Duration { return now })
	ask := func(client int) string {
		upstream := ""
		b.Upstream = func(f luatest.Forwarded) luatest.Answer {
			upstream = f.Upstream
			return luatest.Answer{Status: 200}
		}
		a := b.Do(luatest.Request{ClientIP: fmt.Sprint("192.0.2.", client)})
		if upstream == "" {
			return fmt.Sprint(a.Status)
		}
		return upstream
	}
	for i, c := range []struct {
		at     time.Duration
		client int
		want   string
	}{
		{0, 1, "main"}, {0, 2, "main"}, {time.Minute, 3, "other"}, {time.Minute, 4, "other"}, {time.Minute, 5, "503"},
		{9 * time.Minute, 1, "main"}, {9 * time.Minute, 5, "503"},
		{10*time.Minute + 2*time.Second, 5, "main"}, {10*time.Minute + 2*time.Second, 1, "main"}, {10*time.Minute + 2*time.Second, 2, "503"},
		{12 * time.Minute, 2, "other"},
	} {
		now = c.at
		if got := ask(c.client); got != c.want {
			t.Errorf("step %d: client %d at %s got %s, want %s", i, c.client, c.at, got, c.want)
		}
	}
}

// TestATokenIsAskedForOnceInItsLife: which the authorisation server says.
func TestATokenIsAskedForOnceInItsLife(t *testing.T) {
	var now time.Duration
	b := recipe(t, "introspection", "[filter.introspection]\nserver = \"other\"\n", func() time.Duration { return now })
	b.Calls = func(luatest.Called) luatest.Answer {
		return luatest.Answer{Status: 200, Body: fmt.Sprintf(`{"active":true,"sub":"tom","exp":%d}`, time.Now().Add(time.Hour).Unix())}
	}
	for _, c := range []struct {
		at    time.Duration
		asked int
	}{{0, 1}, {0, 1}, {30 * time.Minute, 1}, {61 * time.Minute, 2}, {90 * time.Minute, 2}} {
		now = c.at
		if a := b.Do(luatest.Request{Headers: [][2]string{{"Authorization", "Bearer t1"}}}); a.Status != 200 || len(b.Called) != c.asked {
			t.Errorf("at %s: status %d, asked %d times, want %d", c.at, a.Status, len(b.Called), c.asked)
		}
	}
}

// TestAnAuditSignatureIsWhatItSays: an HMAC over id, method, path and the body's digest.
func TestAnAuditSignatureIsWhatItSays(t *testing.T) {
	b := recipe(t, "audit_signature", "[filter.audit_signature]\nkeys = \"other\"\n", nil)
	b.Calls = func(luatest.Called) luatest.Answer { return luatest.Answer{Status: 200, Body: "the audit key"} }
	var seen luatest.Forwarded
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { seen = f; return luatest.Answer{Status: 200} }
	ids := map[string]bool{}
	for _, body := range []string{"", "hello", strings.Repeat("x", 100_000)} {
		b.Do(luatest.Request{Method: "PUT", Target: "/orders/7?x=1", Body: body, Headers: [][2]string{{"X-Audit-Id", "mine"}}})
		digest := sha256.Sum256([]byte(body))
		mac := hmac.New(sha256.New, []byte("the audit key"))
		mac.Write([]byte(strings.Join([]string{seen.Header("X-Audit-Id"), "PUT", "/orders/7", hex.EncodeToString(digest[:])}, "\n")))
		if got := seen.Header("X-Audit-Signature"); got != base64.StdEncoding.EncodeToString(mac.Sum(nil)) || seen.Body != body {
			t.Errorf("%d bytes are signed with %q", len(body), got)
		}
		ids[seen.Header("X-Audit-Id")] = true
	}
	if len(ids) != 3 || ids["mine"] || len(b.Called) != 1 {
		t.Errorf("ids %v, the key was fetched %d times", ids, len(b.Called))
	}
}
