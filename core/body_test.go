package core_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/moongate/moongate/core"
)

func attached(r io.Reader, length int64) *core.Body {
	b := new(core.Body)
	b.Attach(r, length)
	return b
}

func TestABodyIsReadWholeWhateverItsPieces(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 100_000} {
		for _, length := range []int64{-1, int64(size)} {
			want := strings.Repeat("x", size)
			for name, r := range map[string]io.Reader{"all": strings.NewReader(want), "bytes": iotest.OneByteReader(strings.NewReader(want)),
				"end with data": iotest.DataErrReader(strings.NewReader(want))} {
				b := attached(r, length)
				got, err := b.Buffer(1 << 20)
				if err != nil || string(got) != want || b.Length() != int64(size) || b.Taken() != int64(size) {
					t.Fatalf("%s, %d of %d: %d bytes, length %d, taken %d, %v", name, size, length, len(got), b.Length(), b.Taken(), err)
				}
				for range 2 {
					again, err := io.ReadAll(b)
					if err != nil || string(again) != want || !b.Rewind() {
						t.Fatalf("%s, %d: read %d bytes, %v", name, size, len(again), err)
					}
				}
			}
		}
	}
}

func TestABodyBeyondTheLimitStillGoesOnWhole(t *testing.T) {
	want := strings.Repeat("abcdefghij", 5000)
	for _, length := range []int64{-1, int64(len(want))} {
		b := attached(iotest.HalfReader(strings.NewReader(want)), length)
		for range 2 {
			if got, err := b.Buffer(10_000); !errors.Is(err, core.ErrBodyTooLarge) || got != nil {
				t.Fatalf("length %d: %d bytes, %v", length, len(got), err)
			}
		}
		if got, err := io.ReadAll(b); err != nil || string(got) != want {
			t.Fatalf("length %d: %d bytes of %d, %v", length, len(got), len(want), err)
		}
	}
}

func TestABodyOfExactlyTheLimitFits(t *testing.T) {
	b := attached(strings.NewReader("12345"), -1)
	if got, err := b.Buffer(5); err != nil || string(got) != "12345" {
		t.Errorf("%q %v", got, err)
	}
}

func TestMaxEndsABodyThatAnnouncedNoLength(t *testing.T) {
	b := attached(strings.NewReader(strings.Repeat("x", 100)), -1)
	b.Max = 99
	if _, err := io.ReadAll(b); !errors.Is(err, core.ErrBodyTooLarge) {
		t.Errorf("reading gave %v", err)
	}
	b = attached(strings.NewReader(strings.Repeat("x", 100)), -1)
	b.Max = 100
	if got, err := io.ReadAll(b); err != nil || len(got) != 100 {
		t.Errorf("a body as long as Max: %d bytes, %v", len(got), err)
	}
}

func TestAnErrorOfTheSourceStays(t *testing.T) {
	cut := errors.New("cut")
	b := attached(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cut)), 8)
	for range 2 {
		if _, err := b.Buffer(100); !errors.Is(err, cut) {
			t.Fatalf("buffering gave %v", err)
		}
	}
	got, err := io.ReadAll(b)
	if string(got) != "half" || !errors.Is(err, cut) {
		t.Errorf("reading gave %q, %v", got, err)
	}
}

func TestWhatCannotBeReadAgainIsNotRewound(t *testing.T) {
	fresh := attached(strings.NewReader("x"), 1)
	if !fresh.Rewind() {
		t.Error("a body that nobody read cannot start from the beginning")
	}
	_, _ = fresh.Read(make([]byte, 1))
	if fresh.Rewind() {
		t.Error("a body whose source was read can start again")
	}
	failed := attached(iotest.ErrReader(errors.New("interrupted")), 1)
	_, _ = failed.Read(make([]byte, 1))
	if failed.Rewind() {
		t.Error("a body whose source has failed can start again")
	}
}

func TestReplacedBodiesHideTheirSource(t *testing.T) {
	b := attached(strings.NewReader("old"), 3)
	b.Replace([]byte("newer"))
	got, err := io.ReadAll(b)
	if err != nil || string(got) != "newer" || b.Length() != 5 || !b.Changed() || b.None() {
		t.Errorf("%q %v, length %d", got, err, b.Length())
	}
	b.Reset()
	if _, whole := b.Whole(); !b.None() || b.Changed() || b.Length() != 0 || !whole {
		t.Error("a body that was reset is not empty")
	}
}

func TestNoBodyIsNotAnEmptyBody(t *testing.T) {
	if b := attached(nil, 0); !b.None() || b.Length() != 0 {
		t.Error("no source is no body")
	}
	b := attached(strings.NewReader(""), -1)
	if b.None() {
		t.Error("a source that turns out empty was framing")
	}
	if _, err := b.Buffer(1); err != nil || b.None() {
		t.Error("it stays so when it was read")
	}
	var zero core.Body
	if _, whole := zero.Whole(); !zero.None() || zero.Length() != 0 || !whole || !zero.Rewind() {
		t.Error("the zero value is no body")
	}
}
