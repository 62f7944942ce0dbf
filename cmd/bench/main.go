// Command bench measures what one request costs: the CPU time of nginx, of httputil.ReverseProxy and of Moongate doing the same work,
// side by side in one interleaved run; and what memory a connection costs that nothing happens on.
//
//	bench [-n ROUNDS] [-s SECONDS] [-c CONNECTIONS] [-held CONNECTIONS] [-moongate FILE] [CASE...]      default: all cases
//
//	plain       a proxy over kept connections, answers of 200 bytes      large   answers of 1 MiB
//	tls         plain over TLS 1.3, connections kept                     h2      plain over HTTP/2 without TLS, 8 streams a connection
//	handshake   a new TLS 1.3 connection for each request                lua     one trivial Lua filter
//	full        the full pipeline                                        jwks    the same, Moongate with a set of public keys (RS256)
//	idle        kept connections at rest                                 websockets   open WebSockets at rest, over HTTP/1.1
//	websockets-mixed   a fifth of them over HTTP/2                       websockets-h2   all of them
//
// Each gateway runs alone on CPU 0 with one worker, the load (wrk, h2load, this program) and the upstream (nginx) share CPU 1. What counts is
// user and system time of the gateway's processes over the run, divided by the requests that were answered: that holds on a busy machine,
// where throughput does not. Any answer but 2xx makes the run fail. It needs Linux with two CPUs, taskset, wrk, h2load, and nginx with the Lua
// module and lua-cjson; those that rest need taskset alone. It is started from the top of the checkout, for it reads conf/examples/bench-*.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) == 4 {
		switch os.Args[1] { // this program in another part
		case reverseProxyVerb:
			fail(reverseProxy(os.Args[2], os.Args[3]))
		case shakerVerb:
			fail(shake(os.Args[2], os.Args[3]))
		case socketsVerb:
			fail(serveSockets(os.Args[2]))
		}
	}
	rounds := flag.Int("n", 3, "rounds; the median counts")
	seconds := flag.Int("s", 4, "seconds of each measurement")
	connections := flag.Int("c", 64, "connections of the load")
	held := flag.Int("held", 10_000, "connections of idle, and WebSockets, as far as the limit of open files lets a gateway have them")
	binary := flag.String("moongate", "bin/moongate", "the gateway's `FILE`")
	flag.Parse()
	b := bench{rounds: *rounds, span: time.Duration(*seconds) * time.Second, connections: *connections, held: *held, moongate: *binary}
	fail(b.run(flag.Args()))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
