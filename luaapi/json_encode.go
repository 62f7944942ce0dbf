package luaapi

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// encodeJSON appends v as JSON. Arrays are the tables that decoding or gw.json.array marked and those with the keys 1 to n;
// every other table is an object. Members keep the order in which they were set. More than limit bytes are an error: a small table may
// hold one long string many times. On an error dst is returned as it was.
func encodeJSON(dst []byte, v lua.LValue, limit int) ([]byte, error) {
	e := jsonWriter{limit: limit}
	return e.finish(dst, v)
}

// stringLimit is the longest string that a call's VM may make.
func stringLimit(a vm.Args) int { return a.VM.Base().Limits().String }

type jsonWriter struct {
	limit int
	mask  *masker // nil: nothing is hidden
}

// encodeMasked is encodeJSON for what is logged.
func encodeMasked(dst []byte, v lua.LValue, limit int, mask *masker) ([]byte, error) {
	e := jsonWriter{limit, mask}
	return e.finish(dst, v)
}

// finish appends v, or nothing on an error.
func (e *jsonWriter) finish(dst []byte, v lua.LValue) ([]byte, error) {
	out, err := e.value(dst, v, 0)
	if err == nil && len(out) > e.limit {
		err = e.tooLong()
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (e *jsonWriter) tooLong() error {
	return errors.New("its JSON is longer than the limit of " + strconv.Itoa(e.limit) + " bytes")
}

func (e *jsonWriter) value(dst []byte, v lua.LValue, depth int) ([]byte, error) {
	if len(dst) > e.limit {
		return dst, e.tooLong()
	}
	switch v := v.(type) {
	case lua.LString:
		return appendJSONString(dst, e.mask.text(string(v))), nil
	case lua.LNumber:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return dst, errors.New(vm.NumberText(f) + " has no JSON form")
		}
		return vm.AppendNumber(dst, f), nil
	case lua.LBool:
		return strconv.AppendBool(dst, bool(v)), nil
	case *lua.LNilType:
		return append(dst, "null"...), nil
	case *lua.LTable:
		if depth++; depth > maxJSONDepth {
			return dst, errors.New("a table nested deeper than 100, or within itself")
		}
		return e.table(dst, vm.Thaw(v), depth)
	case *lua.LUserData:
		switch value := v.Value.(type) {
		case jsonNullValue:
			return append(dst, "null"...), nil
		case bigNumber:
			return append(dst, value...), nil
		}
		return dst, errors.New("a handle has no JSON form")
	}
	return dst, errors.New("a " + v.Type().String() + " has no JSON form")
}

func (e *jsonWriter) table(dst []byte, t *lua.LTable, depth int) ([]byte, error) {
	n := t.MaxN()
	marked := t.Metatable == lua.LValue(jsonArray)
	if n == 0 && !marked {
		return e.object(dst, t, depth)
	}
	if key, _ := t.Next(lua.LNumber(n)); n > 0 && key != lua.LNil {
		return dst, errors.New("a table with both items and the key " + describe(key))
	} else if key, _ = t.Next(lua.LNil); n == 0 && key != lua.LNil {
		return dst, errors.New("an array with the key " + describe(key))
	}
	dst = append(dst, '[')
	for i := 1; i <= n; i++ {
		if i > 1 {
			dst = append(dst, ',')
		}
		item := t.RawGetInt(i)
		if item == lua.LNil {
			return dst, errors.New("an array with a hole at " + strconv.Itoa(i) + ": gw.json.null keeps its place")
		}
		var err error
		if dst, err = e.value(dst, item, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (e *jsonWriter) object(dst []byte, t *lua.LTable, depth int) ([]byte, error) {
	dst = append(dst, '{')
	first := true
	for _, key := range vm.Keys(t) {
		v := t.RawGetH(key)
		if v == lua.LNil {
			continue
		}
		name, ok := key.(lua.LString)
		if !ok {
			return dst, errors.New("an object with the key " + describe(key) + ": names are strings")
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendJSONString(dst, string(name)), ':')
		if e.mask.hides(string(name)) {
			v = lua.LString(maskText)
		}
		var err error
		if dst, err = e.value(dst, v, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendJSONString appends s in quotes. Bytes that are not UTF-8 become U+FFFD, so that the text is always JSON.
func appendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; ; {
		if i += plainLength(core.Bytes(s[i:])); i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
