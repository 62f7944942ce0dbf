//go:build e2e

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program is bin/moongate under load, as `make build` leaves it, seen from outside.
type program struct {
	t      *testing.T
	config string // file
	cmd    *exec.Cmd
	said   *transcript
	ended  chan struct{}
	addrs  []string // of the listeners, in order
	admin  string
}

// startBinary runs the program with a configuration; it ends, in good order, with the test.
func startBinary(t *testing.T, config string) *program {
	t.Helper()
	file, err := filepath.Abs("../../bin/moongate")
	if err != nil {
		t.Fatal(err)
	}
	b := &program{t: t, config: filepath.Join(t.TempDir(), "gateway.toml"), said: newTranscript(), ended: make(chan struct{})}
	b.write(config)
	b.cmd = exec.Command(file, "run", "-c", b.config, "--admin", "127.0.0.1:0")
	b.cmd.Stderr, b.cmd.Stdout = b.said, io.Discard
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.ended)
		_ = b.cmd.Wait() // the exit code is asked for in stop
	}()
	t.Cleanup(b.stop)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	if !b.said.await(ctx, b.ended, adminLine.MatchString) {
		t.Fatalf("moongate does not serve:\n%s", b.said)
	}
	for _, m := range regexp.MustCompile(`(?m)^serving on https?://(\S+)`).FindAllStringSubmatch(b.said.String(), -1) {
		b.addrs = append(b.addrs, m[1])
	}
	b.admin = adminLine.FindStringSubmatch(b.said.String())[1]
	return b
}

func (b *program) write(config string) {
	if err := os.WriteFile(b.config+".new", []byte(config), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(b.config+".new", b.config); err != nil {
		b.t.Fatal(err)
	}
}

func (b *program) stop() {
	_ = b.cmd.Process.Signal(os.Interrupt)
	select {
	case <-b.ended:
		if code := b.cmd.ProcessState.ExitCode(); code != 0 {
			b.t.Errorf("moongate ended with %d:\n%s", code, b.said)
		}
	case <-time.After(8 * patience):
		_ = b.cmd.Process.Kill()
		<-b.ended
		b.t.Errorf("moongate did not end:\n%s", b.said)
	}
}

// memory is a line of /proc/PID/status in bytes: VmRSS is what is resident, VmHWM the most that ever was.
func (b *program) memory(line string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	m := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		b.t.Fatalf("/proc has no %s", line)
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10
}

func (b *program) descriptors() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(list)
}

// ask asks the admin listener.
func (b *program) ask(method, path string) (string, error) {
	r, err := http.NewRequest(method, "http://"+b.admin+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 4 * patience}).Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	return string(text), err
}

// metric is the sum over all series of a name.
func (b *program) metric(name string) float64 {
	text, err := b.ask("GET", "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			fields := strings.Fields(line)
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				b.t.Fatalf("%s: %v", line, err)
			}
			sum += n
		}
	}
	return sum
}
