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
	"strings"
	"testing"
	"time"
)

// A gateway that has no descriptor left says so, and blames nobody: no endpoint goes out, no breaker opens.
func TestAGatewayWithoutDescriptorsBlamesNoEndpoint(t *testing.T) {
	const descriptors = 64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "well") }))
	up.Config.SetKeepAlivesEnabled(false) // each request needs a connection
	t.Cleanup(up.Close)
	m := newManager(t)
	settings := `[[listener]]
address = "127.0.0.1:0"
[admin]
address = "127.0.0.1:0"
[[upstream]]
name = "up"
endpoints = ["` + up.URL + `", "` + strings.Replace(up.URL, "127.0.0.1", "localhost", 1) + `"]
[upstream.health]
failures = 1
out = "1h"
[upstream.health.active]
interval = "1s"
unhealthy = 1
[upstream.breaker]
failures = 1
open = "1h"
[[route]]
name = "all"
path = "/**"
upstream = "up"
`
	if err := os.WriteFile(filepath.Join(m.dir, "gateway.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" run -c gateway.toml`, descriptors), m.program)
	gateway.Dir = m.dir
	stderr, err := gateway.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Process.Kill(); _ = gateway.Wait() })
	log := bufio.NewReader(stderr)
	line, err := log.ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), "serving on http://")
	if err != nil || !ok {
		t.Fatal(line, err)
	}
	go func() { _, _ = io.Copy(t.Output(), log) }()

	ask := func(nc net.Conn) (status int, body string) {
		t.Helper()
		_ = nc.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	dial := func() net.Conn {
		t.Helper()
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	first := dial()
	if status, body := ask(first); status != 200 {
		t.Fatal(status, body)
	}
	inUse := func() int {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", gateway.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	var crowd []net.Conn
	for range descriptors {
		crowd = append(crowd, dial())
	}
	for deadline, busy := time.Now().Add(time.Minute), 0; busy < 3; {
		switch status, body := ask(first); {
		case status == 503 && strings.Contains(body, "gateway is busy"):
			busy++
		case status != 200: // a check may just have let go of a descriptor
			t.Fatalf("with no descriptor left: %d %s", status, body)
		case time.Now().After(deadline):
			t.Fatalf("%d descriptors are in use, and requests find one", inUse())
		}
	}
	for _, nc := range crowd {
		nc.Close()
	}
	for deadline := time.Now().Add(time.Minute); inUse() > descriptors/2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are still in use", inUse())
		}
	}
	for range 2 {
		if status, body := ask(first); status != 200 {
			t.Errorf("with room again: %d %s", status, body)
		}
	}
}
