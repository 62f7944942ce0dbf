package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pool "github.com/moongate/moongate/core/upstream"
)

// Whatever a client sends, an upstream gets whole and well-formed requests that mean what the client's do, or nothing; whatever an upstream
// sends, a client gets one well-formed answer that means the same, or the gateway's own, or an end that nobody takes for a clean one.
//
// The messages come from a grammar and a seed. MOONGATE_SEED=N runs the one of a failure alone, MOONGATE_ROUNDS=N more than usual. The fuzz
// targets ask the same of bytes that no grammar made.

// rounds are the seeds to try: so many in each of a few goroutines.
func rounds(t *testing.T, check func(t *testing.T, seeds []uint64)) {
	t.Helper()
	n := 240
	if testing.Short() {
		n = 80
	}
	if text := os.Getenv("MOONGATE_ROUNDS"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("MOONGATE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		check(t, []uint64{seed})
		return
	}
	const hands = 4
	var seeds [hands][]uint64
	for i := range n {
		seeds[i%hands] = append(seeds[i%hands], uint64(i))
	}
	for i := range hands {
		t.Run(fmt.Sprint("part ", i), func(t *testing.T) {
			t.Parallel()
			check(t, seeds[i])
		})
	}
}

// hasty makes a gateway that waits for nothing long, and whose ways to the upstream are few.
const hasty = `
[[listener]]
address = "127.0.0.1:0"
protocol = "h1"
[http]
head_timeout = "PATIENCE"
body_idle = "PATIENCE"
idle_timeout = "PATIENCE"
path = %q
[[upstream]]
name = "u"
endpoints = [%q]
host = "client"
[upstream.timeouts]
first_byte = "1s"
idle_read = "1s"
[upstream.health]
failures = 1000000
[[route]]
name = "all"
path = "/**"
upstream = "u"
`

// registrar is an upstream that notes every request as it came, and answers with the number that it gave it.
type registrar struct {
	mu       sync.Mutex
	requests []message
	faults   []string // what no strict reader takes
	open     int      // connections
}

func (r *registrar) serve(nc net.Conn) {
	r.count(1)
	defer r.count(-1)
	var have []byte
	buf := make([]byte, 32<<10)
	for {
		m, rest, v := readRequest(have)
		switch {
		case v == wrong:
			r.fault("no request: %q", ends(have))
			return
		case v == whole:
			answer := r.note(m, have[:len(have)-len(rest)])
			have = slices.Clone(rest)
			if _, err := io.WriteString(nc, answer); err != nil {
				return
			}
			continue
		}
		n, err := nc.Read(buf)
		if have = append(have, buf[:n]...); err != nil {
			return // what has begun was never finished, and nobody takes it for whole
		}
	}
}

func (r *registrar) count(n int) {
	r.mu.Lock()
	r.open += n
	r.mu.Unlock()
}

func (r *registrar) fault(format string, args ...any) {
	r.mu.Lock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
	r.mu.Unlock()
}

// note takes a request down and gives the answer to it.
func (r *registrar) note(m message, raw []byte) string {
	if fault := likeTheirs(m, raw); fault != "" {
		r.fault("%s: %q", fault, ends(raw))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, m)
	text := strconv.Itoa(len(r.requests) - 1)
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Number: %s\r\nContent-Length: %d\r\n\r\n", text, len(text))
	if len(m.values("Expect")) > 0 {
		answer = "HTTP/1.1 100 Continue\r\n\r\n" + answer
	}
	if m.start[0] == "HEAD" {
		return answer
	}
	return answer + text
}

// ends are the front and the back of something long.
func ends(b []byte) string {
	if len(b) < 600 {
		return string(b)
	}
	return string(b[:300]) + " ... " + string(b[len(b)-300:])
}

// likeTheirs holds a request against what net/http reads.
func likeTheirs(m message, raw []byte) string {
	theirs, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
	if err != nil {
		if strings.Contains(err.Error(), "invalid URL escape") || strings.Contains(err.Error(), "invalid URI for request") { // it has views on targets
			return ""
		}
		return "net/http says " + err.Error()
	}
	body, err := io.ReadAll(theirs.Body)
	if err != nil || theirs.Method != m.start[0] || theirs.RequestURI != m.start[1] || string(body) != m.body {
		return fmt.Sprintf("net/http reads %s %s %.60q %v", theirs.Method, theirs.RequestURI, body, err)
	}
	return ""
}

// take gives what was noted since it was last asked.
func (r *registrar) take() (requests []message, faults []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests, faults = r.requests, r.faults
	r.requests, r.faults = nil, nil
	return requests, faults
}

// bench is a gateway with its registrar.
type bench struct {
	h *house
	*registrar
}

func newBench(t testing.TB, path string) *bench {
	r := &registrar{}
	return &bench{open(t, hastily(t, fmt.Sprintf(hasty, path, scripted(t, r.serve)))), r}
}

// hastily says how long a gateway waits for what may never come. Fuzzing, which finds the unfinished above all, waits for nearly nothing.
func hastily(t testing.TB, config string) string {
	patience := "300ms"
	if _, fuzzing := t.(*testing.F); fuzzing {
		patience = "20ms"
	}
	return strings.ReplaceAll(config, "PATIENCE", patience)
}

// send sends bytes, on a connection of their own, and gives what came back until the gateway closed it.
func (b *bench) send(t testing.TB, raw []byte, pieces *rand.Rand) []byte {
	nc, err := net.Dial("tcp", b.h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	wrote := make(chan struct{})
	go func() { // a client may have to be told before it has said all
		defer close(wrote)
		for len(raw) > 0 {
			n := len(raw)
			if pieces != nil && pieces.IntN(2) == 0 {
				n = 1 + pieces.IntN(n)
			}
			if _, err := nc.Write(raw[:n]); err != nil {
				return
			}
			raw = raw[n:]
		}
	}()
	got, err := io.ReadAll(patiently{nc})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the gateway keeps the connection: %.200q", got)
	}
	nc.Close()
	<-wrote
	return got
}

// settled waits until the gateway has nothing more to say to the upstream.
func (b *bench) settled() bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		if b.h.Server().InFlight() > 0 || b.h.Server().Connections() > 0 {
			continue
		}
		kept := 0
		b.h.Generation().EachUpstream(func(u *pool.Upstream) {
			for _, e := range u.Endpoints() {
				kept += u.Pool(e).Stats().Open
			}
		})
		b.mu.Lock()
		open := b.open
		b.mu.Unlock()
		if open == kept {
			return true
		}
	}
	return false
}

// last is the request behind all others: where they end, it is understood.
const last = "GET /last HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n"

// check sends a client's bytes and judges what the upstream got and the client was told. It gives the number of requests that were passed on.
func (b *bench) check(t testing.TB, raw []byte, pieces *rand.Rand) int {
	raw = append(raw[:len(raw):len(raw)], last...)
	got := b.send(t, raw, pieces)
	if !b.settled() {
		t.Error("the exchanges do not end")
	}
	requests, faults := b.take()
	for _, fault := range faults {
		t.Error("the upstream got what is ", fault)
	}
	asked, rest := b.understand(raw)
	b.checkAnswers(t, asked, rest, requests, got)
	next := 0
	for _, is := range requests {
		for next < len(asked) && differs(&asked[next], &is) != "" {
			next++
		}
		if next == len(asked) {
			why := "nobody asked"
			if len(asked) > 0 {
				why = differs(&asked[len(asked)-1], &is)
			}
			t.Errorf("the upstream got %v\nwhich no request of the client means (%s):\n%v", is, why, asked)
			break
		}
		next++
	}
	return len(requests)
}

// understand reads a client's requests up to what is none, which is left.
func (b *bench) understand(raw []byte) (asked []message, left []byte) {
	for {
		for strings.HasPrefix(string(raw), "\r\n") {
			raw = raw[2:]
		}
		m, rest, v := readRequest(raw)
		if v != whole {
			return asked, raw
		}
		asked, raw = append(asked, m), rest
	}
}

// checkAnswers reads what the client got: whole answers, in the order of the requests, each of the upstream's to its own request.
func (b *bench) checkAnswers(t testing.TB, asked []message, left []byte, requests []message, got []byte) {
	number := -1
	for i := 0; len(got) > 0; {
		method := "GET"
		if i < len(asked) {
			method = asked[i].start[0]
		}
		m, rest, v := readAnswer(got, method)
		if v != whole && i == len(asked) && strings.HasPrefix(string(left), "HEAD ") { // no request, but somebody may read a method
			m, rest, v = readAnswer(got, "HEAD")
		}
		if v != whole {
			t.Errorf("answer %d is none: %.300q", i, got)
			return
		}
		if got = rest; m.status() < 200 {
			continue
		}
		if list := m.values("X-Number"); len(list) > 0 {
			n, err := strconv.Atoi(list[0])
			if err != nil || n <= number || n >= len(requests) || i >= len(asked) {
				t.Errorf("answer %d, to %d requests, is the upstream's %q after %d, to %d", i, len(asked), list[0], number, len(requests))
				return
			}
			if why := differs(&asked[i], &requests[n]); why != "" {
				t.Errorf("answer %d is that to another request (%s):\n%v\n%v", i, why, asked[i], requests[n])
			}
			number = n
		}
		if i++; i > len(asked)+1 {
			t.Errorf("%d answers to %d requests", i, len(asked))
		}
	}
}

func TestUpstreamsGetWellFormedRequestsWhateverClientsSend(t *testing.T) {
	rounds(t, func(t *testing.T, seeds []uint64) {
		benches := []*bench{newBench(t, "raw"), newBench(t, "strict")}
		passed := 0
		for _, seed := range seeds {
			g := newGrammar(seed)
			raw := g.requests()
			if passed += benches[seed/7%2].check(t, raw, g.Rand); t.Failed() {
				t.Fatalf("MOONGATE_SEED=%d\n%q", seed, ends(raw))
			}
		}
		if len(seeds) > 50 && passed < len(seeds)/20 {
			t.Errorf("only %d requests of %d connections were passed on: this tells nothing", passed, len(seeds))
		}
	})
}

func FuzzForward(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(newGrammar(seed).requests())
	}
	b := newBench(f, "raw")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 64<<10 {
			b.check(t, raw, nil)
		}
	})
}

// differs tells in what a request that an upstream got means something else than the client's; "" when it does not.
func differs(want, is *message) string {
	wt, wh := target(want)
	it, ih := target(is)
	wf, is1 := endToEnd(want), endToEnd(is)
	switch {
	case want.start[0] != is.start[0]:
		return "method"
	case wt != it:
		return "target " + wt
	case wh != ih && wh != "":
		return "host " + wh
	case want.body != is.body:
		return "body"
	case is.start[2] != "HTTP/1.1" || !slices.Contains(is1, viaField(want)):
		return "version"
	}
	is1 = slices.DeleteFunc(is1, func(s string) bool { return s == viaField(want) })
	wf = slices.DeleteFunc(wf, func(s string) bool { return s == viaField(want) })
	if !slices.Equal(wf, is1) {
		return fmt.Sprintf("fields %q", wf)
	}
	for _, line := range is.trailer {
		i := slices.Index(want.trailer, line)
		if i < 0 || gone(line[0]) {
			return "trailer " + line[0]
		}
	}
	return ""
}

func viaField(want *message) string {
	return "via: " + strings.TrimPrefix(want.start[2], "HTTP/") + " moongate"
}

// target is what a request asks of whom (RFC 9112 section 3.3).
func target(m *message) (path, host string) {
	if hosts := m.values("Host"); len(hosts) > 0 {
		host = hosts[0]
	}
	if s := absoluteForm.FindStringSubmatch(m.start[1]); s != nil {
		switch host = s[1]; {
		case s[2] == "" && m.start[0] == "OPTIONS":
			return "*", host
		case s[2] == "" || s[2][0] == '?':
			return "/" + s[2], host
		}
		return s[2], host
	}
	return m.start[1], host
}

// gone tells whether lines of that name end at the gateway, or are written by it.
func gone(name string) bool {
	switch name = strings.ToLower(name); name {
	case "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect", "x-trace-id":
		return true
	}
	folded := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	switch folded {
	case "x_user_id", "x_user_role", "forwarded", "x_real_ip":
		return true
	}
	return strings.HasPrefix(folded, "x_forwarded_")
}

// endToEnd are the lines that go from one end to the other, names in lower case.
func endToEnd(m *message) (lines []string) {
	nominated := map[string]bool{}
	for _, list := range m.values("Connection") {
		for _, name := range strings.Split(list, ",") {
			nominated[strings.ToLower(strings.Trim(name, " \t"))] = true
		}
	}
	for _, f := range m.fields {
		if name := strings.ToLower(f[0]); !gone(name) && !nominated[name] {
			lines = append(lines, name+": "+f[1])
		}
	}
	return lines
}
