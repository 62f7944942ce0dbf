package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
)

// pair is an upstream of two endpoints, of which the first reads all and answers with its status as long as that is not 0, and the second
// echoes. The first is asked first.
type pair struct {
	status atomic.Int32
	first  atomic.Int32 // requests that came to it
	second atomic.Int32
	lost   chan string // what the first has read, by its digest and length
}

func (p *pair) refuse(w http.ResponseWriter, r *http.Request) {
	p.first.Add(1)
	b, _ := io.ReadAll(r.Body)
	p.lost <- digest(b, r.ContentLength)
	w.Header().Set("X-From", "first")
	w.WriteHeader(int(p.status.Load()))
	_, _ = io.WriteString(w, "no")
}

func (p *pair) echo(w http.ResponseWriter, r *http.Request) {
	p.second.Add(1)
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("X-From", "second")
	w.Header().Set("X-Got", digest(b, r.ContentLength))
	w.Header().Set("X-Trailer", r.Trailer.Get("X-Sum"))
	_, _ = w.Write(b)
}

func digest(b []byte, length int64) string {
	return fmt.Sprintf("%d %d %.8x", len(b), length, sha256.Sum256(b))
}

// openPair starts the two and a gateway in front, whose upstream speaks protocol and has these settings besides.
func openPair(t *testing.T, protocol, retry, more string, change ...func(*gateway.Options)) (*house, *pair) {
	t.Helper()
	p := &pair{lost: make(chan string, 1000)}
	p.status.Store(503)
	to := upstream
	if protocol == "h2c" {
		to = upstreamH2C
	}
	text := fmt.Sprintf("[http]\nmax_body = \"8MiB\"\n[[upstream]]\nname = \"u\"\nprotocol = %q\nendpoints = [%q, %q]\nhealth.failures = 1000\n[upstream.retry]\n%s\n%s",
		protocol, to(t, p.refuse), to(t, p.echo), retry, more)
	return open(t, text+route("u"), change...), p
}

// bothUpstreams runs a check with upstreams of both versions of HTTP.
func bothUpstreams(t *testing.T, check func(t *testing.T, protocol string)) {
	for _, protocol := range []string{"h1", "h2c"} {
		t.Run(protocol, func(t *testing.T) { check(t, protocol) })
	}
}

// put asks with a body of so many bytes, whose length is told or not.
func (h *house) put(method string, body []byte, chunked bool) (*http.Response, string) {
	h.t.Helper()
	var r io.Reader = bytes.NewReader(body)
	if chunked {
		r = struct{ io.Reader }{r}
	}
	return h.do(plainClient(h.t), h.request(method, "/", r))
}

func plainClient(t testing.TB) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// noise is bytes that tell when one of them is missing or twice there.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}

const once = "attempts = 1\nstatus = [503]\nbudget = 100"

func TestABodyThatWasAnswered503GoesToTheNextEndpointWhole(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		h, p := openPair(t, protocol, once, "")
		for _, size := range []int{0, 5, 20 << 10, 200 << 10, 1 << 20} {
			for _, chunked := range []bool{false, true} {
				body := noise(size)
				for range 4 { // the first is asked first twice at least
					resp, got := h.put("PUT", body, chunked)
					if resp.StatusCode != 200 || got != string(body) || resp.Header.Get("X-From") != "second" {
						t.Fatalf("%d bytes, chunked %v: %s %.40q", size, chunked, resp.Status, got)
					}
					if want := digest(body, int64(size)); resp.Header.Get("X-Got") != want {
						t.Errorf("chunked %v: upstream got %q, want %q", chunked, resp.Header.Get("X-Got"), want)
					}
				}
				for len(p.lost) > 0 {
					if got, want := <-p.lost, digest(body, int64(size)); got != want {
						t.Errorf("chunked %v: the first got %q, want %q", chunked, got, want)
					}
				}
			}
		}
		if p.first.Load() == 0 {
			t.Fatal("the first was never asked")
		}
		if want := fmt.Sprintf("moongate_upstream_retries_total{upstream=\"u\"} %d\n", p.first.Load()); !strings.Contains(h.scrape(), want) {
			t.Errorf("/metrics lacks %q", want)
		}
	})
}

func TestARewrittenBodyIsRepeatedAsItWasRewritten(t *testing.T) {
	rewritten := noise(100 << 10)
	rewrite := &stage{name: "transform", request: func(x *core.Exchange) (*core.Reply, error) {
		x.Request.Body.Replace(rewritten)
		return nil, nil
	}}
	bothUpstreams(t, func(t *testing.T, protocol string) {
		h, p := openPair(t, protocol, once, "", through(rewrite))
		for range 4 {
			resp, got := h.put("PUT", noise(200<<10), true)
			if resp.StatusCode != 200 || got != string(rewritten) || resp.Header.Get("X-Got") != digest(rewritten, int64(len(rewritten))) {
				t.Errorf("%s %q", resp.Status, resp.Header.Get("X-Got"))
			}
		}
		if p.first.Load() == 0 {
			t.Error("the first was never asked")
		}
	})
}

func TestABodyBeyondTheBufferIsSentOnceAndItsAnswerRelayed(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		h, p := openPair(t, protocol, once, "")
		for _, chunked := range []bool{false, true} {
			body := noise(3 << 20)
			for range 4 {
				resp, got := h.put("PUT", body, chunked)
				switch resp.Header.Get("X-From") {
				case "first":
					if resp.StatusCode != 503 || got != "no" {
						t.Errorf("%s %.40q", resp.Status, got)
					}
				default:
					if resp.StatusCode != 200 || got != string(body) {
						t.Errorf("%s, %d bytes", resp.Status, len(got))
					}
				}
			}
			length := int64(len(body))
			if chunked {
				length = -1
			}
			for len(p.lost) > 0 {
				if got, want := <-p.lost, digest(body, length); got != want {
					t.Errorf("the first got %q, want %q", got, want)
				}
			}
		}
		if p.first.Load()+p.second.Load() != 8 {
			t.Errorf("%d and %d requests", p.first.Load(), p.second.Load())
		}
	})
}

func TestOnlyMethodsThatMayBeRepeatedAre(t *testing.T) {
	h, p := openPair(t, "h1", once, "")
	for method, repeated := range map[string]bool{"GET": true, "PUT": true, "DELETE": true, "OPTIONS": true, "POST": false, "PATCH": false, "PURGE": false} {
		p.first.Store(0)
		p.second.Store(0)
		refused := 0
		for range 4 {
			if resp, _ := h.put(method, nil, false); resp.StatusCode == 503 {
				refused++
			}
		}
		if first := int(p.first.Load()); first == 0 || repeated && refused > 0 || !repeated && (refused != first || p.second.Load() != int32(4-first)) {
			t.Errorf("%s: %d refused; %d and %d requests", method, refused, p.first.Load(), p.second.Load())
		}
	}
}

func TestAnswersWithOtherStatusesStand(t *testing.T) {
	h, p := openPair(t, "h1", once, "")
	for _, status := range []int32{500, 502, 404, 429, 201} {
		p.status.Store(status)
		p.first.Store(0)
		relayed := 0
		for range 4 {
			if resp, _ := h.put("GET", nil, false); resp.StatusCode == int(status) {
				relayed++
			}
		}
		if relayed == 0 || relayed != int(p.first.Load()) {
			t.Errorf("%d: %d relayed of %d", status, relayed, p.first.Load())
		}
	}
}

// counted is an endpoint that answers with a status and its number.
func counted(t *testing.T, status int) (string, *atomic.Int32) {
	n := new(atomic.Int32)
	return upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "answer %d", n.Add(1))
	}), n
}

func TestTheLastAnswerIsRelayedWhenAttemptsAreUsedUp(t *testing.T) {
	url, n := counted(t, 503)
	h := open(t, routeTo(url, "health.failures = 1000\nretry = { attempts = 3, budget = 100 }"))
	if resp, got := h.put("PUT", noise(50<<10), false); resp.StatusCode != 503 || got != "answer 4" || n.Load() != 4 {
		t.Errorf("%s %q after %d requests", resp.Status, got, n.Load())
	}
}

// TestTheAnswerThatOpensACircuitBreakerIsRelayed: nobody would be asked for a better one.
func TestTheAnswerThatOpensACircuitBreakerIsRelayed(t *testing.T) {
	url, n := counted(t, 503)
	h := open(t, routeTo(url, "breaker = { failures = 2, open = \"1h\" }\nretry = { attempts = 5, budget = 100 }"))
	if resp, got := h.put("PUT", noise(5), false); resp.StatusCode != 503 || got != "answer 2" || n.Load() != 2 {
		t.Errorf("%s %q after %d requests", resp.Status, got, n.Load())
	}
	if !strings.Contains(h.scrape(), "moongate_upstream_retries_total{upstream=\"u\"} 1\n") {
		t.Error("more than one retry is counted")
	}
	if resp, got := h.put("GET", nil, false); resp.StatusCode != 503 || !strings.Contains(got, "upstream is failing") || n.Load() != 2 {
		t.Errorf("%s %q after %d requests", resp.Status, got, n.Load())
	}
}

func TestEveryEndpointIsAskedBeforeOneIsAskedTwice(t *testing.T) {
	var urls []string
	var counts []*atomic.Int32
	for range 4 {
		url, n := counted(t, 503)
		urls, counts = append(urls, fmt.Sprintf("%q", url)), append(counts, n)
	}
	for _, balance := range []string{"round_robin", "random", "smooth_weighted"} {
		h := open(t, fmt.Sprintf("[[upstream]]\nname = \"u\"\nbalance = %q\nendpoints = [%s]\nhealth.failures = 1000\nretry = { attempts = 3, budget = 100 }\n", balance, strings.Join(urls, ","))+route("u"))
		for range 4 { // within the first ten retries and one more for each
			h.put("GET", nil, false)
		}
		for i, n := range counts {
			if n.Swap(0) != 4 {
				t.Errorf("%s: endpoint %d was not asked once for each request", balance, i)
			}
		}
	}
}

func TestRetriesStayWithinTheirBudget(t *testing.T) {
	url, n := counted(t, 503)
	h := open(t, routeTo(url, "health.failures = 100000\nretry = { attempts = 2, budget = 20 }"))
	c := plainClient(t)
	const requests = 200
	for range requests {
		if resp, _ := h.do(c, h.request("GET", "/", nil)); resp.StatusCode != 503 {
			t.Fatal(resp.Status)
		}
	}
	retries := int(n.Load()) - requests
	if most := 10 + requests*20/100; retries > most || retries < most-2 {
		t.Errorf("%d retries, want %d", retries, most)
	}
	if want := fmt.Sprintf("moongate_upstream_retries_total{upstream=\"u\"} %d\n", retries); !strings.Contains(h.scrape(), want) {
		t.Errorf("/metrics lacks %q", want)
	}
}

func TestTheTimeForTheHeadCountsOverAllTries(t *testing.T) {
	for _, size := range []int{0, 100 << 10} {
		bothUpstreams(t, func(t *testing.T, protocol string) {
			t.Parallel()
			to := upstream
			if protocol == "h2c" {
				to = upstreamH2C
			}
			n, last := new(atomic.Int32), make(chan time.Duration, 1)
			url := to(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if n.Add(1) < 3 {
					time.Sleep(1200 * time.Millisecond)
					w.WriteHeader(503)
					return
				}
				began := time.Now()
				<-r.Context().Done()
				last <- time.Since(began)
			})
			h := open(t, routeTo(url, fmt.Sprintf("protocol = %q\nhealth.failures = 1000\ntimeouts = { first_byte = \"4s\", total = \"4s\" }\nretry = { attempts = 10, budget = 100 }", protocol)))
			began := time.Now()
			resp, _ := h.put("PUT", noise(size), true)
			if took := time.Since(began); resp.StatusCode != 504 || took < 3900*time.Millisecond || n.Load() != 3 {
				t.Errorf("%d bytes: %s after %v and %d tries", size, resp.Status, took, n.Load())
			}
			if took := <-last; took > 3500*time.Millisecond {
				t.Errorf("%d bytes: the third try had %v, which is the time of all of them", size, took)
			}
		})
	}
}

func TestACutOrSilentEndpointIsReplacedWhenItsStatusIsListed(t *testing.T) {
	for name, broken := range map[string]func(net.Conn){
		"cut": func(nc net.Conn) { _, _ = readHead(bufio.NewReader(nc)) },
		"rubbish": func(nc net.Conn) {
			_, _ = readHead(bufio.NewReader(nc))
			_, _ = io.WriteString(nc, "rubbish\r\n\r\n")
		},
		"silent": func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) },
	} {
		bad := scripted(t, broken)
		good := upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
		text := "[[upstream]]\nname = \"u\"\nendpoints = [%q, %q]\nhealth.failures = 1000\ntimeouts.first_byte = \"2s\"\nretry = { attempts = 1, status = [%s], budget = 100 }\n"
		h := open(t, fmt.Sprintf(text, bad, good, "502, 504")+route("u"))
		for range 4 {
			if resp, got := h.put("PUT", noise(5), false); resp.StatusCode != 200 || got != string(noise(5)) {
				t.Errorf("%s: %s %q", name, resp.Status, got)
			}
		}
		h = open(t, fmt.Sprintf(text, bad, good, "503")+route("u"))
		failed := 0
		for range 4 {
			if resp, _ := h.put("PUT", noise(5), false); resp.StatusCode == 502 || resp.StatusCode == 504 {
				failed++
			}
		}
		if failed == 0 {
			t.Errorf("%s: repeated though its status is not listed", name)
		}
	}
}

func TestAnEarly503ToALongBodyKeepsTheClientsConnection(t *testing.T) {
	over := make(chan struct{})
	hasty := scripted(t, func(nc net.Conn) { // which reads nothing but the head
		_, _ = readHead(bufio.NewReaderSize(nc, 16))
		_, _ = io.WriteString(nc, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
		<-over
	})
	defer close(over)
	body := noise(12 << 20) // more than the system takes for an endpoint that reads nothing
	good := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, bytes.Equal(b, body))
	})
	h := open(t, fmt.Sprintf("[http]\nmax_body = \"16MiB\"\nbody_buffer = \"16MiB\"\n[[upstream]]\nname = \"u\"\nendpoints = [%q, %q]\nhealth.failures = 1000\nretry = { attempts = 1, budget = 100 }\n", hasty, good)+route("u"))
	nc, r := h.dial()
	for i := range 2 {
		send(t, nc, fmt.Sprintf("PUT /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body))
		head, err := readHead(r)
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") || strings.Contains(head, "close") {
			t.Fatalf("request %d: %q %v", i, head, err)
		}
		expect(t, r, "true")
	}
}

func TestTheConnectionOfAnAnswerThatIsDroppedServesAgain(t *testing.T) {
	conns := new(atomic.Int32)
	busy := scripted(t, func(nc net.Conn) {
		conns.Add(1)
		for r := bufio.NewReader(nc); ; {
			if _, err := readHead(r); err != nil {
				return
			}
			_, _ = io.WriteString(nc, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
		}
	})
	h := open(t, routeTo(busy, "health.failures = 1000\nretry = { attempts = 5, budget = 100 }"))
	if got := h.raw(getClose); !strings.HasPrefix(got, "HTTP/1.1 503 Busy\r\n") || !strings.HasSuffix(got, "busy") || conns.Load() != 1 {
		t.Errorf("%q over %d connections", got, conns.Load())
	}
}

func TestABodyBrokenOffBeforeARetryCouldBeNeededReachesNobody(t *testing.T) {
	url, n := counted(t, 503)
	h := open(t, routeTo(url, "retry = { attempts = 1 }"))
	if got := h.raw("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("got %q", got)
	}
	if n.Load() != 0 {
		t.Error("the upstream was asked")
	}
}

func TestAClientThatLeavesIsNotRetriedFor(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		w.WriteHeader(503)
		close(release)
	})
	watch, entries := watching()
	h := open(t, routeTo(url, "health.failures = 1\nretry = { attempts = 5, budget = 100 }"), through(watch))
	nc, _ := h.dial()
	send(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-asked
	nc.Close()
	within(t, "the upstream hears that the client left", release)
	if e := next(t, entries); e.status != 499 || len(asked) != 0 {
		t.Errorf("%+v; asked %d times more", e, len(asked))
	}
}

func TestTrailersOfABodyThatIsHeldForARetryGoUpWithIt(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		h, _ := openPair(t, protocol, once, "")
		for range 4 {
			got := h.raw("PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n")
			if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "X-Trailer: 7\r\n") || !strings.Contains(got, "X-Got: 5 -1 ") {
				t.Errorf("got %q", got)
			}
		}
	})
}

func TestWithoutRetriesABodyStreams(t *testing.T) {
	got := make(chan string, 1)
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 2)
		_, _ = io.ReadFull(r.Body, b)
		got <- string(b)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	h := open(t, routeTo(url, ""))
	nc, r := h.dial()
	send(t, nc, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	if first := <-got; first != "he" {
		t.Errorf("got %q", first)
	}
	send(t, nc, "llo")
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		t.Errorf("%q %v", head, err)
	}
}

// TestARetryOfAHashedRequestGoesElsewhere: and back, once its own endpoint answers again.
func TestARetryOfAHashedRequestGoesElsewhere(t *testing.T) {
	var failing atomic.Int32
	failing.Store(-1)
	var urls []string
	for i := range int32(3) {
		urls = append(urls, fmt.Sprintf("%q", upstream(t, func(w http.ResponseWriter, _ *http.Request) {
			if failing.Load() == i {
				w.WriteHeader(503)
			}
			_, _ = fmt.Fprint(w, i)
		})))
	}
	hash := &stage{name: "route", request: func(x *core.Exchange) (*core.Reply, error) {
		x.HashKey = string(x.Request.Header.Get("X-Key"))
		return nil, nil
	}}
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"u\"\nbalance = \"consistent_hash\"\nendpoints = [%s]\nhealth.failures = 1000\nretry = { attempts = 1, budget = 100 }\n", strings.Join(urls, ","))+route("u"), through(hash))
	c := plainClient(t)
	for i := range 20 {
		ask := func() string {
			resp, got := h.do(c, h.request("GET", "/", nil, "X-Key", fmt.Sprint("key ", i)))
			if resp.StatusCode != 200 {
				t.Errorf("key %d: %s", i, resp.Status)
			}
			return got
		}
		failing.Store(-1)
		own := ask()
		failing.Store(int32(own[0] - '0'))
		other := ask()
		if other == own || ask() != other {
			t.Errorf("key %d went from %s to %s, and not again", i, own, other)
		}
		failing.Store(-1)
		if got := ask(); got != own {
			t.Errorf("key %d came back to %s, not to %s", i, got, own)
		}
	}
}

// TestOneRequestIsOneForFiltersAndCopies however often it is made.
func TestOneRequestIsOneForFiltersAndCopies(t *testing.T) {
	to, copies := shadow(t)
	var s steps
	counting := &stage{name: "count", request: func(x *core.Exchange) (*core.Reply, error) {
		s.add("request")
		x.Mirrors = append(x.Mirrors, core.Mirror{Upstream: "shadow"})
		return nil, nil
	}, response: func(x *core.Exchange) error {
		s.add(fmt.Sprint("response ", x.Response.Status))
		return nil
	}}
	watch, entries := watching()
	for _, size := range []int{5, 40 << 10} {
		h, p := openPair(t, "h1", once, fmt.Sprintf("[[upstream]]\nname = \"shadow\"\nendpoints = [%q]\n", to), through(counting, watch))
		for range 4 {
			resp, got := h.put("PUT", noise(size), true)
			if resp.StatusCode != 200 || got != string(noise(size)) {
				t.Errorf("%s, %d bytes", resp.Status, len(got))
			}
			if e := next(t, entries); e.status != 200 {
				t.Errorf("%+v", e)
			}
			if got := awaited(t, copies); !strings.Contains(got, "PUT") {
				t.Errorf("copied %.60q", got)
			}
		}
		if p.first.Load() == 0 {
			t.Error("nothing was repeated")
		}
		if len(entries) > 0 || len(copies) > 0 {
			t.Errorf("%d lines and %d copies too many", len(entries), len(copies))
		}
	}
	if got, want := s.String(), strings.TrimSpace(strings.Repeat("request response 200 ", 8)); strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("the filters saw %s", got)
	}
}

// TestAClientThatLeavesInARetryEndsIt: the endpoint that is asked then hears it, and nobody is asked after it.
func TestAClientThatLeavesInARetryEndsIt(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		to := upstream
		if protocol == "h2c" {
			to = upstreamH2C
		}
		var n atomic.Int32
		asked, left := make(chan struct{}, 10), make(chan struct{}, 10)
		url := to(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if n.Add(1) == 1 {
				w.WriteHeader(503)
				return
			}
			asked <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		})
		watch, entries := watching()
		h := open(t, routeTo(url, fmt.Sprintf("protocol = %q\nhealth.failures = 1000\nretry = { attempts = 5, budget = 100 }", protocol)), through(watch))
		nc, _ := h.dial()
		send(t, nc, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
		<-asked
		nc.Close()
		within(t, "the endpoint hears that the client left", left)
		if e := next(t, entries); e.status != 499 || n.Load() != 2 {
			t.Errorf("%+v after %d requests", e, n.Load())
		}
	})
}

// TestAnAnswerThatHasBegunIsNeverMadeAgain: streams of events and calls of gRPC among them; nor is a call that failed by its own status.
func TestAnAnswerThatHasBegunIsNeverMadeAgain(t *testing.T) {
	bothUpstreams(t, func(t *testing.T, protocol string) {
		to := upstream
		if protocol == "h2c" {
			to = upstreamH2C
		}
		var n atomic.Int32
		url := to(t, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			switch r.URL.Path {
			case "/events":
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: 1\n\n")
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case "/unavailable":
				w.Header().Set("Content-Type", "application/grpc")
				w.Header().Set("Grpc-Status", "14")
			case "/busy":
				w.WriteHeader(503)
			}
		})
		h := open(t, routeTo(url, fmt.Sprintf("protocol = %q\nhealth.failures = 1000\nretry = { attempts = 5, budget = 100 }", protocol)))
		c := h.client2()
		resp, err := c.Do(h.request("GET", "/events", nil, "Accept", "text/event-stream"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || string(body) != "data: 1\n\n" || err == nil || n.Swap(0) != 1 {
			t.Errorf("events: %s %q %v", resp.Status, body, err)
		}
		for path, want := range map[string]string{"/unavailable": "14", "/busy": "14"} {
			resp, _ := h.do(c, h.request("POST", path, strings.NewReader("\x00\x00\x00\x00\x00"), "Content-Type", "application/grpc", "TE", "trailers"))
			if code := resp.Header.Get("Grpc-Status") + resp.Trailer.Get("Grpc-Status"); resp.StatusCode == 200 && code != want || n.Swap(0) != 1 {
				t.Errorf("%s: %s, status %q of gRPC", path, resp.Status, code)
			}
		}
	})
}
