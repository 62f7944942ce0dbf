package gateway_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestClaimsAboutEarlierHopsAreReplacedInEverySpelling(t *testing.T) {
	const claims = "X_Forwarded_For: 9.9.9.9\r\nX_Forwarded_Proto: https\r\nX_Real_IP: 8.8.8.8\r\nX-Forwarded-Ssl: on\r\nX-Forwarded-Server: e\r\n" +
		"X.Forwarded.For: 7.7.7.7\r\nFORWARDED: for=6.6.6.6\r\nx-real-ip: 5.5.5.5\r\nX-Forwarded: kept\r\nX-Forward: kept\r\n"
	request := "GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n" + claims + "\r\n"
	t.Run("untrusted", func(t *testing.T) {
		url, heads := recorder(t, ok)
		open(t, route(url)).raw(request)
		head := <-heads
		for _, gone := range []string{"9.9.9.9", "https", "8.8.8.8", "Ssl", "Server: e", "7.7.7.7", "6.6.6.6", "5.5.5.5"} {
			if strings.Contains(head, gone) {
				t.Errorf("the upstream got %s:\n%s", gone, head)
			}
		}
		for _, want := range []string{"X-Forwarded: kept", "X-Forward: kept", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1;proto=http", "X-Forwarded-For: 127.0.0.1"} {
			if !strings.Contains(head, want) {
				t.Errorf("the upstream did not get %s:\n%s", want, head)
			}
		}
	})
	t.Run("trusted", func(t *testing.T) {
		url, heads := recorder(t, ok)
		open(t, "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n"+route(url)).raw(request)
		head := <-heads
		for _, gone := range []string{"9.9.9.9", "X_Forwarded_Proto", "8.8.8.8", "7.7.7.7"} {
			if strings.Contains(head, gone) {
				t.Errorf("the upstream got %s in a spelling that no proxy uses:\n%s", gone, head)
			}
		}
		for _, want := range []string{"X-Forwarded-Ssl: on", "5.5.5.5", "6.6.6.6"} {
			if !strings.Contains(head, want) {
				t.Errorf("what a trusted proxy said is gone: %s\n%s", want, head)
			}
		}
	})
}

func TestIdentityIsKeptFromEverySpellingThatFoldsToIt(t *testing.T) {
	url, heads := recorder(t, ok)
	open(t, route(url)).raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nX.User.Id: root\r\nX!User~Role: root\r\nX_User-Id: root\r\n\r\n")
	if head := <-heads; strings.Contains(head, "root") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestAnUploadThatIsNotReadEndsWithTheIdleLimit(t *testing.T) {
	url := scripted(t, func(nc net.Conn) { // takes the head and then nothing
		_, _ = readHead(bufio.NewReaderSize(nc, 16))
		buf := make([]byte, 1)
		for {
			select {
			case <-t.Context().Done():
				return
			default:
			}
			_ = nc.(*net.TCPConn).SetReadBuffer(1024)
			if _, err := nc.Read(buf[:0]); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // the peer that is slow is the subject
		}
	})
	h := open(t, route(url)+"[route.http]\nmax_body = \"100MiB\"\n[route.timeouts]\nidle_read = \"400ms\"\nfirst_byte = \"300ms\"\ntotal = \"500ms\"\n")
	nc, r := h.dial()
	began := time.Now()
	go func() {
		_, _ = io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n")
		piece := make([]byte, 64<<10)
		for {
			if _, err := nc.Write(piece); err != nil {
				return
			}
		}
	}()
	head, err := readHead(r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 504") {
		t.Fatalf("%q %v", head, err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %s", took)
	}
}

func TestAnAnswerWithoutADateGetsOne(t *testing.T) {
	url, _ := recorder(t, ok)
	if got := open(t, route(url)).raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"); strings.Count(got, "\r\nDate: ") != 1 {
		t.Errorf("got %q", got)
	}
}
