//go:build e2e

package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/conf"
)

// bodySize is how long the long bodies are: 256 MiB, or what MOONGATE_BODY_SIZE says.
func bodySize(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("MOONGATE_BODY_SIZE")
	if text == "" {
		return 256 << 20
	}
	n, err := conf.ParseSize(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// torrent gives a body that is different everywhere.
type torrent struct {
	left int64
	at   uint64
	sum  uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (e *torrent) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left, 32<<10))
	for i := 0; i < n; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], e.at*0x9e3779b97f4a7c15)
		copy(p[i:n], word[:])
		e.at++
	}
	e.sum = crc32.Update(e.sum, castagnoli, p[:n])
	e.left -= int64(n)
	return n, nil
}

// sum reads a body to its end.
func sum(r io.Reader) (n int64, crc uint32, err error) {
	buf := make([]byte, 64<<10)
	for {
		m, err := r.Read(buf)
		n += int64(m)
		crc = crc32.Update(crc, castagnoli, buf[:m])
		if err == io.EOF {
			return n, crc, nil
		} else if err != nil {
			return n, crc, err
		}
	}
}

// store is an upstream that takes bodies and gives some, and says what they were.
func store(w http.ResponseWriter, r *http.Request) {
	if r.Method == "PUT" {
		n, crc, err := sum(r.Body)
		fmt.Fprintf(w, "%d %08x %v", n, crc, err)
		return
	}
	size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.URL.Query().Has("length") {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	w.Header().Set("Trailer", "X-Sum")
	body := &torrent{left: size}
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{body}, make([]byte, 64<<10))
	w.Header().Set("X-Sum", fmt.Sprintf("%08x", body.sum))
}

const longBodies = `
[[listener]]
address = "127.0.0.1:0"
[[listener]]
name = "secure"
address = "127.0.0.1:0"
[listener.tls]
self_signed = ["localhost"]
[http]
max_body = "1024GiB"
min_rate_grace = "60s"
[[route]]
name = "all"
path = "/**"
upstream = %q
[route.timeouts]
connect = "10s"
`

// speaking is a client of one protocol alone.
func speaking(t *testing.T, protocol string) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	switch protocol {
	case "h1":
		tr.Protocols.SetHTTP1(true)
	case "h2":
		tr.Protocols.SetHTTP2(true)
	case "h2c":
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// maxGrowth is how much more memory than at rest the gateway may take for bodies, however long they are.
const maxGrowth = 64 << 20

func TestE2ELongBodiesTakeNoMemory(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(store))
	t.Cleanup(up.Close)
	size := bodySize(t)
	b := startBinary(t, fmt.Sprintf(longBodies, up.URL))
	plain, secure := "http://"+b.addrs[0], "https://"+b.addrs[1]
	rest := b.memory("VmRSS")
	for _, c := range []struct {
		name, protocol, url string
		size                int64
		length              bool
	}{
		{"h1", "h1", plain, size, true},
		{"h1 in chunks", "h1", plain, size / 4, false},
		{"h1 over TLS", "h1", secure, size / 4, true},
		{"h2 without TLS", "h2c", plain, size / 4, true},
		{"h2 of unknown length", "h2", secure, size / 4, false},
	} {
		client := speaking(t, c.protocol)
		t.Run("upload "+c.name, func(t *testing.T) {
			body := &torrent{left: c.size}
			r, err := http.NewRequest("PUT", c.url, struct{ io.Reader }{body})
			if err != nil {
				t.Fatal(err)
			}
			if r.ContentLength = -1; c.length {
				r.ContentLength = c.size
			}
			got := answerOf(t, client, r)
			if want := fmt.Sprintf("%d %08x <nil>", c.size, body.sum); got != want {
				t.Errorf("the upstream got %s, want %s", got, want)
			}
		})
		t.Run("download "+c.name, func(t *testing.T) {
			url := fmt.Sprintf("%s/?size=%d", c.url, c.size)
			if c.length {
				url += "&length"
			}
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, crc, err := sum(resp.Body)
			if want := crcOf(c.size); n != c.size || crc != want || err != nil || c.length != (resp.ContentLength == c.size) {
				t.Errorf("got %d bytes %08x (announced %d) %v, want %d %08x", n, crc, resp.ContentLength, err, c.size, want)
			}
			if s := resp.Trailer.Get("X-Sum"); !c.length && s != fmt.Sprintf("%08x", crc) {
				t.Errorf("the trailer says %q", s)
			}
		})
	}
	most := b.memory("VmHWM")
	t.Logf("bodies of up to %d MiB: %.1f MiB at rest, at most %.1f MiB", size>>20, mib(rest), mib(most))
	if most-rest > maxGrowth {
		t.Errorf("the gateway took %.1f MiB more than at rest", mib(most-rest))
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// crcOf is the sum of a torrent's first bytes.
func crcOf(size int64) uint32 {
	e := &torrent{left: size}
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{e})
	return e.sum
}

func answerOf(t *testing.T, c *http.Client, r *http.Request) string {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fountain is an upstream that writes as fast as it is read, and counts.
type fountain struct {
	written atomic.Int64
	ended   chan error
}

func (f *fountain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("length") {
		w.Header().Set("Content-Length", strconv.FormatInt(1<<40, 10))
	}
	piece := make([]byte, 32<<10)
	for {
		n, err := w.Write(piece)
		if f.written.Add(int64(n)); err != nil {
			f.ended <- err
			return
		}
	}
}

func TestE2EASlowReaderHoldsTheUpstreamBack(t *testing.T) {
	const (
		slowly  = 10 << 10 // bytes a second
		bounded = 48 << 20 // what the buffers of four sockets, two windows and the gateway may hold
	)
	f := &fountain{ended: make(chan error, 10)}
	up := httptest.NewServer(f)
	t.Cleanup(up.Close)
	b := startBinary(t, fmt.Sprintf(longBodies, up.URL))
	rest := b.memory("VmRSS")
	for _, c := range []struct{ name, protocol, query string }{{"length", "h1", "?length"}, {"chunks", "h1", ""}, {"h2", "h2c", ""}} {
		t.Run(c.name, func(t *testing.T) {
			f.written.Store(0)
			client := speaking(t, c.protocol)
			client.Transport.(*http.Transport).DialContext = (&net.Dialer{Timeout: patience}).DialContext
			resp, err := client.Get("http://" + b.addrs[0] + "/" + c.query)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			read, second := 0, make([]byte, slowly)
			before, calm := int64(-1), 0
			for began := time.Now(); calm < 3; { // it has filled what there is, and now goes at the reader's pace
				n, err := io.ReadFull(resp.Body, second)
				if read += n; err != nil {
					t.Fatalf("after %d bytes: %v", read, err)
				}
				<-time.After(time.Second)
				now := f.written.Load()
				if now-before < 1<<20 {
					calm++
				} else {
					calm = 0
				}
				if before = now; now > bounded || time.Since(began) > time.Minute {
					t.Fatalf("%d bytes were read, and the upstream wrote %d", read, now)
				}
			}
			t.Logf("%d bytes read, %.1f MiB written by the upstream", read, mib(f.written.Load()))
			resp.Body.Close()
			client.CloseIdleConnections()
			select {
			case err := <-f.ended:
				if errors.Is(err, http.ErrContentLength) {
					t.Error(err)
				}
			case <-time.After(4 * patience):
				t.Error("the upstream goes on though the client has left")
			}
		})
	}
	if grown := b.memory("VmHWM") - rest; grown > maxGrowth {
		t.Errorf("the gateway took %.1f MiB more than at rest", mib(grown))
	}
}
