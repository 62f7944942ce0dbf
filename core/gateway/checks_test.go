package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// examined is an upstream u that is checked, at /health, and the settings of its checks.
func examined(url, checks string) string {
	return routeTo(url, "[upstream.health.active]\npath = \"/health\"\n"+checks)
}

func TestChecksAreNoRequests(t *testing.T) {
	var asked atomic.Int64
	url := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			asked.Add(1)
		}
	})
	h := open(t, examined(url, "interval = \"10ms\"\ntimeout = \"20s\"\n")+"[[route]]\nname = \"more\"\npath = \"/more\"\nupstream = \"u\"\n")
	h.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	for asked.Load() < 5 {
		<-time.After(time.Millisecond)
	}
	h.wantMetric(`moongate_http_requests_total{class="2xx",route="all",upstream="u"} 1`)
	h.wantMetric(`moongate_upstream_pool_acquires_total{upstream="u"} 1`)
	h.wantMetric(fmt.Sprintf(`moongate_upstream_health_checks_total{endpoint="%s",result="failure",upstream="u"} 0`, strings.TrimPrefix(url, "http://")))
}

func TestChecksAreGoneWithTheirUpstream(t *testing.T) {
	var asked atomic.Int64
	url := upstream(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	other := upstream(t, func(http.ResponseWriter, *http.Request) {})
	h := open(t, examined(url, "interval = \"10ms\"\ntimeout = \"20s\"\n"))
	for asked.Load() < 2 {
		<-time.After(time.Millisecond)
	}
	h.write(routeTo(other, ""))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	if text := h.scrape(); strings.Contains(text, "moongate_upstream_health_checks_total{") || strings.Contains(text, strings.TrimPrefix(url, "http://")) {
		t.Error("a scrape tells of an endpoint that is gone")
	}
	<-time.After(100 * time.Millisecond)
	if after := asked.Load(); after > before+1 { // one may have been on its way
		t.Errorf("%d checks came after the reload", after-before)
	}
}

// TestReloadsKeepThePaceOfChecks reloads an unchanged and a changed file, as often as a busy deployment does.
func TestReloadsKeepThePaceOfChecks(t *testing.T) {
	var asked atomic.Int64
	url := upstream(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	text := func(n int) string {
		return examined(url, "interval = \"1h\"\n") + fmt.Sprintf("[[route]]\nname = \"r%d\"\npath = \"/r%d\"\nupstream = \"u\"\n", n, n)
	}
	h := open(t, text(0))
	for asked.Load() < 1 {
		<-time.After(time.Millisecond)
	}
	for i := range 100 {
		h.write(text(i / 2))
		if _, err := h.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d checks within an hour that has just begun", n)
	}
}
