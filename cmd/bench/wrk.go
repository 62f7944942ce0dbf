package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// wrk is the load.
type wrk struct {
	url         string
	header      string
	connections int
}

// answered is what a load was answered.
type answered struct {
	requests int64
	p99      string
}

var (
	wrkRequests = regexp.MustCompile(`(\d+) requests in`)
	wrkFailed   = regexp.MustCompile(`Non-2xx or 3xx responses: \d+|Socket errors: .*[1-9].*`)
	wrkP99      = regexp.MustCompile(`99%\s+(\S+)`)
)

// run puts the url under load. Any answer but 2xx or 3xx is an error.
func (w wrk) run(span time.Duration) (answered, error) {
	args := []string{"-c", loadCPU, "wrk", "-t1", "--latency", "--timeout", "20s", fmt.Sprintf("-c%d", w.connections), fmt.Sprintf("-d%ds", int(span.Seconds()))}
	if w.header != "" {
		args = append(args, "-H", w.header)
	}
	out, err := exec.Command("taskset", append(args, w.url)...).CombinedOutput()
	if err != nil {
		return answered{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if failed := wrkFailed.Find(out); failed != nil {
		return answered{}, fmt.Errorf("wrk: %s", failed)
	}
	m := wrkRequests.FindSubmatch(out)
	if m == nil {
		return answered{}, fmt.Errorf("wrk said %s", out)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil || n == 0 {
		return answered{}, fmt.Errorf("wrk was answered %s requests", m[1])
	}
	a := answered{requests: n, p99: "?"}
	if m := wrkP99.FindSubmatch(out); m != nil {
		a.p99 = string(m[1])
	}
	return a, nil
}
