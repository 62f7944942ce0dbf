package luatest

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/luaapi"
)

// Bench is a pipeline of scripts without a gateway around it: requests go in at one end, and a Go function stands for all upstreams. A
// Bench is used by one goroutine; its Pipeline by any number.
type Bench struct {
	Pipeline *luaapi.Pipeline
	Config   *conf.Config
	Limits   *limit.Registry
	Shared   *luaapi.Shared
	Redis    *redis.Registry // whoever declares a [redis.NAME] closes it
	Auth     *auth.Registry  // run only where somebody calls its Run
	Timers   *luaapi.Timers  // run only where somebody calls its Run
	// Upstream answers what is forwarded; nil answers 200 without a body.
	Upstream func(Forwarded) Answer
	// Calls answers what filters ask with gw.http; nil answers 200 without a body. An answer with an Err is none.
	Calls func(Called) Answer
	// Called, Mirrored and Delayed are what filters asked for since the Bench was made: their calls, the upstreams that copies went to, and how
	// long requests were held back in all.
	Called   []Called
	Mirrored []string
	Delayed  time.Duration
	// Lines are the access lines that were written: the members that scripts added, "" for none.
	Lines []string

	mu        sync.Mutex // guards what filters ask for, which any number of goroutines may run
	routes    []*core.Route
	log       *lines
	x         core.Exchange
	upstreams map[string]*upstream
}

// Options are what a Bench is made of.
type Options struct {
	// Files are held in memory: "gateway.toml", "scripts/auth.lua", "scripts/lib/util.lua" and so on.
	Files map[string]string
	Env   map[string]string
	// Folder is where gw.file.read finds its files, on the disk; "" is nowhere.
	Folder string
	// Clock is that of limiters, gw.shared and gw.cache; nil is the system's.
	Clock func() time.Duration
	// Before hands over what survives a reload.
	Before *Bench
}

// New loads a configuration and builds its pipeline. The error is what a gateway would refuse to start with.
func New(o Options) (*Bench, error) {
	env := func(name string) (string, bool) {
		value, ok := o.Env[name]
		return value, ok
	}
	cfg, err := conf.Load("gateway.toml", conf.Options{Files: source.Map(o.Files), Env: env})
	if err != nil {
		return nil, err
	}
	b := &Bench{Config: cfg, log: new(lines), Redis: new(redis.Registry), Limits: new(limit.Registry), Auth: new(auth.Registry), Shared: luaapi.NewShared(instants(o.Clock))}
	if o.Before != nil {
		b.Limits, b.Redis, b.Auth, b.Shared, b.Timers, b.log = o.Before.Limits, o.Before.Redis, o.Before.Auth, o.Before.Shared, o.Before.Timers, o.Before.log
	}
	logger := slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if b.Timers == nil {
		b.Timers = luaapi.NewTimers(logger)
	}
	for i := range cfg.Routes {
		r := &cfg.Routes[i]
		b.routes = append(b.routes, &core.Route{ID: i + 1, Name: r.Name, Upstream: r.Upstream, MaxBody: r.HTTP.MaxBody, BodyBuffer: r.HTTP.BodyBuffer})
	}
	b.Pipeline, err = luaapi.Build(luaapi.Options{
		Config: cfg, Routes: b.routes, Services: services{b}, Limits: b.Limits, Redis: b.Redis, Auth: b.Auth, Shared: b.Shared, Timers: b.Timers, Clock: o.Clock,
		Folder: o.Folder, Log: logger,
	})
	if err != nil {
		return nil, err
	}
	b.Pipeline.Commit()
	return b, nil
}

// instants gives a clock as stores read it.
func instants(clock func() time.Duration) func() core.Instant {
	if clock == nil {
		return nil
	}
	return func() core.Instant { return core.Instant(clock()) + 1 }
}

// Route finds a route by name; nil when there is none.
func (b *Bench) Route(name string) *core.Route {
	for _, rt := range b.routes {
		if rt.Name == name {
			return rt
		}
	}
	return nil
}

// Log is what was logged since the last call, one JSON object a line.
func (b *Bench) Log() string { return b.log.take() }

// lines is a log's text. It is safe for concurrent use: timers log too.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Request is what a client sends.
type Request struct {
	Method   string      // GET when empty
	Target   string      // path and query; "/" when empty
	Headers  [][2]string // in order
	Body     string
	ClientIP string // 192.0.2.1 when empty
	Host     string // example.com when empty
	Route    string // name; the first route when empty, none when "-"
	Params   map[string]string
	TLS      *core.TLSInfo // nil: a plain connection
}

// Forwarded is what goes upstream.
type Forwarded struct {
	Upstream string
	Endpoint string // the one that a filter chose
	Method   string
	Path     string
	Query    string
	Host     string
	Headers  [][2]string
	Body     string
}

// Answer is a response.
type Answer struct {
	Status  int
	Headers [][2]string
	Body    string
	Source  string
	Err     error // what the gateway would log
}

// Header is the value of the first line of that name.
func (a Answer) Header(name string) string { return headerOf(a.Headers, name) }

// Header is the value of the first line of that name.
func (f Forwarded) Header(name string) string { return headerOf(f.Headers, name) }

func headerOf(lines [][2]string, name string) string {
	for _, line := range lines {
		if strings.EqualFold(line[0], name) {
			return line[1]
		}
	}
	return ""
}

// Do sends a request through all stages and gives what the client would see.
func (b *Bench) Do(r Request) Answer {
	x := b.Exchange(r)
	defer x.Reset()
	return b.Serve(x)
}

// Exchange makes the exchange of a request; the next call uses it again.
func (b *Bench) Exchange(r Request) *core.Exchange {
	x := &b.x
	x.Reset()
	x.Times.Start = core.Now()
	q := &x.Request
	q.Method, q.Scheme = or(r.Method, "GET"), "http"
	q.Host = []byte(or(r.Host, "example.com"))
	path, query, has := strings.Cut(or(r.Target, "/"), "?")
	q.RawPath, q.Path, q.RawQuery, q.HasQuery = []byte(path), []byte(path), []byte(query), has
	for _, line := range r.Headers {
		if !slices.ContainsFunc(b.Pipeline.Identity(), func(name string) bool { return strings.EqualFold(name, line[0]) }) {
			q.Header.Add(line[0], line[1])
		}
	}
	for name, value := range r.Params {
		q.Params = append(q.Params, core.Param{Name: name, Value: []byte(value)})
	}
	if r.Body != "" {
		q.Body.Attach(strings.NewReader(r.Body), int64(len(r.Body)))
	} else {
		q.Body.Attach(nil, 0)
	}
	q.TLS = r.TLS
	q.ClientIP = netip.MustParseAddr(or(r.ClientIP, "192.0.2.1"))
	q.RemoteAddr = netip.AddrPortFrom(q.ClientIP, 50000)
	x.RequestID, x.TraceID = []byte("request-1"), []byte("trace-1")
	switch r.Route {
	case "":
		x.Route = b.routes[0]
	case "-":
	default:
		x.Route = b.Route(r.Route)
	}
	return x
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Serve takes an exchange through the pipeline as the gateway does.
func (b *Bench) Serve(x *core.Exchange) Answer {
	stages := b.Pipeline.Stages(x.Route)
	err := b.request(x, stages)
	x.Reached = x.Turn
	for i := len(stages) - 1; i >= 0 && err == nil; i-- {
		err = stages[i].Response(x)
	}
	for i := len(stages) - 1; i >= 0 && err == nil; i-- {
		if s, ok := stages[i].(core.BodyStage); ok {
			err = s.StreamResponse(x)
		}
	}
	if err != nil && x.Err == nil {
		fail(x, err)
	}
	answer := seen(x)
	x.Times.Done = core.Now()
	for _, s := range stages {
		s.Log(x)
	}
	return answer
}

// request runs the request stages, and the upstream behind them.
func (b *Bench) request(x *core.Exchange, stages []core.Stage) error {
	if x.Route == nil {
		fail(x, core.Fail(404, "no route", nil))
		return nil
	}
	for _, s := range stages {
		reply, err := s.Request(x)
		switch {
		case err != nil:
			fail(x, err)
			return nil
		case reply != nil:
			apply(x, reply)
			return nil
		}
	}
	for i := range x.Mirrors {
		b.Mirrored = append(b.Mirrored, x.Mirrors[i].Upstream)
	}
	if err := b.forward(x, stages); err != nil {
		fail(x, err)
	}
	return nil
}

func (b *Bench) forward(x *core.Exchange, stages []core.Stage) error {
	q := &x.Request
	for _, s := range stages {
		if s, ok := s.(core.BodyStage); ok {
			if err := s.StreamRequest(x); err != nil {
				return err
			}
		}
	}
	f := Forwarded{Upstream: or(x.Upstream, x.Route.Upstream), Method: q.Method, Path: string(q.RawPath), Query: string(q.RawQuery), Host: string(q.Host)}
	if q.TargetPath != nil {
		f.Path = string(q.TargetPath)
	}
	if q.QuerySet {
		f.Query = string(q.TargetQuery)
	}
	if x.Endpoint != nil {
		f.Endpoint = x.Endpoint.String()
	}
	for _, h := range q.Header.Fields() {
		f.Headers = append(f.Headers, [2]string{string(h.Name), string(h.Value)})
	}
	body, err := q.Body.Buffer(64 << 20)
	if fault := (*core.Error)(nil); errors.As(err, &fault) {
		return err
	}
	f.Body = string(body)
	answer := Answer{Status: 200}
	if b.Upstream != nil {
		answer = b.Upstream(f)
	}
	w := &x.Response
	w.Status, w.Source = answer.Status, core.FromUpstream
	for _, line := range answer.Headers {
		w.Header.Add(line[0], line[1])
	}
	w.Body.Attach(strings.NewReader(answer.Body), int64(len(answer.Body)))
	return nil
}

func fail(x *core.Exchange, err error) {
	status, public := 500, "internal error"
	var e *core.Error
	if errors.As(err, &e) {
		status, public = e.Status, e.Public
	}
	x.Response.Header.Reset()
	var a *core.Answered
	if errors.As(err, &a) {
		apply(x, a.Reply)
		return
	}
	x.Err = err
	standard(x, core.FromGateway, status, public)
}

func standard(x *core.Exchange, source core.Source, status int, message string) {
	w := &x.Response
	w.Status, w.Source = status, source
	w.Header.Set("Content-Type", "application/json")
	text, _ := json.Marshal(message)
	w.Body.Replace([]byte(`{"code":` + strconv.Itoa(status) + `,"message":` + string(text) + `,"request_id":"` + string(x.RequestID) + "\"}\n"))
}

func apply(x *core.Exchange, r *core.Reply) {
	w := &x.Response
	w.Header.CopyFrom(&r.Header)
	if r.IsError {
		standard(x, r.Source, r.Status, r.Message)
		return
	}
	w.Status, w.Source = r.Status, r.Source
	w.Body.Replace(r.Body)
}

func seen(x *core.Exchange) Answer {
	w := &x.Response
	a := Answer{Status: w.Status, Source: w.Source.String(), Err: x.Err}
	for _, h := range w.Header.Fields() {
		a.Headers = append(a.Headers, [2]string{string(h.Name), string(h.Value)})
	}
	body, err := w.Body.Buffer(64 << 20)
	if a.Body = string(body); err != nil && a.Err == nil {
		a.Err = err
	}
	w.BodySent = int64(len(a.Body))
	return a
}
