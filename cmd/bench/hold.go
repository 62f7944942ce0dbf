package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/moongate/moongate/core/server/h2test"
)

// holdAll measures what connections cost on which nothing happens, and prints a table. The clients are here, the gateway is alone in its
// process.
func (b *bench) holdAll(names []string) error {
	fmt.Println("\n| case | connections | KiB each | RSS MiB without | RSS MiB with |\n|---|---|---|---|---|")
	for _, name := range names {
		if err := b.hold(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// descriptors are how many files the gateway may have open.
func descriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1 << 10
	}
	return int(limit.Max)
}

// besides is how many files the gateway may need that are no connections of guests: listeners, pollers, logs, a script that is read.
const besides = 24

// hold opens the connections of a case, lets them rest, and asks all of them for a sign of life.
func (b *bench) hold(name string) error {
	n := min(b.held, descriptors()-besides)
	upstream, err := b.startSockets()
	if err != nil {
		return err
	}
	defer upstream.stop()
	gateway, err := b.startMoongate("held")
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := gateway.listens(moongatePort); err != nil {
		return err
	}
	var guests party
	defer guests.leave()
	open := openIdle
	if share, sockets := overHTTP2[name]; sockets {
		open, n = guests.opener(share), min(n, int(float64(descriptors()-besides)/(2-share+share/streams)))
	}
	if err := guests.come(200, open); err != nil { // what is needed once
		return err
	}
	guests.leave()
	without := settled(gateway)
	if err := guests.come(n, open); err != nil {
		return err
	}
	with := settled(gateway)
	if err := guests.speak(); err != nil {
		return err
	}
	fmt.Printf("| %s | %d | %.1f | %.1f | %.1f |\n", name, n, (with-without)*1024/float64(n), without, with)
	return nil
}

// settled waits until the memory of a process has stood still for some seconds.
func settled(p *process) float64 {
	least, still := p.rss(), 0
	for range 30 {
		<-time.After(time.Second)
		now := p.rss()
		if still++; now < least-0.1 || now > least+0.1 {
			still = 0
		}
		if least = now; still == 4 {
			break
		}
	}
	return least
}

// guest is an open connection. alive has it say something and be answered.
type guest struct {
	nc    net.Conn
	r     *bufio.Reader
	alive func(*guest) error
}

// party is all that are open.
type party struct {
	guests []*guest

	mu     sync.Mutex
	came   int            // of those that ask for a WebSocket
	shared []*h2test.Conn // of HTTP/2
	left   int            // streams that may still be opened on the last of them
}

// come opens n connections, a few at a time.
func (p *party) come(n int, open func() (*guest, error)) error {
	p.guests = make([]*guest, n)
	var doors sync.WaitGroup
	var mu sync.Mutex
	var fault error
	const atOnce = 50
	for door := range atOnce {
		doors.Go(func() {
			for i := door; i < n; i += atOnce {
				g, err := open()
				if err != nil {
					mu.Lock()
					fault = errors.Join(fault, fmt.Errorf("connection %d: %w", i, err))
					mu.Unlock()
					return
				}
				p.guests[i] = g
			}
		})
	}
	doors.Wait()
	return fault
}

// speak asks every one for a sign of life.
func (p *party) speak() error {
	for i, g := range p.guests {
		_ = g.nc.SetDeadline(time.Now().Add(10 * time.Second))
		if err := g.alive(g); err != nil {
			return fmt.Errorf("connection %d after its rest: %w", i, err)
		}
	}
	return nil
}

func (p *party) leave() {
	for _, g := range p.guests {
		if g != nil {
			_ = g.nc.Close()
		}
	}
	for _, c := range p.shared {
		_ = c.Close()
	}
	p.guests, p.shared, p.left, p.came = nil, nil, 0, 0
}

func dialGuest() (*guest, error) {
	nc, err := net.Dial("tcp", address(moongatePort))
	if err != nil {
		return nil, err
	}
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	return &guest{nc: nc, r: bufio.NewReaderSize(nc, 512)}, nil
}

// openIdle opens a connection and has one request answered on it.
func openIdle() (*guest, error) {
	g, err := dialGuest()
	if err != nil {
		return nil, err
	}
	g.alive = func(g *guest) error {
		if _, err := io.WriteString(g.nc, "GET /idle HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(g.r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return g, g.alive(g)
}
