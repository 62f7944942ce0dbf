package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manager is a service manager: it keeps the sockets, starts the gateway, and hears what it says.
type manager struct {
	t               *testing.T
	dir             string
	program         string
	sockets         []*os.File
	clients, admins string // addresses
	said            *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t}
	var err error
	if m.dir, err = os.MkdirTemp("", "mg"); err != nil { // short enough for a Unix socket
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(m.dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m.program = filepath.Join(m.dir, "moongate") // as TestMain wants it
	if err := os.Symlink(self, m.program); err != nil {
		t.Fatal(err)
	}
	m.clients, m.admins = m.listen(), m.listen()
	if m.said, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(m.dir, "notify")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.said.Close() })
	return m
}

func (m *manager) listen() string {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { f.Close() })
	m.sockets = append(m.sockets, f)
	return l.Addr().String()
}

// start starts the gateway with this configuration.
func (m *manager) start(settings string) (gateway *exec.Cmd, log io.Reader) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "gateway.toml"), []byte(settings), 0o600); err != nil {
		m.t.Fatal(err)
	}
	gateway = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" run -c gateway.toml`, m.program)
	gateway.Dir, gateway.ExtraFiles = m.dir, m.sockets
	gateway.Env = append(os.Environ(), fmt.Sprint("LISTEN_FDS=", len(m.sockets)), "NOTIFY_SOCKET="+filepath.Join(m.dir, "notify"))
	log, err := gateway.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = gateway.Process.Kill(); _ = gateway.Wait() })
	return gateway, log
}

// hears waits for what the gateway says next.
func (m *manager) hears(want string) {
	m.t.Helper()
	text := make([]byte, 4096)
	_ = m.said.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := m.said.Read(text)
	if err != nil || !strings.HasPrefix(string(text[:n]), want) {
		m.t.Fatalf("the manager heard %q, %v, want %q", text[:n], err, want)
	}
}

func (m *manager) settings(answer string) string {
	return fmt.Sprintf("[[listener]]\naddress = %q\n[admin]\naddress = %q\n[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = %q\n", m.clients, m.admins, answer)
}

// A manager that keeps the sockets can put one process in the place of another, and no client is ever refused: whoever comes between the two waits
// for the second.
func TestClientsWaitWhileOneProcessReplacesAnother(t *testing.T) {
	one, two := says(t, "one"), says(t, "two")
	m := newManager(t)
	gateway, _ := m.start(m.settings(one))
	m.hears("READY=1")
	if got := get(t, m.clients); got != "one" {
		t.Fatalf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "gateway.toml"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+m.admins+"/reload", "", nil)
	if err != nil || resp.StatusCode != http.StatusUnprocessableEntity {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	m.hears("RELOADING=1\nMONOTONIC_USEC=")
	m.hears("READY=1")

	if err := gateway.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	m.hears("STOPPING=1")
	if err := gateway.Wait(); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", m.clients) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	m.start(m.settings(two))
	m.hears("READY=1")
	_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
	if answer, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(answer), "two") {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestASocketThatNoListenerWantsIsTold(t *testing.T) {
	m := newManager(t)
	spare := m.listen()
	_, log := m.start(m.settings(says(t, "one")))
	lines := bufio.NewScanner(log)
	told := func(address string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), "a socket was passed") {
				if !strings.Contains(lines.Text(), address) {
					t.Errorf("not of %s: %s", address, lines.Text())
				}
				return
			}
		}
		t.Fatal("nothing was said")
	}
	told(spare)
	m.hears("READY=1")
	was := m.clients
	m.clients = spare
	if err := os.WriteFile(filepath.Join(m.dir, "gateway.toml"), []byte(m.settings(says(t, "two"))), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+m.admins+"/reload", "", nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	told(was)
	if got := get(t, spare); got != "two" {
		t.Errorf("the listener that moved answers %q", got)
	}
}

func says(t *testing.T, text string) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) }))
	t.Cleanup(s.Close)
	return s.URL
}

func get(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSocketsBeyondMeasureAreRefused(t *testing.T) {
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	for _, n := range []string{"1025", "99999999999"} {
		t.Setenv("LISTEN_FDS", n)
		if _, err := passedSockets(); err == nil || !strings.Contains(err.Error(), "LISTEN_FDS is "+n) {
			t.Errorf("%s: %v", n, err)
		}
	}
}
