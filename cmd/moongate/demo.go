package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// defaultDemoPort is the port below the demo's first one; $DEMO_PORT says another.
const defaultDemoPort = 9000

func demoVerb() verb {
	return verb{
		name: "demo",
		does: "serve the upstreams that the shipped configuration is tried on",
		about: `usage: moongate demo [-c FILE]

Serves the demo upstreams on 127.0.0.1, as "moongate run --demo" does, and nothing else:

  base+1 +2 +3    user-service-1 to 3      answer with what they got: method, path, headers
  base+11 +12     order-service-1 and 2    the same
  base+21         canary                   the same
  base+31         login                    /login?user=tom[&role=admin] answers a token, signed HS256
  base+41         nobody                   so that a refused connection can be seen
  base+51         slow                     answers after 5 seconds

base is $DEMO_PORT, 9000 when it is not set; the shipped gateway.toml reads the same variable. Tokens are signed with the
secret that the jwt filter of the configuration verifies with.`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			return func(s streams) error {
				secret, err := tokenSecret(*file)
				if err != nil {
					return err
				}
				ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				d, err := openDemo(string(secret))
				if err != nil {
					return err
				}
				for _, e := range d.services {
					fmt.Fprintf(s.err, "%-16s http://127.0.0.1:%d\n", e.name, e.port)
				}
				return d.run(ctx)
			}
		},
	}
}

// demo is the set of upstreams to try the gateway on. They listen from openDemo on and serve while run does.
type demo struct {
	base     int
	services []service
}

// service is one demo upstream.
type service struct {
	name     string
	port     int
	server   *http.Server
	listener net.Listener
}

// openDemo binds every port of the demo. secret signs the tokens of the login service.
func openDemo(secret string) (*demo, error) {
	base, err := demoPort()
	if err != nil {
		return nil, err
	}
	d := &demo{base: base}
	for i := 1; i <= 3; i++ {
		d.add(i, fmt.Sprintf("user-service-%d", i), echo)
	}
	for i := 1; i <= 2; i++ {
		d.add(10+i, fmt.Sprintf("order-service-%d", i), echo)
	}
	d.add(21, "canary", echo)
	d.add(31, "login", func(string, int) http.Handler { return login([]byte(secret)) })
	d.add(51, "slow", slow)
	return d, d.listen()
}

func (d *demo) add(offset int, name string, make func(name string, port int) http.Handler) {
	port := d.base + offset
	d.services = append(d.services, service{name: name, port: port, server: &http.Server{
		Handler:           make(name, port),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
	}})
}

func (d *demo) listen() error {
	for i := range d.services {
		s := &d.services[i]
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
		if err != nil {
			d.close()
			return fmt.Errorf("the demo's %s: %w; DEMO_PORT=%d moves the demo's ports", s.name, err, d.base+100)
		}
		s.listener = ln
	}
	return nil
}

// close gives the ports of a demo that never ran back.
func (d *demo) close() {
	for _, s := range d.services {
		if s.listener != nil {
			s.listener.Close()
		}
	}
}

// run serves until ctx ends, which is no error, or a listener breaks.
func (d *demo) run(ctx context.Context) error {
	var running sync.WaitGroup
	broken := make(chan error, len(d.services))
	for _, s := range d.services {
		running.Go(func() {
			if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("the demo's %s: %w", s.name, err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	for _, s := range d.services {
		s.server.Close()
	}
	running.Wait()
	return err
}

// demoPort is the port below the demo's first one.
func demoPort() (int, error) {
	text := env("DEMO_PORT", strconv.Itoa(defaultDemoPort))
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535-51 {
		return 0, fmt.Errorf("DEMO_PORT=%s: wants a port number of at most %d", text, 65535-51)
	}
	return port, nil
}
