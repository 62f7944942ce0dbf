package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// h2load is the load over HTTP/2 without TLS.
type h2load struct {
	url     string
	streams int // in all
}

// streamsEach is how many streams a connection carries at once.
const streamsEach = 8

var h2loadRequests = regexp.MustCompile(`requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, 0 failed, 0 errored, 0 timeout`)

// run puts the url under load. Any answer but 2xx is an error.
func (h h2load) run(span time.Duration) (answered, error) {
	out, err := exec.Command("taskset", "-c", loadCPU, "h2load", "-t1", fmt.Sprintf("-c%d", max(h.streams/streamsEach, 1)), fmt.Sprintf("-m%d", streamsEach),
		fmt.Sprintf("-D%d", int(span.Seconds())), h.url).CombinedOutput()
	if err != nil {
		return answered{}, fmt.Errorf("h2load: %w: %s", err, out)
	}
	m := h2loadRequests.FindSubmatch(out)
	if m == nil || string(m[1]) != string(m[2]) {
		return answered{}, fmt.Errorf("h2load said %s", out)
	}
	n, err := strconv.ParseInt(string(m[2]), 10, 64)
	if err != nil || n == 0 {
		return answered{}, fmt.Errorf("h2load was answered %s requests", m[2])
	}
	return answered{requests: n, p99: "-"}, nil
}
