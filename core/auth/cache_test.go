package auth_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
)

func TestRememberedTokenIsNeverServedPastItsTime(t *testing.T) {
	clock := now
	v := verifier(t, auth.JWTOptions{Clock: func() time.Time { return clock }, Leeway: time.Second})
	text := token(`{"nbf":1700000000,"exp":1700000010.5}`)
	steps := []struct {
		at   time.Duration
		want error
	}{
		{0, nil}, {9 * time.Second, nil}, {11500*time.Millisecond - 1, nil}, {11500 * time.Millisecond, auth.ErrExpired},
		{time.Hour, auth.ErrExpired}, {-time.Second, nil}, {-time.Second - 1, auth.ErrInvalid}, {time.Second, nil},
	}
	var first *auth.Token
	for _, step := range steps {
		clock = now.Add(step.at)
		verified, err := v.Verify(text)
		if !errors.Is(err, step.want) {
			t.Errorf("at %s: got %v, want %v", step.at, err, step.want)
		}
		if err == nil && first == nil {
			first = verified
		} else if err == nil && verified != first {
			t.Errorf("at %s: verified again", step.at)
		}
	}
	if at, ok := first.Expires(); !ok || !at.Equal(now.Add(11500*time.Millisecond)) {
		t.Errorf("expires at %v, %v", at, ok)
	}
}

func TestCacheIsBoundedAndBelongsToItsVerifier(t *testing.T) {
	v := verifier(t, auth.JWTOptions{Cache: 8})
	first, err := v.Verify(token(`{"n":0}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 1000; i++ {
		if _, err := v.Verify(token(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := v.Verify(token(`{"n":0}`)); err != nil || again == first {
		t.Errorf("token kept beside a thousand others in a cache of eight, %v", err)
	}
	stranger := verifier(t, auth.JWTOptions{Secret: []byte(strings.Repeat("x", 32))})
	if _, err := stranger.Verify(token(`{"n":0}`)); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("another key: %v", err)
	}
	none := verifier(t, auth.JWTOptions{Cache: -1})
	a, err1 := none.Verify(token(`{}`))
	b, err2 := none.Verify(token(`{}`))
	if err1 != nil || err2 != nil || a == b {
		t.Errorf("without a cache: %p, %p, %v, %v", a, b, err1, err2)
	}
}

func TestVerifyKeepsNoViewOfTheText(t *testing.T) {
	v := verifier(t, auth.JWTOptions{})
	good, other := token(`{"sub":"tom"}`), token(`{"sub":"eve"}`)
	buffer := []byte(good)
	verified, err := v.Verify(view(buffer))
	if err != nil {
		t.Fatal(err)
	}
	copy(buffer, other)
	if again, err := v.Verify(good); err != nil || again != verified {
		t.Errorf("forgotten with its buffer: %v", err)
	}
	eve, err := v.Verify(view(buffer))
	if err != nil {
		t.Fatal(err)
	}
	if sub, _ := eve.Claims.Get("sub"); sub.Text() != "eve" {
		t.Errorf("sub is %q", sub.Text())
	}
}

func TestAttachmentIsMadeOnceAndShared(t *testing.T) {
	v := verifier(t, auth.JWTOptions{})
	text := token(`{"sub":"tom"}`)
	var group sync.WaitGroup
	kept := make([]any, 8)
	for i := range kept {
		group.Go(func() {
			verified, err := v.Verify(text)
			if err != nil {
				t.Error(err)
				return
			}
			kept[i] = verified.Attach(i)
		})
	}
	group.Wait()
	verified, err := v.Verify(text)
	if err != nil {
		t.Fatal(err)
	}
	if made := verified.Attachment(); made != verified.Attach(99) {
		t.Errorf("attachment %v was replaced", made)
	}
	fresh, err := v.Verify(token(`{}`))
	if err != nil || fresh.Attachment() != nil {
		t.Errorf("a new token has an attachment %v, %v", fresh.Attachment(), err)
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	v := verifier(t, auth.JWTOptions{})
	text := token(`{"sub":"tom","exp":1900000000}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := v.Verify(text); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkVerifyRemembered(b *testing.B) {
	v := verifier(b, auth.JWTOptions{Clock: time.Now})
	text := token(`{"sub":"tom","role":"admin","iss":"https://id.example.com","iat":1700000000,"exp":4000000000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(text); err != nil {
			b.Fatal(err)
		}
	}
}
