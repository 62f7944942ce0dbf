package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// The tests of this file hold on each way in, and to upstreams of both versions of HTTP.

func TestTrailersPassWhereverTheyComeFrom(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.(http.Flusher).Flush()
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "body")
		}
		w.Header().Set(http.TrailerPrefix+"X-Out", r.Trailer.Get("X-In")) // nobody has announced it
	}, func(t *testing.T, l leg) {
		for _, path := range []string{"/body", "/none"} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", l.base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-In": nil}
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("hello"), atEnd(func() { r.Trailer.Set("X-In", "in") }))), -1
			resp, err := l.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.Trailer.Get("X-Out") != "in" {
				t.Errorf("%s: %q %v %v", path, body, resp.Trailer, err)
			}
		}
	})
}

// atEnd is called when what stood before it has been read.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func TestEventsAndHintsComeAtOnce(t *testing.T) {
	next, over := make(chan string), make(chan struct{}, 10)
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		defer func() { over <- struct{}{} }()
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(103)
		w.Header().Del("Link")
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
		w.WriteHeader(200)
		for {
			w.(http.Flusher).Flush()
			select {
			case event := <-next:
				_, _ = io.WriteString(w, event)
			case <-r.Context().Done():
				return
			}
		}
	}, func(t *testing.T, l leg) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			within(t, "the upstream hears that the client has left", over)
		}()
		hints := make(chan string, 1)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			hints <- fmt.Sprint(status, h.Get("Link"))
			return nil
		}})
		r, err := http.NewRequestWithContext(ctx, "GET", l.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan *http.Response, 1)
		go func() {
			resp, err := l.client.Do(r)
			if err != nil {
				t.Error(err)
			}
			answered <- resp
		}()
		select { // the answer is not there yet
		case got := <-hints:
			if got != "103</a.css>" {
				t.Errorf("got %s", got)
			}
		case <-time.After(patience):
			t.Error("no hint")
		}
		next <- ""
		resp := <-answered // the first event is not there yet
		if resp == nil {
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			all, _ := io.ReadAll(resp.Body)
			t.Fatalf("%d %s", resp.StatusCode, all)
		}
		for i := range 3 {
			event := fmt.Sprintf("data: %d\n\n", i)
			next <- event
			got := make([]byte, len(event))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
				t.Fatalf("%q %v", got, err)
			}
		}
	})
}

func TestUploadsArriveWhileTheyAreSent(t *testing.T) {
	arrived := make(chan string)
	faithful(t, "", func(_ http.ResponseWriter, r *http.Request) {
		b := make([]byte, 5)
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				return
			}
			arrived <- string(b)
		}
	}, func(t *testing.T, l leg) {
		in, out := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", l.base, in)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			resp, err := l.client.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			ended <- err
		}()
		for i := range 5 {
			text := fmt.Sprintf("%05d", i)
			_, _ = io.WriteString(out, text)
			select {
			case got := <-arrived:
				if got != text {
					t.Errorf("got %s", got)
				}
			case <-time.After(patience):
				t.Fatal("nothing came before all of it was sent")
			}
		}
		out.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestACutNeverLooksLikeAnEnd(t *testing.T) {
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, l leg) {
		for _, path := range []string{"/sized", "/chunked"} {
			resp, err := l.client.Get(l.base + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || string(body) != "half" {
				t.Errorf("%s: %q ended with %v", path, body, err)
			}
		}
	})
}

func TestWhoeverLeavesInTheBodyStopsTheUpstream(t *testing.T) {
	began, stopped := make(chan struct{}, 10), make(chan struct{}, 10)
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			_, _ = io.Copy(w, zeros{})
		} else {
			began <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body)
		}
		stopped <- struct{}{}
	}, func(t *testing.T, l leg) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", l.base+"/down", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadFull(resp.Body, make([]byte, 100_000))
		cancel()
		resp.Body.Close()
		within(t, "the download stops", stopped)
		in, out := io.Pipe()
		ctx, cancel = context.WithCancel(t.Context())
		if r, err = http.NewRequestWithContext(ctx, "POST", l.base+"/up", in); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			if resp, err := l.client.Do(r); err == nil {
				resp.Body.Close()
			}
			close(ended)
		}()
		_, _ = io.WriteString(out, strings.Repeat("x", 100_000))
		<-began
		cancel()
		within(t, "the upload stops", stopped)
		out.CloseWithError(io.ErrUnexpectedEOF)
		<-ended
	})
}

// TestARefusalIsRelayedAndGotTheWholeRequest: an answer of 503 is one; what was sent for it was not cut, nor sent twice.
func TestARefusalIsRelayedAndGotTheWholeRequest(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 20_000)
	want := fmt.Sprint(len(data), crc32.ChecksumIEEE(data), "<nil>")
	asked := make(chan string, 10)
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		hash := crc32.NewIEEE()
		n, err := io.Copy(hash, r.Body)
		asked <- fmt.Sprint(n, hash.Sum32(), err)
		w.WriteHeader(503)
		_, _ = io.WriteString(w, "not now")
	}, func(t *testing.T, l leg) {
		for _, body := range []io.Reader{bytes.NewReader(data), struct{ io.Reader }{bytes.NewReader(data)}} {
			resp, got := l.ask(t, "PUT", "/", body)
			if resp.StatusCode != 503 || string(got) != "not now" {
				t.Errorf("%d %q", resp.StatusCode, got)
			}
			if sum := strings.ReplaceAll(<-asked, " ", ""); sum != strings.ReplaceAll(want, " ", "") {
				t.Errorf("the upstream got %s, want %s", sum, want)
			}
			if len(asked) > 0 {
				t.Error("it was asked twice")
			}
		}
	})
}
