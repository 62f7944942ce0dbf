package proxy_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

// TestAConnectThatTheRequestHadNoTimeForSaysNothing about the endpoint; one that had all of its time does. The endpoint takes connections and
// says nothing, so that neither TLS nor HTTP/2 begins.
func TestAConnectThatTheRequestHadNoTimeForSaysNothing(t *testing.T) {
	silent := scripted(t, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) })
	for name, speak := range map[string]func(o *upstream.Options){
		"TLS": func(o *upstream.Options) {
			for i := range o.Endpoints {
				o.Endpoints[i].URL = strings.Replace(o.Endpoints[i].URL, "http://", "https://", 1)
			}
		},
		"HTTP/2": func(o *upstream.Options) { o.Protocol = upstream.H2C },
	} {
		for _, c := range []struct {
			what          string
			connect, left time.Duration
			ready         int
		}{
			{"little time left", patience, 50 * time.Millisecond, 2},
			{"all of its time", 50 * time.Millisecond, patience, 1},
		} {
			o := options(silent, refused(t))
			speak(&o)
			o.Limits.Connect, o.Limits.Total = c.connect, max(c.connect, c.left)
			up := open(t, o)
			x := request("GET", "/")
			x.Endpoint = up.Endpoints()[0]
			x.Times.Filtered = core.Now().Add(c.left - o.Limits.Total)
			if got := forward(t, x, up, new(client)); got.status != 502 || up.Ready() != c.ready {
				t.Errorf("%s, %s: %v, and %d endpoints are ready, want %d", name, c.what, got, up.Ready(), c.ready)
			}
		}
	}
}
