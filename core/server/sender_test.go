package server_test

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"testing"

	"github.com/moongate/moongate/core"
)

// TestHTTP2ManyStreamsOfOneConnectionGetTheirOwnAnswers has small and large answers, streamed and whole, written at once.
func TestHTTP2ManyStreamsOfOneConnectionGetTheirOwnAnswers(t *testing.T) {
	s := open(t, handler(func(x *core.Exchange, c core.Client) {
		n, err := strconv.Atoi(string(x.Request.RawPath[1:]))
		if err != nil {
			t.Error(err)
		}
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
	first, err := c.Get("http://gw.test/0") // opens the connection: a hundred at once would race to dial it
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, first.Body)
	first.Body.Close()
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			resp, err := c.Get("http://gw.test/" + strconv.Itoa(n))
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
