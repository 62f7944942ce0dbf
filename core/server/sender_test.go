package server_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/moongate/moongate/core"
)

// TestHTTP2ManyStreamsOfOneConnectionGetTheirOwnAnswers has small and large answers, streamed and whole, written at once.
func TestHTTP2ManyStreamsOfOneConnectionGetTheirOwnAnswers(t *testing.T) {
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		n := int(binary.BigEndian.Uint32([]byte(x.Request.Header.Get("X-N"))[:4]) - '0'<<24 - '0'<<16 - '0'<<8 - '0')
		fill := bytes.Repeat([]byte{byte('a' + n%26)}, 1+n*n*n%200_000)
		x.Response.Status, x.Response.Source = 200, core.FromUpstream
		if n%2 == 0 {
			x.Response.Body.Replace(fill)
		} else {
			x.Response.Body.Attach(bytes.NewReader(fill), -1)
		}
		if err := c.Respond(); err != nil {
			t.Error(err)
		}
	}), settings(), nil)
	c := browser(t, s.addr, nil, true)
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			r, _ := http.NewRequest("GET", "http://gw.test/", nil)
			r.Header.Set("X-N", string([]byte{'0', '0', '0', '0' + byte(n)}))
			resp, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if want := bytes.Repeat([]byte{byte('a' + n%26)}, 1+n*n*n%200_000); err != nil || !bytes.Equal(body, want) {
				t.Errorf("stream %d: %d bytes of %d, %v", n, len(body), len(want), err)
			}
		})
	}
	all.Wait()
	if s.Connections() != 1 {
		t.Error(s.Connections(), "connections")
	}
}
