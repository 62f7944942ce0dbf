// Command bench measures what one request costs: the CPU time of nginx, of httputil.ReverseProxy and of Moongate doing the same work,
// side by side in one interleaved run.
//
//	bench [-n ROUNDS] [-s SECONDS] [-c CONNECTIONS] [-moongate FILE] [CASE...]      cases: plain large lua full (default: all)
//
// Each gateway runs alone on CPU 0 with one worker, the load (wrk) and the upstream (nginx) share CPU 1. What counts is user and system
// time of the gateway's processes over the run, divided by the requests that were answered: that holds on a busy machine, where
// throughput does not. Any answer but 2xx makes the run fail. It needs Linux with two CPUs, taskset, wrk, and nginx with the Lua
// module and lua-cjson. It is started from the top of the checkout, for it reads conf/examples/bench-*.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == reverseProxyVerb {
		fail(reverseProxy(os.Args[2], os.Args[3]))
	}
	rounds := flag.Int("n", 3, "rounds; the median counts")
	seconds := flag.Int("s", 4, "seconds of each measurement")
	connections := flag.Int("c", 64, "connections of the load")
	binary := flag.String("moongate", "bin/moongate", "the gateway's `FILE`")
	flag.Parse()
	b := bench{rounds: *rounds, span: time.Duration(*seconds) * time.Second, connections: *connections, moongate: *binary}
	fail(b.run(flag.Args()))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
