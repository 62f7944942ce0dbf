package upstream_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/upstream"
)

// TestADialThatIsGivenUpFailsNobodyElse: whoever comes while it ends gets a connection of the next one. The endpoint's first connection is silent.
func TestADialThatIsGivenUpFailsNobodyElse(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	silent := make(chan struct{}, 1)
	s.Listener = mute{s.Listener, silent}
	s.Start()
	t.Cleanup(s.Close)
	for range 50 {
		silent <- struct{}{}
		o := options(s.URL)
		o.Protocol = upstream.H2C
		u := open(t, o, nil)
		streams := u.Streams(u.Endpoints()[0])
		if _, err := streams.Get(patience, time.Millisecond, new(core.Lifeline)); err == nil {
			t.Fatal("a connection came that says nothing")
		}
		select {
		case <-silent: // it was given up before it was there
		default:
		}
		c, err := streams.Get(patience, patience, new(core.Lifeline))
		if err != nil {
			t.Fatal(err)
		}
		c.Release()
	}
}

// mute is a listener whose connections take all and say nothing while there is something to take from silent.
type mute struct {
	net.Listener
	silent chan struct{}
}

func (m mute) Accept() (net.Conn, error) {
	for {
		nc, err := m.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case <-m.silent:
			go func() {
				_, _ = io.Copy(io.Discard, nc)
				_ = nc.Close()
			}()
		default:
			return nc, nil
		}
	}
}
