package gateway_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// socketFile is a path for a Unix socket, short enough for the kernel.
func socketFile(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, name)
}

func dialUnix(t *testing.T, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc, bufio.NewReader(patiently{nc})
}

// also is a second listener, on a Unix socket: --listen replaces only the first.
func also(path string) string {
	return "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"unix:" + path + "\"\n"
}

func TestAUnixSocketIsServedAndGoesWithItsListener(t *testing.T) {
	path := socketFile(t, "gw")
	url, heads := recorder(t, ok)
	h := open(t, also(path)+"mode = \"0600\"\n"+route(url))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if got := h.Addresses(); len(got) != 2 || got[1] != "unix:"+path {
		t.Errorf("addresses are %v", got)
	}
	nc, r := dialUnix(t, path)
	for range 2 {
		send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\r\n")
		if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
			t.Fatalf("%q, %v", head, err)
		}
		expect(t, r, "ok")
		if head := <-heads; strings.Contains(head, "6.6.6.6") || !strings.Contains(head, "X-Forwarded-For: unknown\r\n") || !strings.Contains(head, "Forwarded: for=unknown;proto=http\r\n") {
			t.Errorf("the upstream got\n%s", head)
		}
	}
	h.write(also(path) + "mode = \"0666\"\n" + route(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("after the reload: %v, %v", info, err)
	}
	h.write(route(url))
	if _, err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestTrustedUnixPeersAreHeard(t *testing.T) {
	path := socketFile(t, "gw")
	url, heads := recorder(t, ok)
	open(t, also(path)+"[http]\ntrusted_proxies = [\"unix\", \"10.0.0.0/8\"]\n"+strings.Replace(route(url), "path = ", "client = [\"192.0.2.7\"]\npath = ", 1))
	nc, r := dialUnix(t, path)
	send(t, nc, "GET / HTTP/1.1\r\nHost: gw\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.1.1.1\r\nX-Forwarded-Proto: https\r\n\r\n")
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Fatalf("the route for client 192.0.2.7 did not take it: %q, %v", head, err)
	}
	if head := <-heads; !strings.Contains(head, "X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.1.1.1, unknown\r\n") || !strings.Contains(head, "X-Forwarded-Proto: https\r\n") {
		t.Errorf("the upstream got\n%s", head)
	}
}

func TestStaleSocketsAreReplacedAndNothingElseIs(t *testing.T) {
	url, _ := recorder(t, ok)
	stale := socketFile(t, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	h := open(t, also(stale)+route(url))
	dialUnix(t, stale)

	file := socketFile(t, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := socketFile(t, "taken")
	other, err := net.Listen("unix", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for path, want := range map[string]string{file: "there is a file that is no socket", taken: "another process listens there", filepath.Join(filepath.Dir(file), "no", "where"): "no such file or directory"} {
		h.write(also(path) + route(url))
		if _, err := h.Reload(); err == nil || !strings.Contains(err.Error(), "cannot listen on unix:"+path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("the file is %q, %v", data, err)
	}
	dialUnix(t, stale)
}

func TestAnothersSocketIsNotRemovedAtTheEnd(t *testing.T) {
	path := socketFile(t, "gw")
	url, _ := recorder(t, ok)
	h := open(t, also(path)+route(url))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	h.stop()
	for range h.ended {
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("the other's socket: %v, %v", info, err)
	}
}

func TestUpstreamsMayBeUnixSockets(t *testing.T) {
	path := socketFile(t, "app")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heads := make(chan string, 10)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				r := bufio.NewReader(nc)
				for {
					head, err := readHead(r)
					if err != nil {
						return
					}
					heads <- head
					_, _ = fmt.Fprintf(nc, "HTTP/1.1 302 Found\r\nLocation: http://localhost/next\r\nContent-Length: 200000\r\n\r\n%s", strings.Repeat("x", 200000))
				}
			}()
		}
	}()
	url := "unix:" + path
	for _, text := range []string{
		route(url),
		"[[upstream]]\nname = \"u\"\nendpoints = [{ url = \"" + url + "\", weight = 1 }]\n" + route("u"),
	} {
		h := open(t, text)
		nc, r := h.dial()
		for range 2 {
			send(t, nc, "GET /a HTTP/1.1\r\nHost: gw\r\n\r\n")
			if head, err := readHead(r); err != nil || !strings.Contains(head, "Location: http://gw/next\r\n") {
				t.Fatalf("%q, %v", head, err)
			}
			expect(t, r, strings.Repeat("x", 200000))
			if head := <-heads; !strings.Contains(head, "Host: localhost\r\n") {
				t.Errorf("the upstream got %s", head)
			}
		}
		h.wantMetric(`moongate_upstream_endpoint_ready{endpoint="` + url + `",upstream="` + map[bool]string{true: url, false: "u"}[strings.HasPrefix(text, "[[route")] + `"} 1`)
	}
}
