package gateway_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
)

func load(file string) (*conf.Config, error) { return conf.Load(file, conf.Options{}) }

// options are those of another gateway beside h.
func options(t *testing.T, h *house) gateway.Options {
	t.Helper()
	access, err := gateway.OpenAccessLog("off", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = access.Close() })
	return gateway.Options{Load: func() (*conf.Config, error) { return load(h.file) }, Metrics: h.counts, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Access: access}
}

// free is an address that nobody listens on just now.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func listeners(addresses ...string) string {
	var b strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&b, "[[listener]]\naddress = %q\n", a)
	}
	return b.String()
}

// loading makes the gateway's configuration its file as it is, listeners included.
func loading(file *string) func(*gateway.Options) {
	return func(o *gateway.Options) {
		o.Load = func() (*conf.Config, error) { return load(*file) }
	}
}

func (h *house) body(path string) string {
	h.t.Helper()
	got := h.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		return head
	}
	return body
}

func answers(text string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

func TestAReloadServesTheNewConfiguration(t *testing.T) {
	one, _ := recorder(t, answers("one"))
	two, _ := recorder(t, answers("two"))
	h := open(t, route(one))
	if got := h.body("/"); got != "one" {
		t.Fatalf("got %q", got)
	}
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "one")
	h.write(route(two))
	gen, err := h.Reload()
	if err != nil || gen.Number != 2 || h.Generation() != gen {
		t.Fatalf("%v, generation %d", err, gen.Number)
	}
	if got := h.body("/"); got != "two" {
		t.Errorf("got %q", got)
	}
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") // a connection from before
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "two")
}

func TestABadConfigurationChangesNothing(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, route(url))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var wrong gateway.PipelineBuilder = func(gateway.Parts) (gateway.Built, error) {
		return gateway.Built{}, fmt.Errorf("scripts/a.lua:3: syntax error")
	}
	for name, c := range map[string]struct{ text, want string }{
		"syntax":           {"[[route", ":1"},
		"unknown upstream": {route("nowhere"), "nowhere"},
		"bad endpoint":     {"[[upstream]]\nname = \"u\"\nendpoints = [\"ftp://x\"]\n" + route("u"), "ftp"},
		"equal routes":     {route(url) + strings.Replace(route(url), `"all"`, `"other"`, 1), "other"},
		"empty":            {"", "empty"},
	} {
		h.write(c.text)
		gen := h.Generation()
		if _, err := h.Reload(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want it to name %s", name, err, c.want)
		}
		if h.Generation() != gen || h.body("/") != "ok" {
			t.Errorf("%s: something changed", name)
		}
	}
	if err := os.Remove(h.file); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Reload(); err == nil {
		t.Error("a file that is gone was loaded")
	}
	h.write(route(url))
	if gen, err := h.Reload(); err != nil || gen.Number != 2 {
		t.Errorf("the next good one: %v", err)
	}
	broken := open(t, route(url), func(o *gateway.Options) {
		first := true
		o.Pipeline = func(p gateway.Parts) (gateway.Built, error) {
			if first {
				first = false
				return gateway.Built{Pipeline: pipeline{}}, nil
			}
			return wrong(p)
		}
	})
	if _, err := broken.Reload(); err == nil || !strings.Contains(err.Error(), "a.lua:3") || broken.body("/") != "ok" {
		t.Errorf("a bad script: %v", err)
	}
}

func TestListenersComeAndGo(t *testing.T) {
	url, _ := recorder(t, ok)
	a, b := free(t), free(t)
	var file string
	h := open(t, route(url), loading(&file))
	file = h.file
	reaches := func(addr string) bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			nc.Close()
		}
		return err == nil
	}
	h.write(listeners(a, b) + route(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if !reaches(a) || !reaches(b) || fmt.Sprint(h.Addresses()) != fmt.Sprint([]string{a, b}) {
		t.Errorf("listeners were not added: %v", h.Addresses())
	}
	h.addr = a
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := readHead(r); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "ok")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	h.write(listeners(b, taken.Addr().String()) + route(url))
	if _, err := h.Reload(); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), ":3") {
		t.Errorf("a taken port gave %v", err)
	}
	if !reaches(a) || !reaches(b) {
		t.Error("a reload that failed closed a listener")
	}
	h.write(listeners(b) + route(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the listener that went is closed", func() bool { return !reaches(a) })
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") // its connections end in good order
	if head, err := readHead(r); err != nil || !strings.Contains(head, "\r\nConnection: close\r\n") {
		t.Fatal(head, err)
	}
	expect(t, r, "ok")
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("behind it came %q, %v", rest, err)
	}
	h.write(listeners(a, b) + route(url))
	if _, err := h.Reload(); err != nil || !reaches(a) {
		t.Errorf("it did not come back: %v", err)
	}
}

func TestRequestsEndOnTheGenerationTheyBeganOn(t *testing.T) {
	one, _ := recorder(t, answers("one"))
	two, _ := recorder(t, answers("two"))
	inside, goOn := make(chan struct{}, 10), make(chan struct{})
	hold := &stage{request: func(x *core.Exchange) (*core.Reply, error) {
		if string(x.Request.Path) == "/hold" {
			inside <- struct{}{}
			<-goOn
		}
		return nil, nil
	}}
	h := open(t, route(one), through(hold))
	got := make(chan string, 3)
	for range 3 {
		go func() { got <- h.body("/hold") }()
		<-inside
	}
	h.write(route(two))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for range 3 { // their upstream is gone from the configuration
		if body := <-got; body != "one" {
			t.Errorf("got %q", body)
		}
	}
}

func TestReloadsLoseNoRequest(t *testing.T) {
	url := scripted(t, func(nc net.Conn) { _, _ = io.Copy(answering{nc}, nc) })
	h := open(t, route(url))
	var stop atomic.Bool
	var clients sync.WaitGroup
	var served atomic.Int32
	for range 4 {
		clients.Go(func() {
			nc, r := h.dial()
			for !stop.Load() {
				send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				head, err := readHead(r)
				if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
					t.Errorf("%q %v", head, err)
					return
				}
				_, _ = r.Discard(2)
				served.Add(1)
			}
		})
	}
	for i := range 20 {
		h.write(fmt.Sprintf("[[upstream]]\nname = \"u%d\"\nendpoints = [%q]\n", i%2, url) + route(fmt.Sprintf("u%d", i%2)))
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		before := served.Load()
		eventually(t, "requests are served", func() bool { return served.Load() > before+4 || t.Failed() })
	}
	stop.Store(true)
	clients.Wait()
}

func TestReloadsAtOnceBecomeOneMore(t *testing.T) {
	url, _ := recorder(t, ok)
	loads := make(chan struct{}, 100)
	gate := make(chan struct{})
	var gated atomic.Bool
	h := open(t, route(url), func(o *gateway.Options) {
		inner := o.Load
		o.Load = func() (*conf.Config, error) {
			if gated.Load() {
				loads <- struct{}{}
				<-gate
			}
			return inner()
		}
	})
	gated.Store(true)
	var callers sync.WaitGroup
	numbers := make(chan int, 20)
	reload := func() {
		gen, err := h.Reload()
		if err != nil {
			t.Error(err)
			return
		}
		numbers <- gen.Number
	}
	callers.Go(reload)
	<-loads // the first is reading
	for range 10 {
		callers.Go(reload)
	}
	eventually(t, "they all wait", func() bool { return waiting("(*Gateway).Reload(") == 11 })
	close(gate)
	callers.Wait()
	close(numbers)
	second := 0
	for n := range numbers {
		if n == 3 {
			second++
		}
	}
	if last := h.Generation().Number; last != 3 || second != 10 {
		t.Errorf("eleven reloads made %d generations, %d callers got the last", last-1, second)
	}
}

// waiting is how many goroutines wait in a function, for a channel or a lock.
func waiting(function string) (n int) {
	all := make([]byte, 4<<20)
	for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n") {
		state, calls, _ := strings.Cut(stack, "\n")
		if strings.Contains(calls, function) && (strings.Contains(state, "[chan receive") || strings.Contains(state, "[sync.Mutex.Lock")) {
			n++
		}
	}
	return n
}

func TestAReloadKeepsConnectionsAndHealth(t *testing.T) {
	bad, badHeads := recorder(t, "HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad")
	var accepted atomic.Int32
	good := scripted(t, func(nc net.Conn) {
		accepted.Add(1)
		_, _ = io.Copy(answering{nc}, nc)
	})
	config := func(extra string) string {
		return fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q, %q]\nhealth = { failures = 1, out = \"1m\" }\n", bad, good) + route("up") + extra
	}
	h := open(t, config(""))
	for range 4 {
		h.body("/")
	}
	if len(badHeads) != 1 || accepted.Load() != 1 {
		t.Fatalf("%d requests to the bad one, %d connections to the good one", len(badHeads), accepted.Load())
	}
	for i := range 5 {
		h.write(config(fmt.Sprintf("[[route]]\nname = \"more%d\"\npath = \"/more%d\"\nupstream = \"up\"\n", i, i)))
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		if got := h.body("/"); got != "ok" {
			t.Errorf("got %q", got)
		}
	}
	if len(badHeads) != 1 || accepted.Load() != 1 {
		t.Errorf("after reloads %d requests to the bad one, %d connections to the good one", len(badHeads), accepted.Load())
	}
}

// answering answers whatever is written to it, a head a write.
type answering struct{ net.Conn }

func (a answering) Write(p []byte) (int, error) {
	_, err := io.WriteString(a.Conn, ok)
	return len(p), err
}

func TestPrepareIsPartOfTheReload(t *testing.T) {
	url, _ := recorder(t, ok)
	var fail atomic.Bool
	var commits atomic.Int32
	addr := free(t)
	var file string
	h := open(t, route(url), func(o *gateway.Options) {
		o.Load = func() (*conf.Config, error) { return load(file) }
		o.Prepare = func(*gateway.Generation) (func(), error) {
			if fail.Load() {
				return nil, fmt.Errorf("cannot open the log")
			}
			return func() { commits.Add(1) }, nil
		}
	})
	file = h.file
	fail.Store(true)
	h.write(listeners(addr) + route(url))
	if _, err := h.Reload(); err == nil || commits.Load() != 0 || h.Generation().Number != 1 {
		t.Errorf("%v, %d commits", err, commits.Load())
	}
	if l, err := net.Listen("tcp", addr); err != nil {
		t.Errorf("the listener of the reload that failed is open: %v", err)
	} else {
		l.Close()
	}
	fail.Store(false)
	if _, err := h.Reload(); err != nil || commits.Load() != 1 {
		t.Errorf("%v, %d commits", err, commits.Load())
	}
}

func TestTryingAConfigurationChangesNothing(t *testing.T) {
	url, _ := recorder(t, ok)
	h := open(t, route(url))
	gen := h.Generation()
	h.write(route("http://127.0.0.1:1"))
	c, err := load(h.file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Try(c); err != nil {
		t.Errorf("a good one: %v", err)
	}
	if h.Generation() != gen || h.body("/") != "ok" {
		t.Error("something changed")
	}
	h.write("[[upstream]]\nname = \"u\"\nendpoints = [\"ftp://x\"]\n" + route("u"))
	if c, err = load(h.file); err == nil {
		if _, err = h.Try(c); err == nil {
			t.Error("a bad one passed")
		}
	}
}

func TestEachListenerWhosePortTheSystemChoosesHasItsOwn(t *testing.T) {
	url, _ := recorder(t, ok)
	const two = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\nname = \"second\"\naddress = \"127.0.0.1:0\"\n"
	second := strings.Replace(route(url), "[[route]]", "[[route]]\nlistener = \"second\"", 1)
	h := open(t, two+second)
	for range 2 {
		addrs := h.Addresses()
		if len(addrs) != 2 || addrs[0] == addrs[1] {
			t.Fatalf("listens on %q", addrs)
		}
		for i, want := range []string{"HTTP/1.1 404", "HTTP/1.1 200"} {
			h.addr = addrs[i]
			if got := h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, want) {
				t.Errorf("listener %d says %q, want %s", i, got, want)
			}
		}
		h.write(two + second + "priority = 1\n")
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
		if again := h.Addresses(); again[0] != addrs[0] || again[1] != addrs[1] {
			t.Errorf("after a reload %q, before %q", again, addrs)
		}
	}
}
