package core_test

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

type cutter struct{ cuts atomic.Int32 }

func (c *cutter) Cut() { c.cuts.Add(1) }

func TestALifelineCutsWhatIsHeldOnce(t *testing.T) {
	var l core.Lifeline
	var held, later, released cutter
	if !l.Hold(&released) || !l.Release() {
		t.Fatal("a whole lifeline does not hold")
	}
	if !l.Hold(&held) || l.Broken() {
		t.Fatal("a whole lifeline does not hold")
	}
	l.Break()
	l.Break()
	if held.cuts.Load() != 1 || released.cuts.Load() != 0 || !l.Broken() {
		t.Errorf("cut %d and %d times", held.cuts.Load(), released.cuts.Load())
	}
	if l.Release() || l.Hold(&later) || later.cuts.Load() != 0 {
		t.Error("a broken lifeline holds")
	}
}

func TestReleaseAndBreakAgree(t *testing.T) {
	for range 2000 {
		var l core.Lifeline
		var c cutter
		l.Hold(&c)
		var stays bool
		var wg sync.WaitGroup
		wg.Go(func() { stays = l.Release() })
		wg.Go(l.Break)
		wg.Wait()
		if stays == (c.cuts.Load() == 1) {
			t.Fatalf("released in time %v, cut %d times", stays, c.cuts.Load())
		}
	}
}

func TestIDsAreRandomAndKeepWhatIsBelieved(t *testing.T) {
	seen := map[string]bool{}
	x := new(core.Exchange)
	for range 1000 {
		x.Reset()
		x.NewIDs()
		for _, id := range []string{string(x.RequestID), string(x.TraceID)} {
			if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" || seen[id] {
				t.Fatalf("id %q", id)
			}
			seen[id] = true
		}
	}
	x.Reset()
	x.RequestID = []byte("mine")
	if x.NewIDs(); string(x.RequestID) != "mine" || len(x.TraceID) != 32 {
		t.Errorf("ids %s %s", x.RequestID, x.TraceID)
	}
}

// TestNothingOfAnExchangeOutlivesReset fills every field that can be reached and looks at what is left.
func TestNothingOfAnExchangeOutlivesReset(t *testing.T) {
	x := new(core.Exchange)
	occupy(reflect.ValueOf(x).Elem())
	x.Request.Header.Add("Secret", "1")
	x.Request.Body.Attach(strings.NewReader("secret"), 6)
	_, _ = x.Request.Body.Buffer(10)
	x.Request.Body.Trailer.Add("Secret", "1")
	x.Response.Header.Add("Secret", "1")
	x.Response.Body.Replace([]byte("secret"))
	x.Response.Body.Trailer.Add("Secret", "1")
	x.Vars.Set("secret", "1")
	x.Err = errors.New("secret")
	x.Lifeline.Hold(&cutter{})
	x.Lifeline.Break()
	x.Reset()
	empty(t, "Exchange", reflect.ValueOf(x).Elem())
	if x.Vars.Len() != 0 || x.Lifeline.Broken() || x.Request.Header.Len() != 0 || x.Response.Header.Len() != 0 ||
		x.Request.Body.Trailer.Len() != 0 || x.Response.Body.Trailer.Len() != 0 || !x.Request.Body.None() || !x.Response.Body.None() {
		t.Error("something of the last request is left")
	}
}

func occupy(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			occupy(f)
		case reflect.String:
			f.SetString("secret")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 3, 3))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
}

func empty(t *testing.T, path string, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), path+"."+v.Type().Field(i).Name
		switch {
		case !f.CanSet():
		case f.Kind() == reflect.Struct:
			empty(t, name, f)
		case f.Kind() == reflect.Slice:
			if f.Len() != 0 {
				t.Errorf("%s has %d items", name, f.Len())
			}
		case !f.IsZero():
			t.Errorf("%s is %v", name, f)
		}
	}
}

func TestVarsKeepTheirOrder(t *testing.T) {
	var v core.Vars
	v.Set("a", 1)
	v.Set("b", 2)
	v.Set("a", 3)
	v.Set("c", nil)
	v.Set("d", 4)
	v.Set("b", nil)
	if v.Len() != 2 || v.Get("a") != 3 || v.Get("b") != nil {
		t.Errorf("%d values, a is %v", v.Len(), v.Get("a"))
	}
	if key, value := v.At(1); key != "d" || value != 4 {
		t.Errorf("the second is %s %v", key, value)
	}
}

func TestInstantsAndWallClockAgree(t *testing.T) {
	now := core.Now()
	if off := time.Until(now.Wall()); off > time.Second || off < -time.Second {
		t.Errorf("now is off by %s", off)
	}
	if d := now.Add(time.Minute).Sub(now); d != time.Minute {
		t.Errorf("a minute is %s", d)
	}
}

func TestErrorsTellTheirCauseButNotInPublic(t *testing.T) {
	cause := errors.New("dial failed")
	err := core.Fail(502, "upstream cannot be reached", cause)
	if !errors.Is(err, cause) || err.Error() != "502 upstream cannot be reached: dial failed" || err.Public != "upstream cannot be reached" {
		t.Errorf("%v", err)
	}
	if got := core.Fail(404, "no route", nil).Error(); got != "404 no route" {
		t.Errorf("%s", got)
	}
}
