package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/redis/redistest"
)

// A client that hangs up while its command of Redis is under way takes nothing from others: each gets the answer to its own question, over
// the one connection there is, and every take is one take.
func TestAClientThatHangsUpInMidCommandHarmsNobody(t *testing.T) {
	f := redistest.NewFake(t)
	var takes atomic.Int64
	f.Answer(func(args []string) string {
		if args[0] != "EVALSHA" || !strings.HasPrefix(args[3], "moongate:{key:") {
			return ""
		}
		// The script of limits: takes that waited together, each about one key and granted, and told how many came before it.
		keys, _ := strconv.Atoi(args[2])
		terms, _ := strconv.Atoi(args[3+keys])
		asked := (len(args) - 3 - keys - 1 - 5*terms - keys) / 5
		out := fmt.Appendf(nil, "*%d\r\n", 4*asked)
		for range asked {
			out = fmt.Appendf(out, ":1\r\n:%d\r\n:0\r\n:0\r\n", takes.Add(1))
		}
		return string(out)
	})
	f.Slow("/late", 100*time.Millisecond) // a command
	f.Slow("moongate:{key:/taken}:shared", 100*time.Millisecond)
	url := serving(t, map[string]string{
		"scripts/ask.lua": `return { stage = "auth", on_request = function(req)
			local value = gw.redis.call("main", "GET", req.path)
			local _, info = gw.limit.take("shared", "key:" .. req.path)
			return gw.respond(200, value or "none", { ["X-Number"] = info.remaining })
		end }`,
		"gateway.toml": `
[redis.main]
address = "` + f.Address + `"
timeout = "60s"
[limiter.shared]
rate = "1000/s"
burst = 1000
redis = "main"
[[route]]
name = "ask"
path = "/**"
upstream = "http://127.0.0.1:1"
`})
	leave := func(path string) {
		nc, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		before, taken := f.Seen(), takes.Load()
		_, _ = io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		redistest.Until(t, "its command is under way", func() bool { return path == "/late" && f.Seen() > before || takes.Load() > taken }, func() string { return "" })
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	var mu sync.Mutex
	numbers := map[string]bool{}
	ask := func(path string) {
		resp, err := client.Get(url + path)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || string(body) != "value of "+path {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
		mu.Lock()
		numbers[resp.Header.Get("X-Number")] = true
		mu.Unlock()
	}
	const rounds, others = 5, 4
	for round := range rounds {
		var group sync.WaitGroup
		for _, path := range []string{"/late", "/taken"} {
			group.Go(func() { leave(path) })
			for i := range others {
				group.Go(func() { ask(fmt.Sprintf("%s-%d-%d", path, round, i)) })
			}
		}
		group.Wait()
	}
	if want := 2 * rounds * others; len(numbers) != want {
		t.Errorf("%d different answers to %d takes: %v", len(numbers), want, numbers)
	}
	if n := f.Conns(); n != 1 {
		t.Errorf("%d connections to Redis, want 1", n)
	}
}
