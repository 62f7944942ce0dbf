// Package gateway is the whole: it takes each exchange through match, stages, upstream and answer, and swaps one generation for the next.
// It answers one question: what happens to a request?
//
// serve.go is one request's way, on one screen. fail.go is the only place where a breakage becomes an answer. build.go turns a configuration
// into a [Generation]; reload.go puts it in the place of the one before. What a script is, the gateway does not know: whoever joins
// the parts hands it a [PipelineBuilder].
package gateway

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/server"
	"github.com/moongate/moongate/metrics"
)

// Options are what a gateway is made of. All fields but Pipeline and Passed are required.
type Options struct {
	Load     func() (*conf.Config, error) // reads the configuration and its scripts as one snapshot
	Pipeline PipelineBuilder              // nil: no filters
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Access   *AccessLog
	Passed   *server.Passed // sockets for listeners with their addresses; nil: none

	// Faults says what is wrong with the scripts of a configuration that is wrong elsewhere, so that all is told at once; nil: nothing.
	Faults func(*conf.Config) conf.Errors

	// Prepare lets whoever joins the parts change what it keeps itself (the admin listener, the logs) together with the generation: it
	// makes ready what can fail and returns what makes it so. nil: nothing.
	Prepare func(*Generation) (commit func(), err error)
}

// PipelineBuilder makes the filters of a generation. Errors name places in the configuration or in scripts.
type PipelineBuilder func(Parts) (Built, error)

// Parts are what a pipeline is made from: a generation's own.
type Parts struct {
	Config   *conf.Config
	Routes   []*core.Route // with their ids
	Services core.Services
	Metrics  *metrics.Plan
}

// Built is a pipeline with what the gateway must know of it.
type Built struct {
	core.Pipeline
	Identity []string       // headers that only filters may set
	Warnings conf.Errors    // what loads but is probably not meant
	Commit   func()         // makes it live: called once, when its generation is; may be nil
	Source   metrics.Source // tells a scrape of the filters; may be nil
}

// Gateway serves requests by its current generation. It is safe for concurrent use.
type Gateway struct {
	opts     Options
	current  atomic.Pointer[Generation]
	server   *server.Server
	failing  failLog
	cuts     cuts
	tunnels  tunnels
	outbound *outbound

	pending  atomic.Pointer[reload] // a reload that waits for the one under way
	draining atomic.Bool
	serving  sync.WaitGroup
	rested   int64 // of the server, when memory was last given back; Run's own

	reloading sync.Mutex                  // held by the reload under way
	listeners map[string]*server.Listener // by place
	running   bool                        // listeners are being served
}

// Generation is the generation that serves new requests.
func (g *Gateway) Generation() *Generation { return g.current.Load() }

// Addresses are what the gateway listens on, in the order of the configuration.
func (g *Gateway) Addresses() []string {
	var list []string
	for _, u := range g.URLs() {
		if _, address, ok := strings.Cut(u, "://"); ok {
			u = address
		}
		list = append(list, u)
	}
	return list
}

// URLs are the addresses with their schemes; those of Unix sockets stand as they are.
func (g *Gateway) URLs() []string {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	var list []string
	gen := g.current.Load()
	for _, place := range places(gen.config) {
		scheme := "http://"
		if gen.tls[place] != nil {
			scheme = "https://"
		}
		if open := g.listeners[place]; open != nil {
			if open.Addr().Network() == "unix" {
				scheme = ""
			}
			list = append(list, scheme+open.Addr().String())
		}
	}
	return list
}

// Server is the leg to the clients; for its counters.
func (g *Gateway) Server() *server.Server { return g.server }
