package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/proxy"
)

func call(method, path string) *core.Call {
	return &core.Call{Method: method, Scheme: "http", Path: []byte(path), MaxAnswer: 1000}
}

func TestACallGoesOutAsItIsAndItsAnswerIsRead(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Got", fmt.Sprint(r.Method, " ", r.RequestURI, r.Header["X-Forwarded-For"], r.Header["X-Trace-Id"], r.Header["Via"], r.Header["X-A"]))
			w.WriteHeader(418)
			_, _ = w.Write(body)
		}))
		o.Protocol = protocol
		c := call("PUT", "/a%2Fb")
		c.Query, c.Body = []byte("x=1"), []byte("hello")
		c.Header.Add("X-A", "1")
		err := proxy.Call(t.Context(), open(t, o), c, []byte("trace-1"))
		if err != nil || c.Answer.Status != 418 || string(c.Answer.Body) != "hello" || string(c.Answer.Header.Get("X-Got")) != "PUT /a%2Fb?x=1[] [trace-1] [] [1]" {
			t.Errorf("%v, %d %q %s", err, c.Answer.Status, c.Answer.Body, c.Answer.Header.Get("X-Got"))
		}
	})
}

func TestACallThatFailsSaysWhy(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		asked := make(chan struct{}, 1)
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/long":
				_, _ = io.WriteString(w, strings.Repeat("x", 1001))
			case "/cut":
				w.Header().Set("Content-Length", "5")
				_, _ = io.WriteString(w, "he")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case "/hangs":
				asked <- struct{}{}
				<-r.Context().Done()
			}
		}))
		o.Protocol = protocol
		up := open(t, o)
		if err := proxy.Call(t.Context(), up, call("GET", "/long"), nil); !errors.Is(err, core.ErrBodyTooLarge) {
			t.Errorf("an answer that is too long: %v", err)
		}
		err := proxy.Call(t.Context(), up, call("GET", "/cut"), nil)
		if fault, ok := errors.AsType[*core.Error](err); !ok || fault.Status != 502 {
			t.Errorf("an answer that is cut: %v", err)
		}
		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-asked
			cancel(over)
		}()
		if err := proxy.Call(ctx, up, call("GET", "/hangs"), nil); err != over {
			t.Errorf("a call whose time is over: %v", err)
		}
		o = options(refused(t))
		o.Protocol = protocol
		err = proxy.Call(t.Context(), open(t, o), call("GET", "/"), nil)
		if fault, ok := errors.AsType[*core.Error](err); !ok || fault.Public != "upstream cannot be reached" {
			t.Errorf("refused: %v", err)
		}
	})
}

// TestACopyIsSentAndItsAnswerReadForNobody so that the connection serves again.
func TestACopyIsSentAndItsAnswerReadForNobody(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		peers := make(chan string, 10)
		o := options(served(t, protocol, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			peers <- r.RemoteAddr + string(body)
			_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
		}))
		o.Protocol = protocol
		up := open(t, o)
		for range 3 {
			x := request("POST", "/", func(x *core.Exchange) { x.Request.Body.Replace([]byte(" hello")) })
			if err := proxy.Mirror(t.Context(), up, x); err != nil {
				t.Error(err)
			}
		}
		first := <-peers
		if second, third := <-peers, <-peers; first != second || second != third || !strings.HasSuffix(first, " hello") {
			t.Errorf("copies came as %q, %q, %q", first, second, third)
		}
		if err := proxy.Mirror(t.Context(), open(t, options(refused(t))), request("GET", "/")); err == nil {
			t.Error("nobody said that a copy came nowhere")
		}
	})
}
