package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"testing"
)

// TestABodyThatAPredicateCannotReadIsTheClientsFault reads for a body predicate what never comes.
func TestABodyThatAPredicateCannotReadIsTheClientsFault(t *testing.T) {
	up := upstreamQuiet(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	h := open(t, "[http]\nmin_rate = \"100KiB/s\"\nmin_rate_grace = \"100ms\"\n"+route(up)+"body = { \"env\" = \"canary\" }\n")
	nc, _ := h.dial()
	send(t, nc, "POST / HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil || resp.StatusCode != 408 {
		t.Fatalf("%v %v, want 408", resp, err)
	}
}

func TestNeitherTraceNorConnectIsServed(t *testing.T) {
	h := open(t, route("http://127.0.0.1:1"))
	for _, line := range []string{"TRACE /", "CONNECT a:1"} {
		nc, _ := h.dial()
		send(t, nc, line+" HTTP/1.1\r\nHost: gw\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || resp.StatusCode != 501 {
			t.Errorf("%s: %v %v, want 501", line, resp, err)
		}
	}
}
