package core_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/moongate/moongate/core"
)

// fill points every byte slice of v that a codec may have parsed at another byte of the buffer.
func fill(v reflect.Value, buf []byte, next *int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), buf, next)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.CanSet() {
			v.SetBytes(buf[*next : *next+1])
			*next++
		}
	}
}

func TestAnExchangeCanLeaveTheBufferItWasParsedFrom(t *testing.T) {
	from := make([]byte, 100)
	for i := range from {
		from[i] = byte(i)
	}
	var x core.Exchange
	n := 0
	fill(reflect.ValueOf(&x).Elem(), from, &n)
	at := func(i int) []byte { return from[i : i+1] }
	x.Request.Header.Append(at(n), at(n+1), core.KindOther)
	x.Response.Header.Append(at(n+2), at(n+3), core.KindOther)
	x.Request.Body.Trailer.Append(at(n+4), at(n+5), core.KindOther)
	x.Response.Body.Trailer.Append(at(n+6), at(n+7), core.KindOther)
	x.Request.Params = append(x.Request.Params, core.Param{Value: at(n + 8)})
	to := append([]byte(nil), from...)
	x.Rebase(from, to)
	clear(from)

	var got [][]byte
	collect(reflect.ValueOf(&x).Elem(), &got)
	for _, h := range []*core.Header{&x.Request.Header, &x.Response.Header, &x.Request.Body.Trailer, &x.Response.Body.Trailer} {
		got = append(got, h.Fields()[0].Name, h.Fields()[0].Value)
	}
	got = append(got, x.Request.Params[0].Value)
	if n < 9 || len(got) != n+9 {
		t.Fatalf("%d of %d slices seen", len(got), n+9)
	}
	for i, b := range got {
		if len(b) != 1 || b[0] != byte(i) || unsafe.SliceData(b) != &to[i] {
			t.Errorf("slice %d still lies in the old buffer: %v", i, b)
		}
	}
}

func collect(v reflect.Value, got *[][]byte) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(v.Field(i), got)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			*got = append(*got, v.Bytes())
		}
	}
}

func TestWhatLiesElsewhereStays(t *testing.T) {
	from, to, other := []byte("abcd"), []byte("ABCD"), []byte("efgh")
	var x core.Exchange
	x.Request.Host, x.Request.RawPath = other, from[1:3]
	x.Rebase(from, to)
	if string(x.Request.Host) != "efgh" || string(x.Request.RawPath) != "BC" || x.Request.Path != nil {
		t.Errorf("%q %q %v", x.Request.Host, x.Request.RawPath, x.Request.Path)
	}
}
