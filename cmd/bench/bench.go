package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run.
type bench struct {
	rounds      int
	span        time.Duration
	connections int
	held        int // connections that are held
	moongate    string

	dir      string // scratch: nginx's files
	token    string // what the full case is let in with
	keyToken string // what the jwks case is let in with, here
}

// secret is what the full case signs with, in nginx's configuration and in conf/examples/bench-full alike.
const secret = "mini-gateway-demo-secret-key-please-change-me-32bytes"

// The cases: those that are compared, and those in which connections are held.
var (
	compared = []string{"plain", "large", "tls", "handshake", "h2", "lua", "full", "jwks"}
	holding  = []string{"idle", "websockets", "websockets-mixed", "websockets-h2"}
)

// run measures the cases and prints a table, and another of those in which connections are held.
func (b *bench) run(names []string) error {
	var compare, hold []string
	for _, name := range names {
		switch {
		case slices.Contains(compared, name):
			compare = append(compare, name)
		case slices.Contains(holding, name):
			hold = append(hold, name)
		default:
			return fmt.Errorf("unknown case %s: there are %s", name, strings.Join(slices.Concat(compared, holding), ", "))
		}
	}
	if len(names) == 0 {
		compare, hold = compared, holding
	}
	dir, err := os.MkdirTemp("", "moongate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if err := b.needs("taskset", b.moongate); err != nil {
		return err
	}
	if len(compare) > 0 {
		if err := b.compareAll(compare); err != nil {
			return err
		}
	}
	if len(hold) > 0 {
		return b.holdAll(hold)
	}
	return nil
}

func (b *bench) needs(tools ...string) error {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("needs %s: %w", tool, err)
		}
	}
	return nil
}

func (b *bench) compareAll(names []string) error {
	if err := b.needs("nginx", "wrk"); err != nil {
		return err
	}
	if slices.Contains(names, "h2") {
		if err := b.needs("h2load"); err != nil {
			return err
		}
	}
	token, err := exec.Command(b.moongate, "token", "--secret", secret, "--user", "tom", "--role", "admin", "--expires", "24h").Output()
	if err != nil {
		return fmt.Errorf("moongate token: %w", err)
	}
	b.token = strings.TrimSpace(string(token))
	if err := errors.Join(b.writeLarge(), b.writeCertificate(), b.writeKeySet()); err != nil {
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
	theirs, ours := name, name // configurations
	switch name {
	case "large": // other answers to the same
		theirs, ours = "plain", "plain"
	case "handshake":
		theirs, ours = "tls", "tls"
	case "h2":
		ours = "plain" // which speaks both
	case "jwks":
		theirs = "full"
	}
	nginx := contender{"nginx", nginxPort, func() (*process, error) { return b.startNginx(theirs, gatewayCPU) }}
	moongate := contender{"moongate", moongatePort, func() (*process, error) { return b.startMoongate(ours) }}
	switch name {
	case "plain", "large":
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		proxy := contender{"ReverseProxy", reverseProxyPort, func() (*process, error) {
			return start(gatewayCPU, filepath.Join(b.dir, "reverseproxy.log"), self, reverseProxyVerb, address(reverseProxyPort), "http://"+address(upstreamPort))
		}}
		return []contender{nginx, proxy, moongate}, nil
	case "lua", "full", "jwks":
		nginx.name = "nginx + LuaJIT"
	}
	return []contender{nginx, moongate}, nil
}

func (b *bench) startMoongate(example string) (*process, error) {
	root := "conf/examples"
	if example == "jwks" {
		root = b.dir
	}
	return start(gatewayCPU, filepath.Join(b.dir, "moongate.log"), b.moongate, "run", "-c", filepath.Join(root, "bench-"+example, "gateway.toml"))
}

// load puts a gateway to work.
type load interface {
	run(span time.Duration) (answered, error)
}

// load is what a case asks of whoever listens on the port.
func (b *bench) load(name string, port int) load {
	plain := wrk{url: "http://" + address(port) + "/api/user/123", connections: b.connections}
	switch name {
	case "large":
		plain.url = "http://" + address(port) + "/large"
	case "full":
		plain.header = "Authorization: Bearer " + b.token
	case "jwks":
		plain.header = "Authorization: Bearer " + b.token
		if port == moongatePort {
			plain.header = "Authorization: Bearer " + b.keyToken
		}
	case "tls":
		plain.url = "https://" + address(port) + "/api/user/123"
	case "handshake":
		return shaker{address(port)}
	case "h2":
		return h2load{plain.url, b.connections}
	}
	return plain
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
	load := b.load(name, c.port)
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
