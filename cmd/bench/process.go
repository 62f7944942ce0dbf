package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Who runs where.
const (
	gatewayCPU = "0"
	loadCPU    = "1"
)

// The ports of a run. Moongate's and the upstream's stand in conf/examples/bench-* too.
const (
	moongatePort     = 21080
	nginxPort        = 21070
	reverseProxyPort = 21075
	upstreamPort     = 21901
	socketsPort      = 21905
)

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// process is a program on one CPU, with its children.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// start runs a program on one CPU; what it prints goes to a file.
func start(cpu, log, name string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command("taskset", append([]string{"-c", cpu, name}, args...)...), log: log, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // it is ended by stop
	}()
	return p, nil
}

// listens waits until the program takes connections.
func (p *process) listens(port int) error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", address(port), time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			said, _ := os.ReadFile(p.log)
			return fmt.Errorf("ended by itself: %s", bytes.TrimSpace(said))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nobody listens: %w", err)
		}
	}
}

// stop ends the program and waits for its end.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(6 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// tick is the unit of CPU times in /proc: 100 a second on every Linux that Go runs on.
const tick = time.Second / 100

// cpu is the user and system time of the program and its children so far.
func (p *process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range family(p.cmd.Process.Pid) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			return 0, err
		}
		// The name, in brackets, may have blanks; after it field 12 and 13 are utime and stime (proc(5)).
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		user, err1 := strconv.ParseInt(fields[11], 10, 64)
		system, err2 := strconv.ParseInt(fields[12], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return 0, err
		}
		sum += time.Duration(user+system) * tick
	}
	return sum, nil
}

// rss is the resident memory of the program and its children in MiB.
func (p *process) rss() float64 {
	var pages int64
	for _, pid := range family(p.cmd.Process.Pid) {
		statm, err := os.ReadFile(filepath.Join("/proc", pid, "statm"))
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			pages += n
		}
	}
	return float64(pages*int64(os.Getpagesize())) / (1 << 20)
}

// family is a process with all its descendants.
func family(pid int) []string {
	all := []string{strconv.Itoa(pid)}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, family(n)...)
			}
		}
	}
	return all
}
