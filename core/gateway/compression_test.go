package gateway_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func compressed(upstream, settings string) string {
	return route(upstream) + "[route.compression]\n" + settings
}

// get asks through the gateway and leaves the answer's encoding as it came.
func (h *house) get(method, accept string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequest(method, "http://"+h.addr+"/", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", accept)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestAnswersAreCompressedForClientsThatSaySo(t *testing.T) {
	page := strings.Repeat("<p>moongate</p>", 10_000)
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(page)))
		_, _ = io.WriteString(w, page)
	})
	h := open(t, compressed(url, ""))
	resp := h.get("GET", "gzip")
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != page {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for name, want := range map[string]string{"Content-Encoding": "gzip", "Vary": "Accept-Encoding", "Etag": `W/"v1"`, "Content-Length": ""} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct{ method, accept, vary string }{{"GET", "identity", "Accept-Encoding"}, {"HEAD", "identity", "Accept-Encoding"}} {
		resp := h.get(c.method, c.accept)
		if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Vary") != c.vary || resp.Header.Get("ETag") != `"v1"` || resp.ContentLength != int64(len(page)) {
			t.Errorf("%s for %s: %v", c.method, c.accept, resp.Header)
		}
	}
}

// TestHEADIsToldWhatGETWouldBe: RFC 9110 sections 8.6 and 9.3.2 allow no length of other bytes, and no validator of them.
func TestHEADIsToldWhatGETWouldBe(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("ETag", `"v1"`)
		page := strings.Repeat("x", map[string]int{"/long": 10_000, "/short": 10}[r.URL.Path])
		if r.URL.Path == "/unknown" {
			page = strings.Repeat("x", 10_000)
			w.(http.Flusher).Flush()
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(page)))
		}
		_, _ = io.WriteString(w, page)
	})
	h := open(t, twoDoors+compressed(url, ""))
	for _, l := range h.legs() {
		for _, target := range []string{"/long", "/short", "/unknown"} {
			for _, accept := range []string{"gzip", "identity"} {
				full, _ := l.ask(t, "GET", target, nil, "Accept-Encoding", accept)
				head, _ := l.ask(t, "HEAD", target, nil, "Accept-Encoding", accept)
				for _, name := range []string{"Content-Encoding", "Content-Length", "Etag", "Vary", "Content-Type"} {
					if got, want := head.Header.Get(name), full.Header.Get(name); got != want {
						t.Errorf("%s: HEAD of %s for %s says %s: %q, GET %q", l.name, target, accept, name, got, want)
					}
				}
			}
		}
	}
}

// TestWhatIsStillValidIsSaidByTheClientsOwnValidator: what it holds is the weak one of an encoded answer, and no 304 with the strong one is about that (RFC 9111
// section 4.3.4).
func TestWhatIsStillValidIsSaidByTheClientsOwnValidator(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(304)
	})
	h := open(t, twoDoors+compressed(url, ""))
	plain := open(t, twoDoors+route(url))
	for held, want := range map[string]string{`W/"v1"`: `W/"v1"`, `"v0", W/"v1"`: `W/"v1"`, `"v1"`: `"v1"`, `W/"v11"`: `"v1"`, `*`: `"v1"`} {
		for i, l := range h.legs() {
			if resp, _ := l.ask(t, "GET", "/", nil, "If-None-Match", held); resp.StatusCode != 304 || resp.Header.Get("ETag") != want {
				t.Errorf("%s: for %s: %s %v, want %s", l.name, held, resp.Status, resp.Header, want)
			}
			if resp, _ := plain.legs()[i].ask(t, "GET", "/", nil, "If-None-Match", held); resp.Header.Get("ETag") != `"v1"` {
				t.Errorf("%s, not compressed: for %s: %v", l.name, held, resp.Header)
			}
		}
	}
}

func TestNothingIsCompressedUnlessTheRouteSaysSo(t *testing.T) {
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 10_000)) })
	h := open(t, route(url))
	if resp := h.get("GET", "gzip"); resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Vary") != "" {
		t.Errorf("%v", resp.Header)
	}
}

func TestCompressedEventsArriveAsTheyAreSent(t *testing.T) {
	next := make(chan struct{})
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	h := open(t, compressed(url, "types = [\"text/event-stream\"]\n"))
	resp := h.get("GET", "gzip")
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(z)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
}

func TestACutIsSeenThroughCompression(t *testing.T) {
	url, _ := recorder(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n"+strings.Repeat("x", 5000))
	h := open(t, compressed(url, "")+"[route.timeouts]\nidle_read = \"100ms\"\n")
	resp := h.get("GET", "gzip")
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client saw a clean end")
	}
}

func TestEventsAreCompressedOverHTTP2Too(t *testing.T) {
	for name, start := range map[string]func(*testing.T, http.HandlerFunc) string{"from HTTP/1.1": upstream, "from HTTP/2": upstreamH2C} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{})
			url := start(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n", i)
					w.(http.Flusher).Flush()
					<-next
				}
			})
			text := compressed(url, "types = [\"text/event-stream\"]\n")
			if name == "from HTTP/2" {
				text = "[[upstream]]\nname = \"u\"\nprotocol = \"h2c\"\nendpoints = [\"" + url + "\"]\n" + compressed("u", "types = [\"text/event-stream\"]\n")
			}
			h := open(t, text)
			c := h.client2()
			r := h.request("GET", "/", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			z, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(z)
			for i := range 3 {
				if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("got %q, %v", line, err)
				}
				next <- struct{}{}
			}
			if _, err := lines.ReadByte(); err != io.EOF || resp.ProtoMajor != 2 {
				t.Errorf("got %v at the end, HTTP/%d", err, resp.ProtoMajor)
			}
		})
	}
}
