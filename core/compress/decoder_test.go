package compress_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
)

func encode(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "X-Gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "DEFLATE":
		w, _ = flate.NewWriter(&b, 5)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var codings = []string{"gzip", "X-Gzip", "deflate", "DEFLATE", "br", "zstd"} // DEFLATE without its frame

func TestABodyIsDecodedHoweverItComes(t *testing.T) {
	for _, coding := range codings {
		for _, text := range []string{"", "short", strings.Repeat("The same again. ", 20000)} {
			sent := encode(t, coding, text)
			for _, r := range []io.Reader{strings.NewReader(sent), iotest.OneByteReader(strings.NewReader(sent)), iotest.DataErrReader(strings.NewReader(sent))} {
				b := new(core.Body)
				b.Attach(r, int64(len(sent)))
				if !compress.Decode(b, []byte(coding)) {
					t.Fatalf("%s is not known", coding)
				}
				got, err := io.ReadAll(b)
				if err != nil || string(got) != text || b.Taken() != int64(len(sent)) {
					t.Errorf("%s: %d bytes of %d, %v; %d of %d taken", coding, len(got), len(text), err, b.Taken(), len(sent))
				}
			}
		}
	}
}

func TestABodyWithoutAByteIsEmptyInEveryCoding(t *testing.T) {
	for _, coding := range codings {
		b := new(core.Body)
		b.Attach(strings.NewReader(""), -1)
		compress.Decode(b, []byte(coding))
		if got, err := io.ReadAll(b); err != nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", coding, got, err)
		}
	}
}

func TestWhatIsNotEncodedAsItSaysIsAnError(t *testing.T) {
	gone := errors.New("gone")
	for _, coding := range codings {
		whole := encode(t, coding, strings.Repeat("some text ", 1000))
		for name, c := range map[string]struct {
			r    io.Reader
			want error
		}{
			"nonsense":     {strings.NewReader("this is no encoding at all, whichever it says it is"), compress.ErrCoding},
			"cut":          {strings.NewReader(whole[:len(whole)/2]), compress.ErrCoding},
			"source fails": {io.MultiReader(strings.NewReader(whole[:len(whole)/2]), iotest.ErrReader(gone)), gone},
		} {
			b := new(core.Body)
			b.Attach(c.r, -1)
			compress.Decode(b, []byte(coding))
			if _, err := io.ReadAll(b); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", coding, name, err, c.want)
			}
		}
	}
	b := new(core.Body)
	b.Attach(strings.NewReader("x"), 1)
	if compress.Decode(b, []byte("rot13")) || b.Length() != 1 {
		t.Error("an unknown coding was taken")
	}
}

func TestWhatHasBeenFlushedIsDecodedAtOnce(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		r, w := io.Pipe()
		b := new(core.Body)
		b.Attach(r, -1)
		compress.Decode(b, []byte(coding))
		var enc interface {
			io.Writer
			Flush() error
		}
		switch coding {
		case "gzip":
			enc = gzip.NewWriter(w)
		case "deflate":
			enc = zlib.NewWriter(w)
		case "br":
			enc = brotli.NewWriter(w)
		case "zstd":
			enc, _ = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		}
		go func() {
			io.WriteString(enc, "event")
			enc.Flush()
		}()
		buf := make([]byte, 100)
		if n, err := io.ReadAtLeast(b, buf, 5); err != nil || string(buf[:n]) != "event" {
			t.Errorf("%s: %q %v", coding, buf[:n], err)
		}
		r.Close()
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(0, []byte("\x1f\x8b\x08\x00"))
	f.Add(5, []byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		b := new(core.Body)
		b.Attach(bytes.NewReader(data), -1)
		compress.Decode(b, []byte(codings[uint(which)%uint(len(codings))]))
		_, _ = io.CopyN(io.Discard, b, 1<<20)
	})
}

// TestWhatABodyMayHoldIsItsText is about bodies that are small on the wire and very large without their coding.
func TestWhatABodyMayHoldIsItsText(t *testing.T) {
	for _, coding := range codings {
		sent := encode(t, coding, strings.Repeat("0", 1<<20))
		b := new(core.Body)
		b.Max = 100 << 10
		b.Attach(strings.NewReader(sent), int64(len(sent)))
		if !compress.Decode(b, []byte(coding)) {
			t.Fatalf("%s is not known", coding)
		}
		if got, err := io.ReadAll(b); !errors.Is(err, core.ErrBodyTooLarge) || len(got) > 200<<10 {
			t.Errorf("%s: %d bytes, %v", coding, len(got), err)
		}
	}
}
