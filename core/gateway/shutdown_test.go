package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moongate/moongate/core/gateway"
)

// opened is a gateway that nobody runs yet.
func opened(t *testing.T, text string) *house {
	t.Helper()
	h := open(t, text)
	h.stop()
	if err := <-h.ended; err != nil {
		t.Fatal(err)
	}
	return h
}

func TestARunThatIsOverBeforeItBeganEnds(t *testing.T) {
	for range 20 {
		h := open(t, route("http://127.0.0.1:1"))
		h.stop() // the listeners may not be served yet
		select {
		case err := <-h.ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("the gateway never ends")
		}
	}
}

func TestRequestsInFlightEndWhileTheGatewayDrains(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	url := scripted(t, func(nc net.Conn) {
		r := bufio.NewReader(nc)
		for {
			if _, err := readHead(r); err != nil {
				return
			}
			close(began)
			<-release
			_, _ = io.WriteString(nc, ok)
		}
	})
	h := open(t, route(url))
	busy, r := h.dial()
	idle, idleR := h.dial()
	send(t, idle, "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n") // answered by the gateway
	if _, err := readHead(idleR); err != nil {
		t.Fatal(err)
	}
	send(t, busy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-began
	h.stop()
	eventually(t, "no new connection is taken", func() bool {
		nc, err := net.Dial("tcp", h.addr)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	if !h.Draining() {
		t.Error("the gateway does not say that it drains")
	}
	if _, err := io.ReadAll(idleR); err != nil {
		t.Errorf("an idle connection ended with %v", err)
	}
	if _, err := h.Reload(); err == nil {
		t.Error("a gateway that shuts down was reloaded")
	}
	close(release)
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Fatalf("%q %v", head, err)
	}
	expect(t, r, "ok")
	if err := <-h.ended; err != nil {
		t.Errorf("the drain ended with %v", err)
	}
}

func TestWhatDoesNotEndInTimeIsCut(t *testing.T) {
	url, heads, left := working(t)
	log, entries := watching()
	h := open(t, "[http]\ndrain = \"200ms\"\n"+route(url), through(log))
	nc, r := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-heads
	began := time.Now()
	h.stop()
	err := <-h.ended
	if took := time.Since(began); err == nil || took < 200*time.Millisecond || took > patience/2 {
		t.Errorf("%v after %s", err, took)
	}
	within(t, "the upstream is let go", left)
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("the client got %q", rest)
	}
	if e := next(t, entries); e.status != 503 || e.source != "gateway" || !strings.Contains(e.err, "shut down") {
		t.Errorf("the log has %+v", e)
	}
}

func TestAnAnswerThatIsCutByTheEndKeepsItsStatus(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		log, entries := watching()
		h := open(t, "[http]\ndrain = \"200ms\"\n"+route(url), through(log))
		c := h.client2()
		if protocol == "HTTP/1.1" {
			c = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		}
		resp, err := c.Do(h.request("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		h.stop()
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the client saw a clean end", protocol)
		}
		resp.Body.Close()
		if e := next(t, entries); e.status != 200 || !strings.Contains(e.err, "shut down") {
			t.Errorf("%s: the log has %+v", protocol, e)
		}
		<-h.ended
	}
}

func TestAnswersGivenWhileDrainingAreRead(t *testing.T) {
	h := open(t, "[http]\nmax_body = \"1KiB\"\n"+route("http://127.0.0.1:1"))
	var conns []net.Conn
	for range 5 {
		nc, r := h.dial()
		send(t, nc, "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n") // it has been accepted
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		send(t, nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n") // its head is not complete
		conns = append(conns, nc)
	}
	h.stop()
	eventually(t, "it drains", h.Draining)
	for _, nc := range conns {
		send(t, nc, "\r\n")
		_, _ = nc.Write(make([]byte, 200_000))
		all, _ := io.ReadAll(nc)
		if !strings.HasPrefix(string(all), "HTTP/1.1 413 ") || !strings.Contains(string(all), "Connection: close\r\n") {
			t.Errorf("got %q", all)
		}
		nc.Close()
	}
}

// TestAClientThatGoesOnSendingDelaysNoEnd: what it sends behind its answer is read for nobody.
func TestAClientThatGoesOnSendingDelaysNoEnd(t *testing.T) {
	h := open(t, "[http]\ndrain = \"20s\"\n"+route("http://127.0.0.1:1"))
	nc, r := h.dial()
	send(t, nc, "POST /a/../b HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n")
	go func() {
		for _, err := nc.Write(make([]byte, 100)); err == nil; _, err = nc.Write(make([]byte, 100)) {
			<-time.After(50 * time.Millisecond)
		}
	}()
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 400") {
		t.Fatalf("%q %v", head, err)
	}
	h.stop()
	if err := <-h.ended; err != nil {
		t.Errorf("it was cut: %v", err)
	}
}

func TestAGatewayThatCannotListenLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	h := opened(t, route("http://127.0.0.1:1"))
	h.write(fmt.Sprintf("[[listener]]\naddress = %q\n", taken.Addr()) + route("http://127.0.0.1:1"))
	c, err := load(h.file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.New(options(t, h), c); err == nil || !strings.Contains(err.Error(), "gateway.toml:1") {
		t.Errorf("got %v", err)
	}
}
