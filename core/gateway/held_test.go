package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/limit"
)

// heldSlot is a slot that an exchange holds.
type heldSlot struct{ slots *limit.Concurrency }

func (h heldSlot) Release() { h.slots.Return("all", 1) }

// holding is a stage whose requests hold one of the slots; it answers 429 when there is none.
func holding(slots *limit.Concurrency, then func(x *core.Exchange)) *stage {
	return &stage{name: "limit", request: func(x *core.Exchange) (*core.Reply, error) {
		if !slots.Take("all", 1).OK {
			return &core.Reply{Status: 429}, nil
		}
		x.Hold(heldSlot{slots})
		if then != nil {
			then(x)
		}
		return nil, nil
	}}
}

func TestSlotsComeBackWhenTheClientLeaves(t *testing.T) {
	for _, version := range []string{"h1", "h2"} {
		for _, when := range []string{"before the answer", "in the answer"} {
			t.Run(version+" "+when, func(t *testing.T) {
				slots, err := limit.NewConcurrency(1)
				if err != nil {
					t.Fatal(err)
				}
				asked, left := make(chan struct{}, 1), make(chan struct{}, 1)
				url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/leave" {
						return
					}
					if when == "in the answer" {
						_, _ = io.WriteString(w, "begun")
						_ = http.NewResponseController(w).Flush()
					}
					asked <- struct{}{}
					<-r.Context().Done()
					left <- struct{}{}
				})
				h := open(t, routeTo(url, ""), through(holding(slots, nil)))
				for range 3 {
					if version == "h1" {
						nc, r := h.dial()
						send(t, nc, "GET /leave HTTP/1.1\r\nHost: a\r\n\r\n")
						<-asked
						if when == "in the answer" {
							if _, err := readHead(r); err != nil {
								t.Fatal(err)
							}
						}
						nc.Close()
					} else {
						h.abandon("/leave", asked)
					}
					<-left
					eventually(t, "the slot is free", func() bool { return slots.Usage().Keys == 0 })
				}
				if resp, _ := h.do(h.client2(), h.request("GET", "/", nil)); resp.StatusCode != 200 {
					t.Errorf("with all slots free: %d", resp.StatusCode)
				}
			})
		}
	}
}

// abandon asks over HTTP/2 and resets the stream once the upstream was asked.
func (h *house) abandon(path string, asked <-chan struct{}) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := h.client2().Do(h.request("GET", path, nil).WithContext(ctx))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	<-asked
	cancel()
	<-done
}

func TestSlotsComeBackAfterAPanic(t *testing.T) {
	fault := func(x *core.Exchange) {
		if string(x.Request.RawQuery) == "panic" {
			panic("a fault")
		}
	}
	for phase, other := range map[string]*stage{
		"request":  {name: "b", request: func(x *core.Exchange) (*core.Reply, error) { fault(x); return nil, nil }},
		"response": {name: "b", response: func(x *core.Exchange) error { fault(x); return nil }},
		"log":      {name: "b", log: fault},
	} {
		t.Run(phase, func(t *testing.T) {
			slots, err := limit.NewConcurrency(1)
			if err != nil {
				t.Fatal(err)
			}
			h := open(t, routeTo(upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) }), ""), through(holding(slots, nil), other))
			for _, c := range []*http.Client{h.client2(), {Transport: &http.Transport{DisableKeepAlives: true}}} {
				for range 3 {
					resp, err := c.Do(h.request("GET", "/?panic", nil))
					if err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					eventually(t, "the slot is free", func() bool { return slots.Usage().Keys == 0 })
					if resp, _ := h.do(c, h.request("GET", "/", nil)); resp.StatusCode != 200 {
						t.Fatalf("the next request got %d", resp.StatusCode)
					}
					eventually(t, "the slot is free again", func() bool { return slots.Usage().Keys == 0 })
				}
			}
		})
	}
}
