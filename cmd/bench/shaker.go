package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// shakerVerb makes this program the load of full TLS handshakes, in a process of its own.
const shakerVerb = "shake"

// shaker is that load: each request comes on a new connection, whose handshake resumes nothing.
type shaker struct{ address string }

// shakers are so many at once; more only wait for each other.
const shakers = 16

func (s shaker) run(span time.Duration) (answered, error) {
	self, err := os.Executable()
	if err != nil {
		return answered{}, err
	}
	cmd := exec.Command("taskset", "-c", loadCPU, self, shakerVerb, s.address, span.String())
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return answered{}, fmt.Errorf("shaking hands: %w", err)
	}
	var a answered
	if _, err := fmt.Sscan(string(out), &a.requests, &a.p99); err != nil || a.requests == 0 {
		return answered{}, fmt.Errorf("shaking hands said %q", out)
	}
	return a, nil
}

// shake opens connections for a while and prints how many were answered and what 99 % of them took at most.
func shake(address, span string) error {
	d, err := time.ParseDuration(span)
	if err != nil {
		return err
	}
	until := time.Now().Add(d)
	var (
		hands sync.WaitGroup
		mu    sync.Mutex
		took  []time.Duration
		fault error
	)
	for range shakers {
		hands.Go(func() {
			for time.Now().Before(until) {
				begun := time.Now()
				err := shakeOnce(address)
				mu.Lock()
				took = append(took, time.Since(begun))
				fault = errors.Join(fault, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	hands.Wait()
	if fault != nil {
		return fault
	}
	slices.Sort(took)
	fmt.Println(len(took), took[len(took)*99/100].Round(10*time.Microsecond))
	return nil
}

// hands is what is offered: one version and one curve, so that all servers do the same work; and no session is kept.
var hands = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, NextProtos: []string{"http/1.1"}}

func shakeOnce(address string) error {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	_ = nc.(*net.TCPConn).SetLinger(0) // leaves no port behind that waits
	defer nc.Close()
	secure := tls.Client(nc, hands)
	if _, err := io.WriteString(secure, "GET /api/user/123 HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || secure.ConnectionState().DidResume {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}
