package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file hold on each way in, and to upstreams of both versions of HTTP.

func TestTheUpstreamIsToldWhoAskedAndWhere(t *testing.T) {
	for _, host := range []string{"upstream", "client", "api.example.com"} {
		for _, protocol := range []string{"h1", "h2c"} {
			to := upstream
			if protocol == "h2c" {
				to = upstreamH2C
			}
			url := to(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Got", fmt.Sprint(r.Host, r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Host"], r.Header["X-Forwarded-Proto"], r.Header["X-User-Id"], r.Header["X-Real-Ip"]))
			})
			h := open(t, twoDoors+routeTo(url, fmt.Sprintf("protocol = %q\nhost = %q", protocol, host)))
			for _, l := range h.legs() {
				scheme, asked, _ := strings.Cut(l.base, "://")
				sent, rule := map[string]string{"upstream": strings.TrimPrefix(url, "http://"), "client": asked}[host]
				if !rule {
					sent = host
				}
				want := fmt.Sprintf("%s[127.0.0.1] [%s] [%s] [] [127.0.0.1]", sent, asked, scheme)
				resp, _ := l.ask(t, "GET", "/", nil, "X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil.test", "X-Forwarded-Proto", "ftp", "X-User-Id", "root", "X-Real-Ip", "6.6.6.6")
				if got := resp.Header.Get("X-Got"); got != want {
					t.Errorf("%s to %s, host %q: the upstream got %s, want %s", l.name, protocol, host, got, want)
				}
			}
		}
	}
}

func TestRangesAndConditionsAreTheUpstreams(t *testing.T) {
	data := strings.Repeat("0123456789", 1000)
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(data))
	}, func(t *testing.T, l leg) {
		resp, body := l.ask(t, "GET", "/", nil, "Range", "bytes=5-14")
		if resp.StatusCode != 206 || string(body) != "5678901234" || resp.Header.Get("Content-Range") != "bytes 5-14/10000" || resp.Header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("%s %q %v", resp.Status, body, resp.Header)
		}
		if resp, _ = l.ask(t, "GET", "/", nil, "Range", "bytes=20000-"); resp.StatusCode != 416 {
			t.Error(resp.Status)
		}
		if resp, body = l.ask(t, "GET", "/", nil, "If-None-Match", `"v1"`); resp.StatusCode != 304 || len(body) > 0 {
			t.Errorf("%s %q", resp.Status, body)
		}
	})
}

func TestBothSidesTalkAtOnce(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", "text/plain")
		w.(http.Flusher).Flush()
		b := make([]byte, 5)
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				return
			}
			_, _ = w.Write(b)
			w.(http.Flusher).Flush()
		}
	}, func(t *testing.T, l leg) {
		in, out := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", l.base, in)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.client.Do(r) // the answer's head comes before a byte of the body
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := make([]byte, 5)
		for i := range 20 {
			text := fmt.Sprintf("%05d", i)
			_, _ = io.WriteString(out, text)
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != text {
				t.Fatalf("%q %v", got, err)
			}
		}
		out.Close()
		if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
			t.Errorf("%q %v", rest, err)
		}
	})
}

func TestABodyThatIsHeldBackIsAskedForWhenItIsWanted(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(403)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}, func(t *testing.T, l leg) {
		l.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
		resp, body := l.ask(t, "POST", "/wanted", strings.NewReader("hello"), "Expect", "100-continue")
		if resp.StatusCode != 200 || string(body) != "hello" {
			t.Errorf("%s %q", resp.Status, body)
		}
		if resp, _ = l.ask(t, "POST", "/refused", strings.NewReader("hello"), "Expect", "100-continue"); resp.StatusCode != 403 {
			t.Error(resp.Status)
		}
	})
}

func TestAClientThatWaitsAndLeavesStopsTheUpstream(t *testing.T) {
	began, stopped := make(chan struct{}, 10), make(chan struct{}, 10)
	faithful(t, "", func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		stopped <- struct{}{}
	}, func(t *testing.T, l leg) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", l.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := l.client.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		<-began
		cancel()
		within(t, "the upstream hears that the client has left", stopped)
		<-ended
	})
}

// TestAReaderThatPausesHoldsItsUpstreamBack: what the upstream could send meanwhile is what buffers on the way take, not the whole.
func TestAReaderThatPausesHoldsItsUpstreamBack(t *testing.T) {
	const size = 256 << 20
	var sent atomic.Int64
	faithful(t, "", func(w http.ResponseWriter, _ *http.Request) {
		sent.Store(0)
		b := make([]byte, 64<<10)
		for n := 0; n < size; n += len(b) {
			if _, err := w.Write(b); err != nil {
				return
			}
			sent.Add(int64(len(b)))
		}
	}, func(t *testing.T, l leg) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", l.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for last := int64(-1); last != sent.Load(); time.Sleep(300 * time.Millisecond) { // until the upstream stands still
			last = sent.Load()
		}
		if n := sent.Load(); n > size/2 {
			t.Errorf("the upstream could send %d bytes to a client that read none", n)
		}
		_, _ = io.ReadFull(resp.Body, make([]byte, 4<<20))
		cancel()
	})
}

func TestAHundredAtOnceGetTheirOwnAnswers(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, b)
	}, func(t *testing.T, l leg) {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				resp, err := l.client.Post(fmt.Sprint(l.base, "/", i), "text/plain", strings.NewReader(fmt.Sprint("body ", i)))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != fmt.Sprintf("/%d body %d", i, i) {
					t.Errorf("%d got %q %v", i, got, err)
				}
			})
		}
		all.Wait()
	})
}

func TestConnectionsOfBothSidesServeAgain(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.RemoteAddr)
	}, func(t *testing.T, l leg) {
		peers := map[string]bool{}
		for range 10 {
			_, peer := l.ask(t, "POST", "/", strings.NewReader("hello"))
			peers[string(peer)] = true
		}
		if len(peers) > 5 { // over HTTP/2 a request may come before the one before has given its connection back
			t.Errorf("ten requests, one after the other, came over %d connections", len(peers))
		}
	})
}

// TestStatusOfGRPCComesBehindAMessageOrAlone: whatever way it goes, and with nothing announced.
func TestStatusOfGRPCComesBehindAMessageOrAlone(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("X-Te", r.Header.Get("Te"))
		if r.URL.Path == "/alone" {
			w.Header().Set("Grpc-Status", "5")
			w.Header().Set("Custom-Bin", "AAEC")
			return
		}
		_, _ = io.WriteString(w, "\x00\x00\x00\x00\x02hi")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Custom-Bin", "AAEC")
	}, func(t *testing.T, l leg) {
		resp, body := l.ask(t, "POST", "/message", strings.NewReader("\x00\x00\x00\x00\x00"), "Te", "trailers", "Content-Type", "application/grpc")
		if string(body) != "\x00\x00\x00\x00\x02hi" || resp.Trailer.Get("Grpc-Status") != "0" || resp.Trailer.Get("Custom-Bin") != "AAEC" || resp.Header.Get("X-Te") != "trailers" {
			t.Errorf("%q %v %v", body, resp.Header, resp.Trailer)
		}
		resp, body = l.ask(t, "POST", "/alone", strings.NewReader("\x00\x00\x00\x00\x00"), "Te", "trailers", "Content-Type", "application/grpc")
		if len(body) > 0 || resp.Header.Get("Grpc-Status") != "5" || resp.Header.Get("Custom-Bin") != "AAEC" || resp.ContentLength != 0 {
			t.Errorf("%q %v %v", body, resp.Header, resp.Trailer)
		}
	})
}

func TestPathsWithAnotherMeaningThanTheirsAreRefused(t *testing.T) {
	asked := new(atomic.Int32)
	faithful(t, "", func(http.ResponseWriter, *http.Request) { asked.Add(1) }, func(t *testing.T, l leg) {
		for _, path := range []string{"/open/../private", "/open/%2e%2e/private", "/open/..;/private", `/open/..\private`, "/open/%2e%2e%5cprivate", "/open//private", "/open/./private", "/open/.%2e;x/private"} {
			if resp, _ := l.ask(t, "GET", path, nil); resp.StatusCode != 400 {
				t.Errorf("%s gave %s", path, resp.Status)
			}
		}
	})
	if n := asked.Load(); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}
