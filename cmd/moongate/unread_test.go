package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The program that reads the access log from a pipe may end: its lines are lost then, and nothing else.
func TestTheGatewayOutlivesWhoReadsItsLog(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"scripts/log.lua": `return { stage = "log", on_log = function(entry) entry:write() end }`,
		"gateway.toml": `
[[route]]
name = "all"
path = "/**"
upstream = "http://127.0.0.1:1"
`} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	told := newTranscript()
	cmd := exec.Command(self)
	cmd.Args = []string{"moongate", "run", "-c", "gateway.toml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, writer, told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var code error
	go func() {
		defer close(ended)
		code = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	_ = writer.Close()
	_ = reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	says := func(text string) {
		t.Helper()
		if !told.await(ctx, ended, func(all string) bool { return strings.Contains(all, text) }) {
			t.Fatalf("it does not say %q but\n%s", text, told.String())
		}
	}
	says("admin on ")
	url := "http://" + servingLine.FindStringSubmatch(told.String())[1]
	client := &http.Client{Transport: &http.Transport{}, Timeout: 4 * patience}
	t.Cleanup(client.CloseIdleConnections)
	get := func() {
		t.Helper()
		resp, err := client.Get(url + "/")
		if err != nil {
			t.Fatalf("%v\n%s", err, told.String())
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusBadGateway {
			t.Fatalf("%d, %v", resp.StatusCode, err)
		}
	}
	get()
	says("access log cannot be written")
	get()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatalf("it did not end:\n%s", told.String())
	}
	if code != nil {
		t.Errorf("it ended with %v:\n%s", code, told.String())
	}
}
