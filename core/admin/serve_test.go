package admin_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moongate/moongate/core/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve puts the door on a free port and returns its address and a function that ends it.
func serve(t *testing.T, d *door) (addr string, end func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.Serve(ctx, ln, admin.New(d.Options), slog.New(slog.DiscardHandler)) }()
	return ln.Addr().String(), func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

func TestAnAnswerThatHasBegunEndsBeforeServeReturns(t *testing.T) {
	d := newDoor()
	begun, finish := make(chan struct{}), make(chan struct{})
	d.Reload = func() (admin.Reloaded, error) {
		close(begun)
		<-finish
		return admin.Reloaded{Generation: 7}, nil
	}
	addr, end := serve(t, d)
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+addr+"/reload", "", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answered <- string(body)
	}()
	<-begun
	go close(finish)
	end()
	if got := <-answered; !strings.Contains(got, `"generation":7`) {
		t.Errorf("got %s", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAHugeHeadIsRefused(t *testing.T) {
	addr, end := serve(t, newDoor())
	defer end()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("answered %q, %v", line, err)
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": true, "127.8.8.8": true, "::1": true, "0.0.0.0": false, "::": false, "10.0.0.1": false} {
		if got := admin.Loopback(&net.TCPAddr{IP: net.ParseIP(addr)}); got != want {
			t.Errorf("Loopback(%s) = %v", addr, got)
		}
	}
	if admin.Loopback(&net.UnixAddr{}) {
		t.Error("a socket in the file system counts as loopback")
	}
}
