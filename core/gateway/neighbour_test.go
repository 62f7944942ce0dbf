package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestASlowNeighbourSlowsNobody has requests that wait for their upstream, an answer that nobody reads and a body that does not come, on every
// way in, and with HTTP/2 on one connection with those that are answered meanwhile.
func TestASlowNeighbourSlowsNobody(t *testing.T) {
	stuck := make(chan struct{}, 100)
	faithful(t, "", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/waits":
			stuck <- struct{}{}
			<-r.Context().Done()
		case "/unread":
			stuck <- struct{}{}
			_, _ = io.Copy(w, zeros{})
		case "/uploads":
			stuck <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			_, _ = io.WriteString(w, "quick")
		}
	}, func(t *testing.T, l leg) {
		var held sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer held.Wait()
		defer cancel()
		body, hold := io.Pipe()
		var unread *http.Response
		start := func(method, path string, body io.Reader) {
			r, err := http.NewRequestWithContext(ctx, method, l.base+path, body)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := l.client.Do(r)
			switch {
			case err != nil: // the test is over
			case path == "/unread":
				unread = resp
			default:
				resp.Body.Close()
			}
		}
		for range 20 {
			held.Go(func() { start("GET", "/waits", nil) })
			<-stuck
		}
		held.Go(func() { start("POST", "/uploads", body) })
		<-stuck
		start("GET", "/unread", nil)
		<-stuck
		for i := range 20 {
			if resp, got := l.ask(t, "GET", fmt.Sprint("/", i), strings.NewReader("body")); resp.StatusCode != 200 || string(got) != "quick" {
				t.Errorf("%d %q", resp.StatusCode, got)
			}
		}
		hold.CloseWithError(io.ErrUnexpectedEOF)
		if unread != nil {
			unread.Body.Close()
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
