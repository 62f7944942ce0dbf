package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"github.com/moongate/moongate/core/auth/ldaptest"
)

// patience is how long a script waits for what must come.
const patience = time.Minute

// world is what one script has started and seen. The script's goroutine owns it.
type world struct {
	t         testing.TB
	gateway   *process
	upstreams map[string]*stub
	come      chan []answer // answers of a question in the background
	answers   []answer
	series    []string // of /metrics, as remembered
	load      *load
	provider  *provider
	directory *ldaptest.Server
	redis     *sets
	sockets   map[string]*webSocket
}

type worldKey struct{}

func newWorld(env *testscript.Env) *world {
	return &world{t: env.T().(testing.TB), upstreams: map[string]*stub{}}
}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// end stops whatever the script left running.
func (w *world) end() {
	if w.load != nil {
		w.load.stop()
	}
	for _, s := range w.sockets {
		_ = s.below.Close()
	}
	if w.gateway != nil {
		w.gateway.kill()
	}
	for _, u := range w.upstreams {
		u.server.Close()
	}
	if w.provider != nil {
		w.provider.close()
	}
	if w.directory != nil {
		w.directory.Close()
	}
}

// stub is an upstream that a script started. It answers with the request that it got, or with what it was told.
type stub struct {
	name   string
	status int
	delay  time.Duration
	header http.Header
	body   []byte // nil: the request
	socket string // not empty: offers to switch to WebSocket are taken, and each message comes back with that before it

	server *httptest.Server
	health atomic.Int64 // status at /health, where checks ask
	checks atomic.Int64
	hits   atomic.Int64           // of everything else
	got    atomic.Pointer[[]byte] // the last request, as an echo shows it
}

func upstreamCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: upstream NAME [status=N] [delay=D] [body=TEXT|file=FILE] [socket=TEXT] [Name:value...]")
	}
	u := &stub{name: args[0], status: http.StatusOK, header: http.Header{}}
	for _, arg := range args[1:] {
		ts.Check(u.set(ts, arg))
	}
	w := worldOf(ts)
	if old := w.upstreams[u.name]; old != nil {
		old.server.Close()
	}
	w.upstreams[u.name] = u
	u.health.Store(http.StatusOK)
	u.server = httptest.NewUnstartedServer(u)
	u.server.Start()
	ts.Setenv(u.name, u.server.URL)
	ts.Setenv(u.name+"_PORT", strconv.Itoa(u.port()))
}

func (u *stub) set(ts *testscript.TestScript, setting string) (err error) {
	if name, value, ok := strings.Cut(setting, ":"); ok && !strings.Contains(name, "=") {
		u.header.Add(name, strings.TrimSpace(value))
		return nil
	}
	key, value, _ := strings.Cut(setting, "=")
	switch key {
	case "status":
		u.status, err = strconv.Atoi(value)
	case "delay":
		u.delay, err = time.ParseDuration(value)
	case "body":
		u.body = []byte(value)
	case "socket":
		u.socket = value
	case "file":
		u.body = []byte(ts.ReadFile(value))
	default:
		err = fmt.Errorf("unknown setting %q", key)
	}
	return err
}

func (u *stub) port() int { return u.server.Listener.Addr().(*net.TCPAddr).Port }

func (u *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		u.checks.Add(1)
		w.WriteHeader(int(u.health.Load()))
		return
	}
	u.hits.Add(1)
	if u.delay > 0 {
		select {
		case <-time.After(u.delay):
		case <-r.Context().Done():
			return
		}
	}
	record := httptest.NewRecorder()
	echo(u.name, u.port()).ServeHTTP(record, r)
	shown := record.Body.Bytes()
	if len(shown) == 0 {
		return // the request was cut
	}
	u.got.Store(&shown)
	if u.socket != "" && r.Header.Get("Upgrade") != "" {
		echoSocket(w, r, u.socket)
		return
	}
	body := u.body
	if body == nil && u.status == http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		body = shown
	}
	for name, values := range u.header {
		w.Header()[name] = values
	}
	w.WriteHeader(u.status)
	_, _ = w.Write(body) // the sender has left: there is nobody to tell
}

// gotCommand looks at the last request that came to an upstream.
func gotCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg && len(args) != 2 || !neg && len(args) != 3 {
		ts.Fatalf("usage: got NAME PATH PATTERN, ! got NAME PATH")
	}
	u := worldOf(ts).upstreams[args[0]]
	if u == nil || u.got.Load() == nil {
		ts.Fatalf("nothing came to upstream %s", args[0])
	}
	value := gjson.GetBytes(*u.got.Load(), args[1])
	switch {
	case neg && value.Exists():
		ts.Fatalf("%s of what came to %s is %q", args[1], args[0], value)
	case !neg && (!value.Exists() || !pattern(ts, args[2]).MatchString(value.String())):
		ts.Fatalf("%s of what came to %s is %q, want %s: %s", args[1], args[0], value, args[2], *u.got.Load())
	}
}

func hitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: hits NAME N")
	}
	u := worldOf(ts).upstreams[args[0]]
	if u == nil {
		ts.Fatalf("there is no upstream %s", args[0])
	}
	want, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	until(func() bool { return u.hits.Load() >= want })
	if got := u.hits.Load(); got != want {
		ts.Fatalf("upstream %s got %d requests, want %d", args[0], got, want)
	}
}

// healthCommand sets how an upstream answers at /health from now on.
func healthCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: health NAME STATUS")
	}
	u := worldOf(ts).upstreams[args[0]]
	if u == nil {
		ts.Fatalf("there is no upstream %s", args[0])
	}
	status, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	u.health.Store(status)
}

// checkedCommand waits until an upstream was asked at /health so often.
func checkedCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: checked NAME N")
	}
	u := worldOf(ts).upstreams[args[0]]
	if u == nil {
		ts.Fatalf("there is no upstream %s", args[0])
	}
	want, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	if !until(func() bool { return u.checks.Load() >= want }) {
		ts.Fatalf("upstream %s was checked %d times, want %d", args[0], u.checks.Load(), want)
	}
}

// until asks again and again whether something has come, for as long as patience lasts.
func until(done func() bool) bool {
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(10 * time.Millisecond)
	}
	return true
}

// nextBase hands each script of this process its own block of ports; the process id keeps two processes apart.
var nextBase atomic.Int64

func demoCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: demo")
	}
	base, err := freeBlock()
	ts.Check(err)
	ts.Setenv("DEMO_PORT", strconv.Itoa(base))
}

// freeBlock finds a base whose demo ports are free, below the range from which the system hands out ports.
func freeBlock() (int, error) {
	for range 100 {
		n := nextBase.Add(1) + int64(pid()*7)
		base := 11000 + int(n%90)*100
		if blockIsFree(base) {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no block of free ports between 11000 and 20000")
}

func blockIsFree(base int) bool {
	for _, offset := range []int{1, 2, 3, 11, 12, 21, 31, 41, 51} {
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(base+offset)))
		if err != nil {
			return false
		}
		ln.Close()
	}
	return true
}

// transcript is what a program has printed so far. It is safe for concurrent use.
type transcript struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed and replaced at every write
}

func newTranscript() *transcript { return &transcript{grown: make(chan struct{})} }

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.grown)
	t.grown = make(chan struct{})
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// await waits until enough accepts the text, ctx ends or the program has ended.
func (t *transcript) await(ctx context.Context, ended <-chan struct{}, enough func(text string) bool) bool {
	for {
		t.mu.Lock()
		text, grown := t.text.String(), t.grown
		t.mu.Unlock()
		if enough(text) {
			return true
		}
		select {
		case <-grown:
		case <-ended:
			return enough(t.String())
		case <-ctx.Done():
			return enough(t.String())
		}
	}
}

func pattern(ts *testscript.TestScript, text string) *regexp.Regexp {
	re, err := regexp.Compile("(?m)" + text)
	ts.Check(err)
	return re
}
