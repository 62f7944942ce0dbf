package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

// mirrored is a stage that wishes for a copy of every request.
func mirrored(to string) *stage {
	return &stage{name: "mirror", request: func(x *core.Exchange) (*core.Reply, error) {
		m := core.Mirror{Upstream: to}
		m.Header.Add("X-Shadow", "1")
		x.Mirrors = append(x.Mirrors, m)
		x.Request.Header.Set("X-Added", "yes")
		return nil, nil
	}}
}

// shadow is an upstream that tells what it got.
func shadow(t *testing.T) (string, chan string) {
	got := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got <- fmt.Sprintf("%s %s %s %s %s %q %v %v", r.Method, r.RequestURI, r.Header.Get("X-Shadow"), r.Header.Get("X-Added"), r.Header.Get("X-Forwarded-For"), body, r.TransferEncoding, err)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func awaited(t *testing.T, got chan string) string {
	t.Helper()
	select {
	case text := <-got:
		return text
	case <-time.After(patience):
		t.Fatal("no copy came")
	}
	return ""
}

func TestACopyIsTheRequestAsItGoes(t *testing.T) {
	url, got := shadow(t)
	main, bodies := sink(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"shadow\"\nendpoints = [%q]\n", url)+route(main), through(mirrored("shadow")))
	for request, want := range map[string]string{
		"GET /a%2Fb?c=%zz HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n":                                                      `GET /a%2Fb?c=%zz 1 yes 127.0.0.1 "" [] <nil>`,
		"POST /p HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello":                                     `POST /p 1 yes 127.0.0.1 "hello" [] <nil>`,
		"POST /c HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n": `POST /c 1 yes 127.0.0.1 "abcde" [] <nil>`,
	} {
		if answer, status := h.ask(request); status != 200 {
			t.Fatalf("%s", answer)
		}
		<-bodies
		if copied := awaited(t, got); copied != want {
			t.Errorf("copied as %s\nwant %s", copied, want)
		}
	}
	eventually(t, "they are counted", func() bool {
		return strings.Contains(h.scrape(), `moongate_mirror_requests_total{result="success",upstream="shadow"} 3`)
	})
}

// sink is an upstream that reads bodies whole.
func sink(t *testing.T) (string, chan string) {
	got := make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestABodyThatStreamsIsCopiedWhileItPasses(t *testing.T) {
	url, got := shadow(t)
	main, bodies := sink(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"shadow\"\nendpoints = [%q]\n[scripts.mirror]\nmax_body = \"100KiB\"\n", url)+route(main), through(mirrored("shadow")))
	upload := func(path string, size int) {
		nc, r := h.dial()
		send(t, nc, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", path, size))
		for sent := 0; sent < size; sent += 1 << 10 {
			send(t, nc, strings.Repeat("x", min(1<<10, size-sent)))
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	upload("/fits", 90<<10)
	if body := <-bodies; len(body) != 90<<10 {
		t.Errorf("the upstream got %d bytes", len(body))
	}
	if copied := awaited(t, got); !strings.HasPrefix(copied, "POST /fits ") || strings.Count(copied, "x") != 90<<10 {
		t.Errorf("the copy is %.100s", copied)
	}
	upload("/long", 200<<10)
	if body := <-bodies; len(body) != 200<<10 {
		t.Errorf("the upstream got %d bytes", len(body))
	}
	eventually(t, "the long one is counted", func() bool {
		text := h.scrape()
		return strings.Contains(text, `moongate_mirror_requests_total{result="dropped",upstream="shadow"} 1`) && strings.Contains(text, "moongate_mirror_in_flight_requests 0")
	})
	if len(got) > 0 {
		t.Errorf("a copy too many: %s", <-got)
	}
}

func TestCopiesEndWithTheGateway(t *testing.T) {
	url, heads, left := working(t)
	main, _ := sink(t)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"shadow\"\nendpoints = [%q]\n", strings.TrimSuffix(url, "/"))+route(main), through(mirrored("shadow")))
	if answer, status := h.ask(getClose); status != 200 {
		t.Fatalf("%s", answer)
	}
	<-heads
	h.stop()
	within(t, "the copy is ended", left)
	for err := range h.ended {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestAClientThatLeavesIsNotHeldBack(t *testing.T) {
	log, entries := watching()
	held := make(chan struct{}, 1)
	h := open(t, route("http://127.0.0.1:1"), through(log, &stage{name: "limit", request: func(x *core.Exchange) (*core.Reply, error) {
		services := x.Generation.(core.Services)
		if !services.ReserveDelay() {
			t.Error("no place")
		}
		held <- struct{}{}
		return nil, services.Delay(x, time.Hour)
	}}))
	nc, _ := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\n\r\n")
	<-held
	if text := h.scrape(); !strings.Contains(text, "moongate_delay_waiting_requests 1") {
		t.Error("it is not counted")
	}
	nc.Close()
	if e := next(t, entries); e.status != 499 {
		t.Errorf("%+v", e)
	}
	eventually(t, "its place is free", func() bool { return strings.Contains(h.scrape(), "moongate_delay_waiting_requests 0") })
}

func TestPlacesForDelaysAreBounded(t *testing.T) {
	h := open(t, route("http://127.0.0.1:1")+"[scripts.delay]\nin_flight = 2\n")
	g := h.Generation()
	got := []bool{g.ReserveDelay(), g.ReserveDelay(), g.ReserveDelay()}
	if !slices.Equal(got, []bool{true, true, false}) {
		t.Error("not exactly two places:", got)
	}
	if err := g.Delay(new(core.Exchange), 0); err != nil || !g.ReserveDelay() {
		t.Errorf("a place that was given back is not free: %v", err)
	}
	if text := h.scrape(); !strings.Contains(text, "moongate_delay_refused_total 1") {
		t.Error("the refusal is not counted")
	}
	_ = g.Delay(new(core.Exchange), time.Millisecond)
	_ = g.Delay(new(core.Exchange), 0)
}
