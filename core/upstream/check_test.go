package upstream_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core/upstream"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %s", what, patience)
		}
		<-time.After(time.Millisecond)
	}
}

var quiet = slog.New(slog.DiscardHandler)

// checked are options for endpoints that are asked every few milliseconds.
func checked(urls ...string) upstream.Options {
	o := options(urls...)
	o.Check = upstream.CheckOptions{
		Kind: upstream.CheckHTTP, Method: "GET", Path: "/health", Status: []upstream.StatusRange{{200, 399}}, Interval: 10 * time.Millisecond,
		Timeout: patience, Healthy: 2, Unhealthy: 3,
	}
	return o
}

// watched is an upstream that serves, with its checks, in the place of prev, which may be nil.
func watched(t *testing.T, o upstream.Options, prev *upstream.Upstream) *upstream.Upstream {
	t.Helper()
	u := live(t, o, prev)
	u.Watch(quiet)
	if prev != nil {
		prev.Retire(u)
	}
	return u
}

// patient is an endpoint that answers a check when the test says how. With the next check's coming the one before is judged.
type patient struct {
	url  string
	come chan struct{}
	next chan int
}

func newPatient(t *testing.T) *patient {
	p := &patient{come: make(chan struct{}), next: make(chan int)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case p.come <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		select {
		case status := <-p.next:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func TestThresholdsPutAnEndpointInAndOut(t *testing.T) {
	p := newPatient(t)
	u := watched(t, checked(p.url), nil)
	e := u.Endpoints()[0]
	<-p.come
	for i, step := range []struct {
		status int
		ready  bool // behind it
	}{
		{503, false}, // it was never well: one check decides
		{503, false},
		{200, true},
		{503, true}, // it takes three
		{500, true},
		{200, true},
		{404, true},
		{404, true},
		{404, false},
		{200, false}, // and two to be back
		{599, false},
		{204, false},
		{302, true},
	} {
		p.next <- step.status
		<-p.come // the next one
		if u.IsReady(e) != step.ready {
			t.Fatalf("after answer %d, %d, ready is %v", i+1, step.status, u.IsReady(e))
		}
	}
	if c := u.Checked(e); !c.On || c.Passed != 5 || c.Failed != 8 || c.Err != nil || c.At == 0 {
		t.Errorf("%+v", c)
	}
}

func TestChecksMayPutTheLastEndpointOut(t *testing.T) {
	s := answering(t, http.StatusServiceUnavailable)
	u := watched(t, checked(s.URL), nil)
	until(t, "out", func() bool { return u.Ready() == 0 })
	if _, err := u.Begin("", nil); err != upstream.ErrNoneReady {
		t.Errorf("a try begins with %v", err)
	}
	if got := u.Standing(u.Endpoints()[0]); got != "unhealthy" {
		t.Errorf("it is %s", got)
	}
}

func answering(t *testing.T, status int) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(s.Close)
	return s
}

func TestRequestsDoNotBringBackWhatChecksHavePutOut(t *testing.T) {
	p := newPatient(t)
	other := answering(t, 200)
	o := checked(p.url, other.URL)
	o.Health.Failures, o.Health.Out = 1, time.Nanosecond
	u := watched(t, o, nil)
	e := u.Endpoints()[0]
	<-p.come
	a, _ := u.BeginAt(e)
	a.Failed() // out, and half-open at once
	probe, _ := u.BeginAt(e)
	straggler, _ := u.BeginAt(e)
	p.next <- 500
	<-p.come
	probe.Succeeded()
	straggler.Failed()
	if got := u.Standing(e); got != "unhealthy" {
		t.Errorf("after the ends of requests it is %s", got)
	}
	for range 10 {
		if a := begin(t, u); a.Endpoint == e {
			t.Fatal("it is asked")
		}
	}
	p.next <- 200
	<-p.come
	if got := u.Standing(e); got != "ready" {
		t.Errorf("after a check that passed it is %s", got)
	}
}

func TestChecksDoNotBringBackWhatRequestsHavePutOut(t *testing.T) {
	p := newPatient(t)
	other := answering(t, 200)
	o := checked(p.url, other.URL)
	o.Health.Failures, o.Health.Out = 1, time.Hour
	u := watched(t, o, nil)
	e := u.Endpoints()[0]
	<-p.come
	p.next <- 200
	<-p.come
	a, _ := u.BeginAt(e)
	a.Failed()
	p.next <- 200
	<-p.come
	if got := u.Standing(e); got != "out" {
		t.Errorf("after a check that passed it is %s", got)
	}
}

func TestReloadsNeitherDoubleNorForgetChecks(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(503)
	}))
	t.Cleanup(s.Close)
	o := checked(s.URL)
	o.Check.Interval = time.Hour
	u := watched(t, o, nil)
	until(t, "out", func() bool { return u.Ready() == 0 })
	for i := range 200 {
		if i >= 100 { // another setting of the checks each time
			o.Check.Timeout += time.Second
		}
		u = watched(t, o, u)
		if u.Ready() != 0 {
			t.Fatalf("reload %d has forgotten that the endpoint is unhealthy", i+1)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d checks in an hour that has just begun", n)
	}
	if c := u.Checked(u.Endpoints()[0]); c.Failed != 1 {
		t.Errorf("%+v", c)
	}
}

// TestChecksDoNotBeginTogether: neither when the gateway starts, nor when a reload changes their settings while they are under way.
func TestChecksDoNotBeginTogether(t *testing.T) {
	const many = 20
	came := make(chan time.Time, 2*many)
	var urls []string
	for range many {
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			came <- time.Now()
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)
		urls = append(urls, s.URL)
	}
	o := checked(urls...)
	o.Check.Interval = 10 * time.Second
	apart := func(u *upstream.Upstream) (*upstream.Upstream, time.Duration) {
		u = watched(t, o, u)
		first := <-came
		last := first
		for range many - 1 {
			last = <-came
		}
		return u, last.Sub(first)
	}
	for _, begin := range []string{"start", "reload"} {
		var u *upstream.Upstream
		if o.Check.Path = "/before"; begin == "reload" {
			u, _ = apart(nil)
		}
		for try := 1; ; try++ { // a machine that stands still for a second has them all come together
			o.Check.Path = fmt.Sprintf("/%s/%d", begin, try)
			next, d := apart(u)
			if d >= 100*time.Millisecond { // of a second; twenty come that close to each other once in 10^18 times
				break
			}
			if try == 3 {
				t.Fatalf("%s: %d endpoints were asked within %v", begin, many, d)
			}
			if begin == "reload" {
				u = next
			}
		}
	}
}

func TestAnEndpointThatIsCheckedNoMoreIsTrusted(t *testing.T) {
	s := answering(t, 503)
	u := watched(t, checked(s.URL), nil)
	until(t, "out", func() bool { return u.Ready() == 0 })
	u = watched(t, options(s.URL), u)
	if c := u.Checked(u.Endpoints()[0]); u.Ready() != 1 || c.On {
		t.Errorf("%d ready, %+v", u.Ready(), c)
	}
}

func TestChecksOfWhatGoesEnd(t *testing.T) { // which goleak sees
	s := answering(t, 200)
	p := newPatient(t)
	u := watched(t, checked(s.URL, p.url), nil)
	<-p.come // it is being checked, and never answers
	u = watched(t, checked(s.URL), u)
	o := checked(s.URL)
	o.Endpoints[0].Weight = 0 // drained: nobody wants to know
	u = watched(t, o, u)
	if u.Checked(u.Endpoints()[0]).On {
		t.Error("a drained endpoint is checked")
	}
	u.Retire(nil)
}

func TestAGenerationThatIsOnlyTriedChecksNothing(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(s.Close)
	open(t, checked(s.URL), nil)
	u := open(t, checked(s.URL), nil)
	if u.Ready() != 1 || asked.Load() != 0 || u.Checked(u.Endpoints()[0]).On {
		t.Error("it checks")
	}
}

func TestAnEndpointThatIsWellAgainComesSlowlyToItsShare(t *testing.T) {
	p := newPatient(t)
	other := answering(t, 200)
	o := checked(p.url, other.URL)
	o.SlowStart = time.Hour
	u := watched(t, o, nil)
	<-p.come
	p.next <- 500
	<-p.come
	p.next <- 200
	<-p.come
	n := 0
	for range 4000 {
		a := begin(t, u)
		if a.Endpoint.Index == 0 {
			n++
		}
		a.Ended()
	}
	if n < 50 || n > 600 {
		t.Errorf("it gets %d of 4000 requests at first, want about 200", n)
	}
}

// lines is a log that many may write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestAChangeIsLoggedOnce(t *testing.T) {
	var log lines
	p := newPatient(t)
	u := live(t, checked(p.url), nil)
	u.Watch(slog.New(slog.NewTextHandler(&log, nil)))
	<-p.come
	for _, status := range []int{500, 500, 200, 200, 200} {
		p.next <- status
		<-p.come
	}
	text := log.String()
	if strings.Count(text, "endpoint is unhealthy") != 1 || strings.Count(text, "endpoint is healthy") != 1 || !strings.Contains(text, "status 500") ||
		!strings.Contains(text, "upstream=u endpoint="+p.url) {
		t.Errorf("logged:\n%s", text)
	}
}

// verdict is what one check by these options finds.
func verdict(t *testing.T, o upstream.Options) error {
	t.Helper()
	u := watched(t, o, nil)
	e := u.Endpoints()[0]
	until(t, "a check", func() bool { return u.Checked(e).At != 0 })
	return u.Checked(e).Err
}

func TestHTTPChecksSeeStatusAndBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" {
			w.Header().Set("X-Method", "HEAD")
		}
		switch r.URL.Path {
		case "/host":
			_, _ = fmt.Fprintf(w, "%s %s?%s %s %s", r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.UserAgent())
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 64<<10)+"ok")
		case "/moved":
			http.Redirect(w, r, "/host", http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/cut-body":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "ok")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(404)
		}
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		name   string
		change func(*upstream.Options)
		want   string // in the error; "": the endpoint is well
	}{
		{"well", func(o *upstream.Options) { o.Check.Path = "/host" }, ""},
		{"another status", func(*upstream.Options) {}, "status 404"},
		{"a status that is wanted", func(o *upstream.Options) { o.Check.Status = []upstream.StatusRange{{200, 299}, {404, 404}} }, ""},
		{"a redirect is not followed", func(o *upstream.Options) { o.Check.Path, o.Check.Status = "/moved", []upstream.StatusRange{{200, 299}} }, "status 302"},
		{"the body matches", func(o *upstream.Options) {
			o.Check.Path, o.Check.Host, o.Check.Method = "/host?deep=1", "api.example.com", "OPTIONS"
			o.Check.Body = regexp.MustCompile(`^OPTIONS /host\?deep=1 api\.example\.com moongate$`)
		}, ""},
		{"the upstream's own host", func(o *upstream.Options) {
			o.Check.Path, o.Host = "/host", "fixed.example.com"
			o.Check.Body = regexp.MustCompile(`fixed\.example\.com`)
		}, ""},
		{"the endpoint's authority", func(o *upstream.Options) {
			o.Check.Path, o.Host = "/host", "client"
			o.Check.Body = regexp.MustCompile(`127\.0\.0\.1:\d+`)
		}, ""},
		{"the body does not match", func(o *upstream.Options) { o.Check.Path, o.Check.Body = "/host", regexp.MustCompile(`nowhere`) }, "the body does not match"},
		{"only its beginning is looked at", func(o *upstream.Options) { o.Check.Path, o.Check.Body = "/long", regexp.MustCompile(`ok`) }, "the body does not match"},
		{"an answer without a body", func(o *upstream.Options) { o.Check.Path, o.Check.Method = "/host", "HEAD" }, ""},
		{"no answer", func(o *upstream.Options) { o.Check.Path = "/cut" }, "EOF"},
		{"half an answer", func(o *upstream.Options) { o.Check.Path, o.Check.Body = "/cut-body", regexp.MustCompile(`ok`) }, "unexpected EOF"},
		{"too late", func(o *upstream.Options) { o.Check.Path, o.Check.Timeout = "/hang", 50*time.Millisecond }, "no answer in time"},
		{"nobody there", func(o *upstream.Options) { o.Endpoints[0].URL = "http://127.0.0.1:1" }, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := checked(s.URL)
			o.Check.Interval = time.Hour
			c.change(&o)
			err := verdict(t, o)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("found %v, want %q", err, c.want)
			}
		})
	}
}
