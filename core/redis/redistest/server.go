package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a real redis-server of its own, with no data to begin with.
type Server struct {
	Address string
	// SecureAddress is where it speaks TLS; "" when it does not.
	SecureAddress string

	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
	out  *output
}

// patience is how long anything may take on a busy machine.
const patience = 60 * time.Second

// Start starts a server on a free port of loopback, with settings as its command line takes them. It ends with the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: settings, Address: freeAddress(t)}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the server anew at its address, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(s.Address)
	args := append([]string{"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, s.args...)
	s.run(args)
}

// run starts redis-server and waits until it answers.
func (s *Server) run(args []string) {
	s.t.Helper()
	s.out = &output{}
	s.cmd = exec.Command("redis-server", args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.out, s.out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	Until(s.t, "redis-server answers at "+s.Address, func() bool {
		said, _ := ask(s.Address, "PING")
		return said != ""
	}, s.out.String)
}

// Kill ends the server at once. Killing one that has ended does nothing.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Freeze stops the server in its tracks: the kernel still takes connections and bytes, nobody answers.
func (s *Server) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Do sends a command over a connection of its own and gives the answer's first line, without its type.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	said, err := ask(s.Address, args...)
	if err != nil {
		s.t.Fatalf("redis %v: %v", args, err)
	}
	return said
}

// StartCluster starts three masters that share the slots.
func StartCluster(t testing.TB) []*Server {
	t.Helper()
	nodes := make([]*Server, 3)
	for i := range nodes {
		nodes[i] = Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", port(freeAddress(t)), "--cluster-node-timeout", "5000")
	}
	args := []string{"--cluster", "create"}
	for _, n := range nodes {
		args = append(args, n.Address)
	}
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	for _, n := range nodes {
		Until(t, "the cluster is whole", func() bool {
			return strings.Contains(info(n.Address, "CLUSTER", "INFO"), "cluster_state:ok")
		}, n.out.String)
	}
	return nodes
}

// StartSentinel starts a master with a replica, and a Sentinel that watches them as "mymaster".
func StartSentinel(t testing.TB) (master, replica, sentinel *Server) {
	t.Helper()
	master = Start(t)
	host, port, _ := net.SplitHostPort(master.Address)
	replica = Start(t, "--replicaof", host+" "+port, "--repl-ping-replica-period", "1")
	Until(t, "the replica has its master", func() bool {
		return strings.Contains(info(replica.Address, "INFO", "replication"), "master_link_status:up")
	}, replica.out.String)
	sentinel = &Server{t: t, dir: t.TempDir(), Address: freeAddress(t)}
	_, own, _ := net.SplitHostPort(sentinel.Address)
	file := filepath.Join(sentinel.dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor mymaster %s %s 1\nsentinel down-after-milliseconds mymaster 500\n"+
		"sentinel failover-timeout mymaster 5000\n", own, host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sentinel.Kill)
	sentinel.run([]string{file, "--sentinel"})
	Until(t, "the sentinel knows the replica", func() bool {
		return strings.Contains(info(sentinel.Address, "SENTINEL", "replicas", "mymaster"), replica.port())
	}, sentinel.out.String)
	return master, replica, sentinel
}

func (s *Server) port() string { return port(s.Address) }

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// Until waits until done says so.
func Until(t testing.TB, what string, done func() bool, why func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s\n%s", what, why())
		}
	}
}

// ask sends a command and gives the first line of the answer.
func ask(address string, args ...string) (string, error) {
	text, err := exchange(address, args)
	line, _, _ := strings.Cut(text, "\r\n")
	return strings.TrimLeft(line, "+-:$"), err
}

// info sends a command and gives the whole answer.
func info(address string, args ...string) string {
	text, _ := exchange(address, args)
	return text
}

func exchange(address string, args []string) (string, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var cmd strings.Builder
	fmt.Fprintf(&cmd, "*%d\r\n", len(args))
	for _, a := range args {
		cmd.WriteString(Bulk(a))
	}
	if _, err := c.Write([]byte(cmd.String())); err != nil {
		return "", err
	}
	_ = c.(*net.TCPConn).CloseWrite() // the server answers, and hangs up
	var answer bytes.Buffer
	_, err = answer.ReadFrom(c)
	return answer.String(), err
}

// freeAddress finds a port that was free a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// output is what a program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
