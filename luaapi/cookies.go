package luaapi

import (
	"bytes"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
)

// req.cookies: a view on the Cookie lines, and req.params on the route's path.

var (
	cookiesMeta = metatable("__index", goFunction(cookiesGet), "__newindex", goFunction(cookiesSet), "__pairs", goFunction(cookiesPairs))
	paramsMeta  = metatable("__index", goFunction(paramsGet), "__newindex", goFunction(paramsSet), "__pairs", goFunction(paramsPairs))
)

func cookiesFrame(L *lua.LState) *frame {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*cookiesHandle); ok {
			return (*frame)(h).alive(L)
		}
	}
	raise(L, "this works on req.cookies")
	return nil
}

// eachCookie walks the pairs of all Cookie lines (RFC 6265 section 5.4) until do tells false. Values are as they stand.
func eachCookie(h *core.Header, do func(name, value []byte) bool) {
	for _, field := range h.Fields() {
		if field.Kind != core.KindCookie {
			continue
		}
		if !eachPair(field.Value, do) {
			return
		}
	}
}

// eachPair walks the pairs of one line until do tells false, and tells whether it came to the end.
func eachPair(line []byte, do func(name, value []byte) bool) bool {
	for more := true; more; {
		var pair []byte
		pair, line, more = bytes.Cut(line, []byte(";"))
		name, value, _ := bytes.Cut(core.Trim(pair), []byte("="))
		if len(name) > 0 && !do(name, value) {
			return false
		}
	}
	return true
}

func cookiesGet(L *lua.LState) int {
	f := cookiesFrame(L)
	key := wanted(L, "a cookie's name", L.Get(2))
	var found lua.LValue = lua.LNil
	eachCookie(f.requestHeader(), func(name, value []byte) bool {
		if string(name) != key {
			return true
		}
		found = str(value)
		return false
	})
	L.Push(found)
	return 1
}

// cookiesSet writes the Cookie line anew; cookies that nobody assigned to keep their text and order.
func cookiesSet(L *lua.LState) int {
	f := cookiesFrame(L)
	f.writable(L, "req.cookies")
	key := wanted(L, "a cookie's name", L.Get(2))
	checkCookie(L, "a cookie's name", key, !core.IsToken(core.Bytes(key)))
	value, set := "", L.Get(3) != lua.LNil
	if set {
		value = wanted(L, "req.cookies."+key, L.Get(3))
		checkCookie(L, "the value of cookie "+key, value, !core.IsValue(core.Bytes(value)))
	}
	var line []byte
	put := func(name, value []byte) bool {
		if line != nil {
			line = append(line, "; "...)
		}
		line = append(append(append(line, name...), '='), value...)
		return true
	}
	eachCookie(&f.x.Request.Header, func(name, old []byte) bool {
		if string(name) != key {
			return put(name, old)
		}
		if set {
			put(name, []byte(value))
			set = false
		}
		return true
	})
	if set {
		put([]byte(key), []byte(value))
	}
	if f.x.Request.Keep(); line == nil {
		f.x.Request.Header.DelKind(core.KindCookie)
	} else {
		f.x.Request.Header.SetBytes("Cookie", line)
	}
	return 0
}

func checkCookie(L *lua.LState, what, text string, wrong bool) {
	if wrong || bytes.ContainsAny(core.Bytes(text), ";\r\n\x00") {
		raise(L, what+" has a ';', a line break (CR or LF), NUL or another sign in it that no cookie may have")
	}
}

func cookiesPairs(L *lua.LState) int {
	var list []lua.LValue
	eachCookie(cookiesFrame(L).requestHeader(), func(name, value []byte) bool {
		list = append(list, str(name), str(value))
		return true
	})
	return pushPairs(L, list)
}

func paramsFrame(L *lua.LState) *frame {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*paramsHandle); ok {
			return (*frame)(h).alive(L)
		}
	}
	raise(L, "this works on req.params")
	return nil
}

func paramsGet(L *lua.LState) int {
	f := paramsFrame(L)
	key := wanted(L, "a parameter's name", L.Get(2))
	for i := range f.x.Request.Params {
		if p := &f.x.Request.Params[i]; p.Name == key {
			L.Push(str(p.Value))
			return 1
		}
	}
	L.Push(lua.LNil)
	return 1
}

func paramsSet(L *lua.LState) int {
	paramsFrame(L)
	raise(L, "req.params is read-only: assign to req.path")
	return 0
}

func paramsPairs(L *lua.LState) int {
	var list []lua.LValue
	for _, p := range paramsFrame(L).x.Request.Params {
		list = append(list, lua.LString(p.Name), str(p.Value))
	}
	return pushPairs(L, list)
}
