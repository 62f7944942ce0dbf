package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

// TestAPanicKeepsNoConnection has filters that panic before, in and after the answer: each ends its client's connection and nothing else.
func TestAPanicKeepsNoConnection(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
	}
	fault := func(x *core.Exchange) {
		if string(x.Request.RawQuery) == "panic" {
			panic("a fault")
		}
	}
	for phase, stage := range map[string]*stage{
		"request":  {name: "a", request: func(x *core.Exchange) (*core.Reply, error) { fault(x); return nil, nil }},
		"response": {name: "a", response: func(x *core.Exchange) error { fault(x); return nil }},
		"log":      {name: "a", log: fault},
	} {
		for _, protocol := range []string{"h1", "h2c"} {
			t.Run(phase+" "+protocol, func(t *testing.T) {
				url := upstream(t, answer)
				if protocol == "h2c" {
					url = narrowH2C(t, 1, answer)
				}
				h := open(t, routeTo(url, fmt.Sprintf("protocol = %q\n[upstream.pool]\nconnections = 1\nwait = \"10s\"\n", protocol)), through(stage))
				for _, c := range []*http.Client{h.client2(), {Transport: &http.Transport{DisableKeepAlives: true}}} {
					for range 3 {
						resp, err := c.Do(h.request("POST", "/?panic", strings.NewReader("body")))
						if err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
						if resp, body := h.do(c, h.request("POST", "/", strings.NewReader("body"))); resp.StatusCode != 200 || len(body) != 100_000 {
							t.Fatalf("the next request got %d, %d bytes", resp.StatusCode, len(body))
						}
					}
				}
			})
		}
	}
}
