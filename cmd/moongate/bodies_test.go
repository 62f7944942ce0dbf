package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serving runs a whole gateway within the test, and gives its address.
func serving(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	log := newTranscript()
	a, err := openApp(runOptions{config: filepath.Join(dir, "gateway.toml"), listen: "127.0.0.1:0", admin: "127.0.0.1:0"}, streams{io.Discard, log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://" + a.gateway.Addresses()[0]
}

// wires are the ways in and out that a body can take.
var wires = []struct {
	name    string
	in, out bool // HTTP/2
}{{"h1 to h1", false, false}, {"h2 to h1", true, false}, {"h1 to h2", false, true}, {"h2 to h2", true, true}}

// between starts an upstream and a gateway with one script in front of it, and gives a client and the gateway's URL.
func between(t *testing.T, in, out bool, script string, upstream http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	up := httptest.NewUnstartedServer(upstream)
	up.Config.Protocols = new(http.Protocols)
	up.Config.Protocols.SetHTTP1(true)
	up.Config.Protocols.SetUnencryptedHTTP2(true)
	up.Start()
	t.Cleanup(up.Close)
	protocol := "http1"
	if out {
		protocol = "h2c"
	}
	toml := "[log]\naccess = \"off\"\n[[upstream]]\nname = \"main\"\nendpoints = [\"" + up.URL + "\"]\n"
	if out {
		toml += "protocol = \"" + protocol + "\"\n"
	}
	toml += "[[route]]\nname = \"all\"\npath = \"/**\"\nupstream = \"main\"\n"
	url := serving(t, map[string]string{"gateway.toml": toml, "scripts/filter.lua": script})
	transport := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!in)
	transport.Protocols.SetUnencryptedHTTP2(in)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}, url
}

const upper = `return { stage = "transform",
  on_request_chunk = function(chunk) return chunk:upper() end,
  on_response_chunk = function(chunk, ctx, conf, last) return chunk:lower() .. (last and "." or "") end }`

func TestChunksGoOnAsTheyCome(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			seen := make(chan string)
			client, url := between(t, w.in, w.out, upper, func(rw http.ResponseWriter, r *http.Request) {
				buf := make([]byte, 100)
				for {
					n, err := r.Body.Read(buf)
					if n > 0 {
						seen <- string(buf[:n])
					}
					if err != nil {
						break
					}
				}
				for _, piece := range []string{"ONE", "TWO"} {
					io.WriteString(rw, piece)
					http.NewResponseController(rw).Flush()
					<-seen
				}
			})
			r, body := io.Pipe()
			go func() {
				for _, piece := range []string{"one", "two"} {
					io.WriteString(body, piece)
					if got := <-seen; got != strings.ToUpper(piece) {
						t.Errorf("the upstream saw %q", got)
					}
				}
				body.Close()
			}()
			resp, err := client.Post(url, "text/plain", r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 || resp.ContentLength >= 0 {
				t.Errorf("status %d, length %d", resp.StatusCode, resp.ContentLength)
			}
			buf := make([]byte, 100)
			for _, want := range []string{"one", "two"} {
				n, err := io.ReadAtLeast(resp.Body, buf, len(want))
				if err != nil || string(buf[:n]) != want {
					t.Fatalf("read %q, %v", buf[:n], err)
				}
				seen <- ""
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "." {
				t.Errorf("at the end %q, %v", rest, err)
			}
		})
	}
}

// endless is an upload that goes on until nobody takes it.
type endless struct{ sent atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), 8<<10)
	e.sent.Add(int64(n))
	return n, nil
}

func TestAnUploadBeyondItsCapIsEndedWhileItStreams(t *testing.T) {
	const cap = `return { stage = "transform", on_request_chunk = function(chunk, ctx)
  ctx.size = (ctx.size or 0) + #chunk
  if ctx.size > 200000 then return gw.respond(413, "upload too large") end
end }`
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			aborted := make(chan int64, 1)
			client, url := between(t, w.in, w.out, cap, func(_ http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				if err == nil {
					n = -1
				}
				aborted <- n
			})
			resp, err := client.Post(url, "text/plain", &endless{})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 413 || !strings.Contains(string(text), "upload too large") {
				t.Errorf("status %d, %s", resp.StatusCode, text)
			}
			if n := <-aborted; n < 0 || n > 200000 {
				t.Errorf("the upstream read %d bytes and then no error, or more than the cap", n)
			}
		})
	}
}

func TestAnAnswerWhoseFilterFailsIsCut(t *testing.T) {
	const script = `return { stage = "transform", on_response_chunk = function(chunk, ctx)
  ctx.size = (ctx.size or 0) + #chunk
  if ctx.size > 100000 then error("broken") end
end }`
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			client, url := between(t, w.in, w.out, script, func(rw http.ResponseWriter, _ *http.Request) {
				io.WriteString(rw, strings.Repeat("x", 1<<20))
			})
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 200 || err == nil || len(text) > 100000 {
				t.Errorf("status %d, %d bytes, %v", resp.StatusCode, len(text), err)
			}
			if again, err := client.Get(url + "/again"); err != nil || again.StatusCode != 200 {
				t.Errorf("the next request: %v", err)
			} else {
				again.Body.Close()
			}
		})
	}
}

func TestASlowReaderStopsTheSender(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			var sent atomic.Int64
			gone := make(chan struct{})
			client, url := between(t, w.in, w.out, upper, func(rw http.ResponseWriter, _ *http.Request) {
				defer close(gone)
				piece := []byte(strings.Repeat("x", 64<<10))
				for sent.Load() < 1<<30 {
					n, err := rw.Write(piece)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			for before := int64(-1); before != sent.Load(); { // until nothing moves any more
				before = sent.Load()
				<-time.After(300 * time.Millisecond)
			}
			if n := sent.Load(); n > 128<<20 {
				t.Errorf("%d MiB were sent to a client that reads nothing", n>>20)
			}
			resp.Body.Close()
			<-gone
		})
	}
}
