package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	pool "github.com/moongate/moongate/core/upstream"
)

// weather is an upstream that does as the path says.
func weather(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Echo", r.Header.Get("X-Tag"))
	switch r.URL.Path {
	case "/sum":
		h := crc32.NewIEEE()
		n, err := io.Copy(h, r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "%d %08x", n, h.Sum32())
	case "/early":
		w.WriteHeader(413)
		_, _ = io.WriteString(w, "early")
	case "/large":
		_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), 20_000))
	case "/slow":
		time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
		_, _ = io.WriteString(w, "slow")
	case "/cut":
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	default:
		_, _ = io.WriteString(w, "ok")
	}
}

// rower is one client in the storm.
type rower struct {
	t   *testing.T
	h   *house
	rng *rand.Rand
	nc  net.Conn
	r   *bufio.Reader
	n   int
}

func (c *rower) row() {
	for range 40 {
		if c.nc == nil {
			var err error
			if c.nc, err = net.Dial("tcp", c.h.addr); err != nil {
				c.t.Error(err)
				return
			}
			c.r = bufio.NewReader(patiently{c.nc})
		}
		c.n++
		[...]func(){c.get, c.get, c.pipeline, c.post, c.chunked, c.early, c.slow, c.leave, c.leaveUpload, c.leaveDownload, c.nonsense, c.cut}[c.rng.IntN(12)]()
	}
	c.part()
}

func (c *rower) part() {
	if c.nc != nil {
		c.nc.Close()
		c.nc = nil
	}
}

func (c *rower) write(s string) { _, _ = io.WriteString(c.nc, s) }

func (c *rower) tag() string { return fmt.Sprintf("%p-%d", c, c.n) }

func (c *rower) head(method, path, rest string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: a\r\nX-Tag: " + c.tag() + "\r\n" + rest
}

// read takes one answer, which must be the one to the request with the tag.
func (c *rower) read(want int, body, tag string) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Errorf("want %d: %v", want, err)
		c.part()
		return
	}
	got, err := io.ReadAll(resp.Body)
	if resp.StatusCode != want || err != nil || body != "" && string(got) != body || resp.Header.Get("X-Echo") != tag {
		c.t.Errorf("got %d %.40q %v for %s, want %d %.40q for %s", resp.StatusCode, got, err, resp.Header.Get("X-Echo"), want, body, tag)
	}
	if resp.Close {
		c.part()
	}
}

func (c *rower) get() {
	c.write(c.head("GET", "/", "\r\n"))
	c.read(200, "ok", c.tag())
}

func (c *rower) slow() {
	c.write(c.head("GET", "/slow", "\r\n"))
	c.read(200, "slow", c.tag())
}

func (c *rower) pipeline() {
	first := c.head("GET", "/large", "\r\n")
	one := c.tag()
	c.n++
	c.write(first + c.head("GET", "/", "\r\n"))
	if c.read(200, "", one); c.nc != nil {
		c.read(200, "ok", c.tag())
	}
}

func (c *rower) payload() ([]byte, string) {
	b := bytes.Repeat([]byte{byte(c.n)}, c.rng.IntN(200_000))
	return b, fmt.Sprintf("%d %08x", len(b), crc32.ChecksumIEEE(b))
}

func (c *rower) post() {
	b, sum := c.payload()
	c.write(c.head("POST", "/sum", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b)))
	c.read(200, sum, c.tag())
}

func (c *rower) chunked() {
	b, sum := c.payload()
	var raw strings.Builder
	raw.WriteString(c.head("PUT", "/sum", "Transfer-Encoding: chunked\r\n\r\n"))
	for rest := b; len(rest) > 0; {
		n := min(1+c.rng.IntN(30_000), len(rest))
		fmt.Fprintf(&raw, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	c.write(raw.String() + "0\r\n\r\n")
	c.read(200, sum, c.tag())
}

func (c *rower) early() {
	c.write(c.head("POST", "/early", "Content-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1000)))
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil || resp.StatusCode != 413 || resp.Header.Get("X-Echo") != c.tag() {
		c.t.Errorf("early: %v %v", resp, err)
	}
	c.part()
}

func (c *rower) leave() {
	c.write(c.head("GET", "/slow", "\r\n"))
	time.Sleep(time.Duration(c.rng.IntN(60)) * time.Millisecond)
	c.part()
}

func (c *rower) leaveUpload() {
	c.write(c.head("POST", "/sum", "Content-Length: 100000\r\n\r\nhello"))
	c.part()
}

func (c *rower) leaveDownload() {
	c.write(c.head("GET", "/large", "\r\n"))
	_, _ = c.r.ReadByte()
	c.part()
}

func (c *rower) nonsense() {
	c.write(c.head("POST", "/sum", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"))
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil || resp.StatusCode != 400 {
		c.t.Errorf("nonsense: %v %v", resp, err)
	}
	c.part()
}

func (c *rower) cut() {
	c.write(c.head("GET", "/cut", "\r\n"))
	resp, err := http.ReadResponse(c.r, nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil && resp.StatusCode != 502 {
		c.t.Error("a cut answer ended cleanly")
	}
	c.part()
}

func TestAStormLeavesNothingBehind(t *testing.T) {
	url := upstreamQuiet(t, weather)
	h := open(t, fmt.Sprintf("[[upstream]]\nname = \"up\"\nendpoints = [%q]\nbalance = \"p2c_ewma\"\npool = { connections = 8, wait = \"4m\" }\ntimeouts = { total = \"5m\" }\n", url)+route("up"))
	var rowers sync.WaitGroup
	for i := range 16 {
		c := &rower{t: t, h: h, rng: rand.New(rand.NewPCG(uint64(i), 1))}
		rowers.Go(c.row)
	}
	rowers.Wait()
	eventually(t, "no request is in flight, no connection taken, and nothing under way at the endpoint", func() bool {
		taken := 0
		h.Generation().EachUpstream(func(u *pool.Upstream) {
			for _, e := range u.Endpoints() {
				s := u.Pool(e).Stats()
				taken += s.Open - s.Idle + int(u.Load(e).Active())
			}
		})
		return h.Server().InFlight() == 0 && h.Server().Connections() == 0 && taken == 0
	})
	if got := h.body("/"); got != "ok" {
		t.Errorf("afterwards %q", got)
	}
}

// upstreamQuiet is upstream for handlers that abort on purpose.
func upstreamQuiet(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}
