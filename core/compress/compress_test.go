package compress_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
)

var all = compress.Options{Types: []string{"text/html", "application/json", "image/*"}, MinSize: 100, Encodings: []string{"zstd", "br", "gzip"}}

// exchange makes one whose answer has the header lines and the body.
func exchange(accept string, body io.Reader, length int64, lines ...string) *core.Exchange {
	x := new(core.Exchange)
	x.Request.Method = "GET"
	if accept != "" {
		x.Request.Header.Add("Accept-Encoding", accept)
	}
	x.Response.Status = 200
	x.Response.Header.Add("Content-Type", "text/html; charset=utf-8")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		x.Response.Header.Set(name, value)
	}
	x.Response.Body.Attach(body, length)
	return x
}

// lines shows an answer's header.
func lines(x *core.Exchange) string {
	var b strings.Builder
	for _, f := range x.Response.Header.Fields() {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func decode(t *testing.T, encoding string, r io.Reader) string {
	t.Helper()
	switch encoding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(8<<20)) // what browsers take
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestTheEncodingIsTheOneThatTheClientLikesBest(t *testing.T) {
	for _, c := range []struct{ accept, want string }{
		{"", ""},
		{"gzip", "gzip"},
		{"gzip, deflate, br, zstd", "zstd"},
		{"gzip, br", "br"},
		{"GZIP", "gzip"},
		{"x-gzip", "gzip"},
		{"deflate", ""},
		{"*", "zstd"},
		{"*;q=0.5, zstd;q=0.1", "br"},
		{"gzip;q=0", ""},
		{"gzip;q=0.000", ""},
		{"gzip;q=0.001", "gzip"},
		{"gzip;q=1.0, br;q=0.9, zstd;q=0.8", "gzip"},
		{"zstd;q=0, *", "br"},
		{"identity, gzip;q=0.5", ""},
		{"identity;q=0.5, gzip;q=0.5", "gzip"},
		{"identity;q=0", ""},
		{"gzip ; q=0.5", "gzip"},
		{"gzip;q=2", ""},
		{"gzip;q=", ""},
		{"gzip;q=0.1234", ""},
		{"gzip;level=9", ""},
		{"gzip;;", ""},
		{" , gzip", "gzip"},
	} {
		x := exchange(c.accept, strings.NewReader(strings.Repeat("x", 1000)), 1000)
		e := compress.New(all).Begin(x)
		got := string(x.Response.Header.Get("Content-Encoding"))
		if got != c.want || (e != nil) != (c.want != "") {
			t.Errorf("%q: got %q, want %q", c.accept, got, c.want)
		}
		if string(x.Response.Header.Get("Vary")) != "Accept-Encoding" {
			t.Errorf("%q: Vary is %q", c.accept, x.Response.Header.Get("Vary"))
		}
		if e != nil {
			e.End()
		}
	}
}

func TestSomeAnswersAreLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		alter func(*core.Exchange)
	}{
		{name: "encoded already", lines: []string{"Content-Encoding: br"}},
		{name: "part of the whole", lines: []string{"Content-Range: bytes 0-99/1000"}},
		{name: "206", alter: func(x *core.Exchange) { x.Response.Status = 206 }},
		{name: "204", alter: func(x *core.Exchange) { x.Response.Status = 204 }},
		{name: "304", alter: func(x *core.Exchange) { x.Response.Status = 304 }},
		{name: "not to be transformed", lines: []string{"Cache-Control: max-age=5, No-Transform"}},
		{name: "not to be transformed, says the client", alter: func(x *core.Exchange) { x.Request.Header.Add("Cache-Control", "no-transform") }},
		{name: "digest", lines: []string{"Content-Digest: sha-256=:x:"}},
		{name: "another type", lines: []string{"Content-Type: application/zip"}},
		{name: "no type", alter: func(x *core.Exchange) { x.Response.Header.Del("Content-Type") }},
		{name: "a type that begins alike", lines: []string{"Content-Type: text/html5"}},
		{name: "short", alter: func(x *core.Exchange) { x.Response.Body.Attach(strings.NewReader("short"), 5) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := exchange("gzip", strings.NewReader(strings.Repeat("x", 1000)), 1000, append(c.lines, `ETag: "v1"`)...)
			if c.alter != nil {
				c.alter(x)
			}
			length := x.Response.Body.Length()
			if compress.New(all).Begin(x) != nil || x.Response.Header.Has("Vary") || string(x.Response.Header.Get("ETag")) != `"v1"` || x.Response.Body.Length() != length {
				t.Errorf("it was changed: %s", lines(x))
			}
		})
	}
}

func TestOldClientsGetItAsItIsAndLearnThatItVaries(t *testing.T) {
	old := exchange("gzip", strings.NewReader(strings.Repeat("x", 1000)), 1000)
	old.Request.Proto = core.HTTP10
	if compress.New(all).Begin(old) != nil || old.Response.Header.Has("Content-Encoding") || !old.Response.Header.Has("Vary") {
		t.Errorf("%s", lines(old))
	}
}

func TestHEADHasTheHeaderOfGETAndNoBody(t *testing.T) {
	head := exchange("gzip", nil, 0)
	head.Request.Method = "HEAD"
	head.Response.Header.Add("ETag", `"v1"`)
	if compress.New(all).Begin(head) != nil || string(head.Response.Header.Get("Content-Encoding")) != "gzip" || !head.Response.Header.Has("Vary") ||
		head.Response.Header.Has("Content-Length") || string(head.Response.Header.Get("ETag")) != `W/"v1"` {
		t.Errorf("%s", lines(head))
	}
}

func TestTypesMayBeFamilies(t *testing.T) {
	for _, c := range []struct {
		types, is string
		want      bool
	}{
		{"image/*", "image/svg+xml", true}, {"image/*", "IMAGE/BMP;x=y", true}, {"image/*", "imagery/x", false}, {"image/*", "image/", false},
		{"*/*", "application/zip", true}, {"*/*", "application/grpc+proto", false}, {"application/*", "application/grpc", false}, {"text/html", "TEXT/html ;charset=x", true},
	} {
		x := exchange("gzip", strings.NewReader(strings.Repeat("x", 1000)), 1000, "Content-Type: "+c.is)
		e := compress.New(compress.Options{Types: []string{c.types}, Encodings: []string{"gzip"}}).Begin(x)
		if (e != nil) != c.want {
			t.Errorf("%s and %s: %v", c.types, c.is, e != nil)
		}
		if e != nil {
			e.End()
		}
	}
}

func TestTheHeaderTellsTheTruth(t *testing.T) {
	x := exchange("gzip", strings.NewReader(strings.Repeat("x", 1000)), 1000, "Content-Length: 1000", `ETag: "v1"`, "Accept-Ranges: bytes", "Vary: Origin")
	e := compress.New(all).Begin(x)
	defer e.End()
	h := &x.Response.Header
	if h.Has("Content-Length") || h.Has("Accept-Ranges") || string(h.Get("ETag")) != `W/"v1"` || x.Response.Body.Length() != -1 {
		t.Errorf("%s, %d bytes", lines(x), x.Response.Body.Length())
	}
	var vary []string
	for _, f := range h.Fields() {
		if string(f.Name) == "Vary" {
			vary = append(vary, string(f.Value))
		}
	}
	if strings.Join(vary, ", ") != "Origin, Accept-Encoding" {
		t.Errorf("Vary: %s", vary)
	}
	for _, c := range []struct{ line, want string }{{`ETag: W/"v1"`, `W/"v1"`}, {"Vary: accept-encoding", ""}, {"Vary: *", ""}} {
		x := exchange("gzip", strings.NewReader(strings.Repeat("x", 1000)), 1000, c.line)
		compress.New(all).Begin(x).End()
		if got := string(x.Response.Header.Get("ETag")); got != c.want || x.Response.Header.Has("Vary") && strings.Count(lines(x), "Vary") > 1 {
			t.Errorf("%s: %s", c.line, lines(x))
		}
	}
}

func TestWhatIsDecodedIsWhatWasSent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 300_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for _, body := range []string{strings.Repeat("moongate ", 50_000), string(random), strings.Repeat("y", 100), ""} {
		for _, name := range all.Encodings {
			for range 2 { // the second time with a used encoder
				x := exchange(name, iotest.HalfReader(strings.NewReader(body)), -1)
				e := compress.New(all).Begin(x)
				if got := decode(t, name, iotest.OneByteReader(&x.Response.Body)); got != body {
					t.Errorf("%s: %d bytes became %d", name, len(body), len(got))
				}
				e.End()
			}
			x := exchange(name, nil, 0)
			x.Response.Body.Replace([]byte(body))
			if e := compress.New(all).Begin(x); e != nil {
				if got := decode(t, name, &x.Response.Body); got != body {
					t.Errorf("%s: a body in memory of %d bytes became %d", name, len(body), len(got))
				}
				e.End()
			}
		}
	}
}

// pauses is a source that has one piece at a time at hand.
type pauses struct {
	pieces []string
	paused bool
}

func (p *pauses) AtHand() bool { return !p.paused }

func (p *pauses) Read(b []byte) (int, error) {
	if len(p.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.pieces[0])
	p.pieces, p.paused = p.pieces[1:], true
	return n, nil
}

func TestEachEventIsWholeOnceItIsRead(t *testing.T) {
	for _, name := range all.Encodings {
		x := exchange(name, &pauses{pieces: []string{"data: 1\n\n", "data: 2\n\n", "data: 3\n\n"}}, -1)
		e := compress.New(all).Begin(x)
		read, write := io.Pipe()
		events := make(chan string)
		go func() {
			defer close(events)
			var z io.Reader
			switch name {
			case "gzip":
				z, _ = gzip.NewReader(read)
			case "br":
				z = brotli.NewReader(read)
			case "zstd":
				d, _ := zstd.NewReader(read, zstd.WithDecoderConcurrency(1))
				defer d.Close()
				z = d
			}
			for {
				b := make([]byte, 9)
				if _, err := io.ReadFull(z, b); err != nil {
					return
				}
				events <- string(b)
			}
		}()
		buf := make([]byte, 64<<10)
		for i := 1; i <= 3; i++ {
			n, err := x.Response.Body.Read(buf)
			if err != nil {
				t.Fatal(name, err)
			}
			_, _ = write.Write(buf[:n])
			if got, want := <-events, fmt.Sprintf("data: %d\n\n", i); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		_, _ = io.Copy(write, &x.Response.Body)
		write.Close()
		for range events {
		}
		e.End()
	}
}

func TestACutStaysACut(t *testing.T) {
	cut := errors.New("cut")
	for _, name := range all.Encodings {
		x := exchange(name, io.MultiReader(strings.NewReader(strings.Repeat("x", 500)), iotest.ErrReader(cut)), 1000)
		e := compress.New(all).Begin(x)
		if _, err := io.ReadAll(&x.Response.Body); !errors.Is(err, cut) {
			t.Errorf("%s: got %v", name, err)
		}
		e.End()
	}
}

func TestTrailersStayWithTheBody(t *testing.T) {
	x := exchange("gzip", strings.NewReader(strings.Repeat("x", 500)), -1)
	trailer := &x.Response.Body.Trailer
	e := compress.New(all).Begin(x)
	defer e.End()
	trailer.Add("X-Checksum", "1")
	if !x.Response.Body.Trailer.Has("X-Checksum") {
		t.Error("the trailer is lost")
	}
}

func BenchmarkEncode(b *testing.B) {
	var page bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&page, "<li class=\"item-%d\"><a href=\"/products/%d\">Product %d costs %d</a></li>\n", i%7, i*31, i, i*i%977)
	}
	for _, name := range all.Encodings {
		b.Run(name, func(b *testing.B) {
			p := compress.New(compress.Options{Types: []string{"*/*"}, Encodings: []string{name}})
			b.SetBytes(int64(page.Len()))
			b.ReportAllocs()
			out := int64(0)
			for b.Loop() {
				x := exchange(name, bytes.NewReader(page.Bytes()), int64(page.Len()))
				e := p.Begin(x)
				out, _ = io.Copy(io.Discard, &x.Response.Body)
				e.End()
			}
			b.ReportMetric(float64(page.Len())/float64(out), "ratio")
		})
	}
}
