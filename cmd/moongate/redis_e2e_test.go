//go:build e2e

package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/moongate/moongate/core/redis/redistest"
)

// exampleGateway starts bin/moongate with conf/examples/redis-limit and gives its address.
func exampleGateway(t *testing.T, redis string) string {
	t.Helper()
	file, err := filepath.Abs("../../bin/moongate")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "run", "-c", "../../conf/examples/redis-limit/gateway.toml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	said := newTranscript()
	cmd.Env = append(os.Environ(), "REDIS_ADDR="+redis)
	cmd.Stderr, cmd.Stdout = said, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	redistest.Until(t, "the gateway serves", func() bool { return adminLine.MatchString(said.String()) }, said.String)
	return servingLine.FindStringSubmatch(said.String())[1]
}

// TestE2ETwoGatewaysGrantTenTogether runs the example as its head says.
func TestE2ETwoGatewaysGrantTenTogether(t *testing.T) {
	server := redistest.Start(t)
	gateways := []string{exampleGateway(t, server.Address), exampleGateway(t, server.Address)}
	var mu sync.Mutex
	answers := map[int]int{}
	var clients sync.WaitGroup
	for i := range 40 {
		clients.Go(func() {
			res, err := http.Get("http://" + gateways[i%2] + "/")
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close()
			mu.Lock()
			answers[res.StatusCode]++
			mu.Unlock()
		})
	}
	clients.Wait()
	if answers[200] != 10 || answers[429] != 30 {
		t.Errorf("answers %v, want 10 of 200 and 30 of 429", answers)
	}
	server.Kill()
	for _, address := range gateways {
		res, err := http.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		if _ = res.Body.Close(); res.StatusCode != 503 {
			t.Errorf("without its Redis: %d, want 503", res.StatusCode)
		}
	}
	server.Restart()
	redistest.Until(t, "they serve again", func() bool {
		res, err := http.Get("http://" + gateways[0] + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode == 200
	}, func() string { return "" })
}
