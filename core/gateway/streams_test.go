package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAFullPoolOfHTTP2Is503(t *testing.T) {
	busy, release := make(chan struct{}, 10), make(chan struct{})
	url := narrowH2C(t, 2, func(_ http.ResponseWriter, r *http.Request) {
		busy <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\n[upstream.pool]\nconnections = 2\nwait = \"100ms\"\n"))
	c := h.client2()
	answers := make(chan int, 10)
	ask := func() {
		resp, err := c.Do(h.request("GET", "/", nil))
		if err != nil {
			t.Error(err)
			answers <- 0
			return
		}
		resp.Body.Close()
		answers <- resp.StatusCode
	}
	for range 4 {
		go ask()
		<-busy
	}
	if ask(); <-answers != 503 {
		t.Error("a fifth request got no 503")
	}
	for series, want := range map[string]int{"size": 2, "busy": 2, "acquires_total": 4, "waits_total": 1, "exhausted_total": 1} {
		if line := fmt.Sprintf("moongate_upstream_pool_%s{upstream=\"u\"} %d\n", series, want); !strings.Contains(h.scrape(), line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	close(release)
	for range 4 {
		if status := <-answers; status != 200 {
			t.Error(status)
		}
	}
	if ask(); <-answers != 200 {
		t.Error("not served when there is room again")
	}
}

// TestAFullPoolIsWaitedForNoLongerThanTheTotal: also where a route's own limit is shorter than the upstream's wait.
func TestAFullPoolIsWaitedForNoLongerThanTheTotal(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		busy, release := make(chan struct{}, 10), make(chan struct{})
		serve := func(_ http.ResponseWriter, r *http.Request) {
			busy <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		url := narrowH2C(t, 1, serve)
		if protocol == "h1" {
			url = upstream(t, serve)
		}
		h := open(t, "[[upstream]]\nname = \"u\"\nprotocol = \""+protocol+"\"\nendpoints = [\""+url+"\"]\ntimeouts = { first_byte = \"5m\", total = \"5m\" }\npool = { connections = 1, wait = \"4m\" }\n"+
			route("u")+"[[route]]\nname = \"hasty\"\npath = \"/hasty\"\nupstream = \"u\"\n[route.timeouts]\ntotal = \"300ms\"\nconnect = \"300ms\"\nfirst_byte = \"300ms\"\n")
		first := make(chan int, 1)
		go func() { first <- status(h, "/") }()
		<-busy
		began := time.Now()
		if got, took := status(h, "/hasty"), time.Since(began); got != 503 || took < 250*time.Millisecond || took > patience/2 {
			t.Errorf("%d after %s", got, took)
		}
		close(release)
		if got := <-first; got != 200 {
			t.Error(got)
		}
	})
}

// status is that of the answer to a GET, 0 for none.
func status(h *house, path string) int {
	resp, err := plainClient(h.t).Get("http://" + h.addr + path)
	if err != nil {
		h.t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestARequestGetsTheStreamThatComesFree(t *testing.T) {
	busy, release := make(chan struct{}, 100), make(chan struct{})
	url := narrowH2C(t, 1, func(_ http.ResponseWriter, r *http.Request) {
		busy <- struct{}{}
		<-release
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\n[upstream.pool]\nconnections = 1\nwait = \"10s\"\n"))
	c := h.client2()
	ended := make(chan int, 20)
	for range 20 {
		go func() {
			resp, err := c.Do(h.request("GET", "/", nil))
			if err != nil {
				t.Error(err)
				ended <- 0
				return
			}
			resp.Body.Close()
			ended <- resp.StatusCode
		}()
	}
	for range 20 {
		<-busy
		release <- struct{}{}
		if status := <-ended; status != 200 {
			t.Fatal(status)
		}
	}
}

// TestAnEndpointThatSaysGoAwayIsConnectedToAnew has streams that go on over the old connection.
func TestAnEndpointThatSaysGoAwayIsConnectedToAnew(t *testing.T) {
	peers, release := make(chan string, 10), make(chan struct{})
	url := upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		peers <- r.RemoteAddr
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/close":
			w.Header().Set("Connection", "close")
		}
	})
	h := open(t, routeTo(url, "protocol = \"h2c\"\n[upstream.pool]\nconnections = 1\n"))
	c := h.client2()
	slow := make(chan int, 1)
	go func() {
		resp, err := c.Do(h.request("GET", "/slow", nil))
		if err != nil {
			t.Error(err)
			slow <- 0
			return
		}
		resp.Body.Close()
		slow <- resp.StatusCode
	}()
	first := <-peers
	h.do(c, h.request("GET", "/close", nil))
	<-peers
	eventually(t, "another connection", func() bool {
		resp, _ := h.do(c, h.request("GET", "/", nil))
		return resp.StatusCode == 200 && <-peers != first
	})
	close(release)
	if status := <-slow; status != 200 {
		t.Error(status)
	}
}
