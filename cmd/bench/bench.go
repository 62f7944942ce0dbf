package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one comparison.
type bench struct {
	rounds      int
	span        time.Duration
	connections int
	moongate    string

	dir   string // scratch: nginx's files
	token string // what the full case is let in with
}

// secret is what the full case signs with, in nginx's configuration and in conf/examples/bench-full alike.
const secret = "mini-gateway-demo-secret-key-please-change-me-32bytes"

// run measures the cases and prints a table.
func (b *bench) run(names []string) error {
	if len(names) == 0 {
		names = []string{"plain", "large", "lua", "full"}
	}
	for _, tool := range []string{"nginx", "wrk", "taskset", b.moongate} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("needs %s: %w", tool, err)
		}
	}
	dir, err := os.MkdirTemp("", "moongate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	token, err := exec.Command(b.moongate, "token", "--secret", secret, "--user", "tom", "--role", "admin", "--expires", "24h").Output()
	if err != nil {
		return fmt.Errorf("moongate token: %w", err)
	}
	b.token = strings.TrimSpace(string(token))
	if err := b.writeLarge(); err != nil {
		return err
	}
	upstream, err := b.startNginx("upstream", loadCPU)
	if err != nil {
		return err
	}
	defer upstream.stop()
	fmt.Println("| case | gateway | CPU us/request (least-most) | against nginx | requests/s | p99 | RSS MiB |\n|---|---|---|---|---|---|---|")
	for _, name := range names {
		if err := b.compare(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// writeLarge makes the answer of the large case. nginx's worker, another user perhaps, must be able to read it.
func (b *bench) writeLarge() error {
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	root := filepath.Join(b.dir, "upstream")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "large"), make([]byte, 1<<20), 0o644)
}

// contender is one gateway of a case.
type contender struct {
	name  string
	port  int
	start func() (*process, error)
}

// contenders are who does the work of a case; the first is what the others are compared with.
func (b *bench) contenders(name string) ([]contender, error) {
	if name == "large" { // other answers to the same configuration
		return b.contenders("plain")
	}
	nginx := contender{"nginx", nginxPort, func() (*process, error) { return b.startNginx(name, gatewayCPU) }}
	moongate := contender{"moongate", moongatePort, func() (*process, error) {
		return start(gatewayCPU, filepath.Join(b.dir, "moongate.log"), b.moongate, "run", "-c", filepath.Join("conf/examples", "bench-"+name, "gateway.toml"))
	}}
	switch name {
	case "plain":
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		proxy := contender{"ReverseProxy", reverseProxyPort, func() (*process, error) {
			return start(gatewayCPU, filepath.Join(b.dir, "reverseproxy.log"), self, reverseProxyVerb, address(reverseProxyPort), "http://"+address(upstreamPort))
		}}
		return []contender{nginx, proxy, moongate}, nil
	case "lua", "full":
		nginx.name = "nginx + LuaJIT"
		return []contender{nginx, moongate}, nil
	}
	return nil, fmt.Errorf("unknown case: there are plain, large, lua, full")
}

// compare measures the contenders of a case in turns and prints a line for each.
func (b *bench) compare(name string) error {
	who, err := b.contenders(name)
	if err != nil {
		return err
	}
	results := make([][]result, len(who))
	for range b.rounds {
		for i, c := range who {
			r, err := b.measure(c, name)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	base := median(results[0]).cpu
	for i, c := range who {
		slices.SortFunc(results[i], func(a, b result) int { return cmp.Compare(a.cpu, b.cpu) })
		m, least, most := median(results[i]), results[i][0], results[i][b.rounds-1]
		fmt.Printf("| %s | %s | %.1f (%.1f-%.1f) | x%.2f | %.0f | %s | %.0f |\n", name, c.name,
			micros(m.cpu), micros(least.cpu), micros(most.cpu), float64(m.cpu)/float64(base), m.rate, m.p99, m.rss)
	}
	return nil
}

// measure runs one contender alone and puts it under load.
func (b *bench) measure(c contender, name string) (result, error) {
	p, err := c.start()
	if err != nil {
		return result{}, err
	}
	defer p.stop()
	if err := p.listens(c.port); err != nil {
		return result{}, err
	}
	load := wrk{url: "http://" + address(c.port) + "/api/user/123", connections: b.connections}
	switch name {
	case "large":
		load.url = "http://" + address(c.port) + "/large"
	case "full":
		load.header = "Authorization: Bearer " + b.token
	}
	if _, err := load.run(time.Second); err != nil { // connections, pools and caches
		return result{}, err
	}
	before, err := p.cpu()
	if err != nil {
		return result{}, err
	}
	answered, err := load.run(b.span)
	if err != nil {
		return result{}, err
	}
	after, err := p.cpu()
	if err != nil {
		return result{}, err
	}
	return result{
		cpu:  (after - before) / time.Duration(answered.requests),
		rate: float64(answered.requests) / b.span.Seconds(),
		p99:  answered.p99,
		rss:  p.rss(),
	}, nil
}

// result is one measurement.
type result struct {
	cpu  time.Duration // of the gateway, for one request
	rate float64       // requests in a second
	p99  string
	rss  float64 // MiB
}

func median(list []result) result {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b result) int { return cmp.Compare(a.cpu, b.cpu) })
	return sorted[len(sorted)/2]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
