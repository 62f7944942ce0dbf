package http1

import (
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/moongate/moongate/core"
)

// FuzzChunked holds the chunk reader against net/http's: what we accept, it reads as the same body; and pieces change nothing.
func FuzzChunked(f *testing.F) {
	for _, seed := range []string{"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A;x=y;z=\"q\\\"\"\r\n0123456789\r\n00\r\nT: v\r\n\r\nrest", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, raw string, step int) {
		read := func(step int) (string, int, error) {
			conn, _ := connOf(raw, step)
			var trailer core.Header
			var b BodyReader
			b.Start(conn, Framing{Length: -1, Chunked: true}, &trailer)
			data, err := io.ReadAll(&b)
			return string(data), trailer.Len(), err
		}
		body, trailers, err := read(0)
		body2, trailers2, err2 := read(max(step&31, 1))
		if (err == nil) != (err2 == nil) || err == nil && (body != body2 || trailers != trailers2) {
			t.Fatalf("in pieces it reads %q %v, whole %q %v", body2, err2, body, err)
		}
		if err != nil {
			return
		}
		theirs, theirErr := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(raw)))
		if theirErr != nil || string(theirs) != body {
			t.Fatalf("net/http reads %q %v, we %q", theirs, theirErr, body)
		}
	})
}
