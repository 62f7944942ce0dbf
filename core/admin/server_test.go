package admin_test

import (
	"bufio"
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

// open puts the door on a free port.
func open(t *testing.T, d *door) *admin.Server {
	t.Helper()
	s := admin.NewServer(slog.New(slog.DiscardHandler), nil)
	t.Cleanup(s.Close)
	move(t, s, "127.0.0.1:0", d).Commit()
	return s
}

func move(t *testing.T, s *admin.Server, address string, d *door) *admin.Change {
	t.Helper()
	c, err := s.Prepare(address, d.Options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client talks over connections of its own and keeps none.
var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func post(addr net.Addr, header ...string) string {
	r, _ := http.NewRequest("POST", "http://"+addr.String()+"/reload", nil)
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func TestAnAnswerThatHasBegunEndsBeforeCloseReturns(t *testing.T) {
	d := newDoor()
	begun, finish := make(chan struct{}), make(chan struct{})
	d.Reload = func() (admin.Reloaded, error) {
		close(begun)
		<-finish
		return admin.Reloaded{Generation: 7}, nil
	}
	s := open(t, d)
	answered := make(chan string, 1)
	go func() { answered <- post(s.Addr()) }()
	<-begun
	go close(finish)
	s.Close()
	if got := <-answered; !strings.Contains(got, `"generation":7`) {
		t.Errorf("got %s", got)
	}
}

func TestAReloadMovesItsOwnListener(t *testing.T) {
	d := newDoor()
	var s *admin.Server
	d.Reload = func() (admin.Reloaded, error) {
		move(t, s, "localhost:0", d).Commit()
		return admin.Reloaded{Generation: 22}, nil
	}
	s = open(t, d)
	first := s.Addr()
	if got := post(first); !strings.Contains(got, `"generation":22`) {
		t.Errorf("the reload that moves the listener got %s", got)
	}
	second := s.Addr()
	if second.String() == first.String() {
		t.Fatalf("still at %s", first)
	}
	if got := post(second); !strings.Contains(got, `"ok":true`) {
		t.Errorf("the new address answers %s", got)
	}
}

func TestAnAddressThatIsTakenChangesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := open(t, newDoor())
	if _, err := s.Prepare(taken.Addr().String(), newDoor().Options); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("Prepare of a taken address says %v", err)
	}
	if got := post(s.Addr()); !strings.Contains(got, `"ok":true`) {
		t.Errorf("afterwards the old address answers %s", got)
	}
}

func TestAbortGivesTheAddressBack(t *testing.T) {
	s := open(t, newDoor())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	move(t, s, free.Addr().String(), newDoor()).Abort()
	again, err := net.Listen("tcp", free.Addr().String())
	if err != nil {
		t.Fatalf("the address of an aborted move is still bound: %v", err)
	}
	again.Close()
}

func TestANewTokenHoldsAtOnce(t *testing.T) {
	d := newDoor()
	s := open(t, d)
	d.Token = "fresh"
	move(t, s, "127.0.0.1:0", d).Commit()
	if got := post(s.Addr()); !strings.Contains(got, `"code":401`) {
		t.Errorf("without the token: %s", got)
	}
	if got := post(s.Addr(), "Authorization", "Bearer fresh"); !strings.Contains(got, `"ok":true`) {
		t.Errorf("with the token: %s", got)
	}
}

func TestLoopbackIsFoundFromTheAddress(t *testing.T) {
	s := admin.NewServer(slog.New(slog.DiscardHandler), nil)
	defer s.Close()
	move(t, s, "0.0.0.0:0", newDoor()).Commit()
	_, port, _ := net.SplitHostPort(s.Addr().String())
	addr, _ := net.ResolveTCPAddr("tcp", "127.0.0.1:"+port)
	if got := post(addr); !strings.Contains(got, "wants a token") {
		t.Errorf("a listener on every address reloads without a token: %s", got)
	}
}

func TestAHugeHeadIsRefused(t *testing.T) {
	s := open(t, newDoor())
	conn, err := net.Dial("tcp", s.Addr().String())
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
