// Package redistest gives tests a Redis: a [Fake] that misbehaves as it is told, and real servers, which need redis-server.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fake is a server that speaks the protocol and does what a test says. It is safe for concurrent use.
type Fake struct {
	// Address is host:port, the same over Down and Up.
	Address string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	silent   bool
	delay    time.Duration
	slow     map[string]time.Duration
	answer   func(args []string) string
	seen     int
	work     sync.WaitGroup
	closed   chan struct{}
}

// NewFake starts a server that answers PING, GET and EXISTS. It ends with the test.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{conns: map[net.Conn]struct{}{}, slow: map[string]time.Duration{}, closed: make(chan struct{})}
	f.Address = "127.0.0.1:0"
	if err := f.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(f.closed)
		f.Down()
		f.work.Wait()
	})
	return f
}

// Up listens, again after Down.
func (f *Fake) Up() error {
	l, err := net.Listen("tcp", f.Address)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.listener, f.Address = l, l.Addr().String()
	f.mu.Unlock()
	f.work.Go(func() { f.accept(l) })
	return nil
}

// Down refuses connections and cuts those there are.
func (f *Fake) Down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.listener.Close()
	for c := range f.conns {
		_ = c.Close()
	}
}

// Silence makes the server swallow what comes, or answer again: on new connections, for those that it swallowed from stay silent, as those do
// that a firewall has forgotten.
func (f *Fake) Silence(is bool) { f.change(func() { f.silent = is }) }

// Delay makes every answer wait.
func (f *Fake) Delay(d time.Duration) { f.change(func() { f.delay = d }) }

// Slow makes answers wait that are about a key. Answers behind them wait too.
func (f *Fake) Slow(key string, d time.Duration) { f.change(func() { f.slow[key] = d }) }

// Answer says how commands are answered, in the protocol's own form ("+OK\r\n"); "" leaves it to the server.
func (f *Fake) Answer(answer func(args []string) string) { f.change(func() { f.answer = answer }) }

// Seen is how many commands have come, without those that begin a connection, and without PING, which clients send of themselves when a connection has rested.
func (f *Fake) Seen() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// Conns is how many connections are open.
func (f *Fake) Conns() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

func (f *Fake) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

func (f *Fake) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		f.change(func() { f.conns[c] = struct{}{} })
		f.work.Go(func() {
			f.serve(c)
			_ = c.Close()
			f.change(func() { delete(f.conns, c) })
		})
	}
}

func (f *Fake) serve(c net.Conn) {
	r, dead := bufio.NewReader(c), false
	for {
		args, err := read(r)
		if err != nil {
			return
		}
		text, wait, silent := f.reply(args)
		if dead = dead || silent; dead {
			continue
		}
		select {
		case <-time.After(wait):
		case <-f.closed:
			return
		}
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// reply says what is answered, and when.
func (f *Fake) reply(args []string) (text string, wait time.Duration, silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.ToUpper(args[0])
	switch name {
	case "HELLO":
		return "-ERR unknown command 'HELLO'\r\n", 0, f.silent
	case "CLIENT", "AUTH", "SELECT":
		return "+OK\r\n", 0, f.silent
	}
	if name != "PING" {
		f.seen++
	}
	wait = f.delay
	for _, a := range args {
		wait = max(wait, f.slow[a])
	}
	if f.answer != nil {
		if text = f.answer(args); text != "" {
			return text, wait, f.silent
		}
	}
	switch name {
	case "PING":
		text = "+PONG\r\n"
	case "GET":
		text = Bulk("value of " + args[1])
	case "EVAL", "EXISTS":
		text = ":0\r\n"
	default:
		text = "-ERR unknown command\r\n"
	}
	return text, wait, f.silent
}

// Bulk is a string as the protocol has it.
func Bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// read reads one command.
func read(r *bufio.Reader) ([]string, error) {
	n, err := number(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := number(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func number(r *bufio.Reader, sign byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != sign {
		return 0, fmt.Errorf("%q does not begin with %c", line, sign)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
