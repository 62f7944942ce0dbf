package core_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moongate/moongate/core"
)

// TestACopyIsWholeWithTheLastByte reads bodies as senders do: who knows the length stops there and never sees the end.
func TestACopyIsWholeWithTheLastByte(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		src    io.Reader
		length int64
		read   int // bytes, one at a time
		want   string
		whole  bool
	}{
		{"of known length", strings.NewReader("hello"), 5, 5, "hello", true},
		{"of known length, its end with the last byte", iotest.DataErrReader(strings.NewReader("hello")), 5, 5, "hello", true},
		{"of unknown length", iotest.DataErrReader(strings.NewReader("hello")), -1, 5, "hello", true},
		{"too long", strings.NewReader("hello, world"), -1, 12, "", false},
		{"broken off", io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(broken)), 5, 5, "", false},
		{"left unread", strings.NewReader("hello"), 5, 3, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b core.Body
			b.Attach(c.src, c.length)
			calls, got, whole := 0, "", false
			b.Copy(8, func(data []byte, is bool) { calls, got, whole = calls+1, string(data), is })
			for range c.read {
				if _, err := b.Read(make([]byte, 1)); err != nil {
					break
				}
			}
			b.Reset()
			if calls != 1 || got != c.want || whole != c.whole {
				t.Errorf("%d calls, %q %t", calls, got, whole)
			}
		})
	}
}
