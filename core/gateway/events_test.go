package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// ticker is an upstream that sends an event for each tick, until its client leaves.
func ticker(t *testing.T, tick chan string) (http.HandlerFunc, chan struct{}) {
	t.Helper()
	left := make(chan struct{}, 10)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for {
			w.(http.Flusher).Flush()
			select {
			case text := <-tick:
				fmt.Fprint(w, text)
			case <-r.Context().Done():
				left <- struct{}{}
				return
			}
		}
	}, left
}

func TestEventsLiveOnOverReloadsThatLeaveTheirRouteAlone(t *testing.T) {
	for name, start := range map[string]func(*testing.T, http.HandlerFunc) string{"HTTP/1.1": upstream, "HTTP/2": upstreamH2C} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tick := make(chan string)
			handler, left := ticker(t, tick)
			url := start(t, handler)
			text := "[http]\ndrain = \"2s\"\n[[upstream]]\nname = \"u\"\nprotocol = \"" + map[string]string{"HTTP/1.1": "h1", "HTTP/2": "h2c"}[name] + "\"\nendpoints = [\"" + url + "\"]\n"
			other := "[[route]]\nname = \"other\"\npath = \"/other\"\nupstream = \"u\"\n"
			h := open(t, text+route("u"))
			resp, err := http.DefaultTransport.RoundTrip(h.request("GET", "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			r := bufio.NewReader(resp.Body)
			event := func(n string) {
				t.Helper()
				tick <- "data: " + n + "\r\n\r\n"
				if line, err := r.ReadString('\n'); err != nil || line != "data: "+n+"\r\n" {
					t.Fatalf("got %q, %v", line, err)
				}
				_, _ = r.ReadString('\n')
			}
			event("1")
			h.write(text + route("u") + other)
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
			<-time.After(2200 * time.Millisecond) // longer than the drain
			event("2")
			began := time.Now()
			h.write(text + other)
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
			event("3")
			if b, err := r.ReadByte(); err != io.EOF {
				t.Errorf("got %q, %v instead of a clean end", b, err)
			}
			if took := time.Since(began); took < 1900*time.Millisecond || took > patience/2 {
				t.Errorf("ended after %s", took)
			}
			<-left
		})
	}
}

func TestAnEventIsNotCutInHalf(t *testing.T) {
	tick := make(chan string)
	handler, left := ticker(t, tick)
	url := upstream(t, handler)
	h := open(t, "[http]\ndrain = \"1ms\"\n"+route(url))
	resp, err := http.DefaultTransport.RoundTrip(h.request("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	tick <- "event: x\n"
	if line, err := r.ReadString('\n'); line != "event: x\n" {
		t.Fatal(line, err)
	}
	h.write("[http]\ndrain = \"1ms\"\n[[route]]\nname = \"other\"\npath = \"/other\"\nupstream = \"" + url + "\"\n")
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	<-time.After(100 * time.Millisecond)
	tick <- "data: rest\n\n"
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "data: rest\n\n" {
		t.Errorf("got %q, %v", rest, err)
	}
	<-left
}

func TestShutdownEndsEventsInGoodOrder(t *testing.T) {
	tick := make(chan string)
	handler, left := ticker(t, tick)
	h := open(t, "[http]\ndrain = \"4s\"\n"+route(upstream(t, handler)))
	resp, err := http.DefaultTransport.RoundTrip(h.request("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tick <- "data: 1\n\n"
	h.stop()
	if all, err := io.ReadAll(resp.Body); err != nil || string(all) != "data: 1\n\n" {
		t.Errorf("got %q, %v", all, err)
	}
	if err := <-h.ended; err != nil {
		t.Errorf("Run says %v", err)
	}
	<-left
}
