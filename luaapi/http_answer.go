package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// httpAnswer is what gw.http gives: a value that holds nothing of the request for which it was asked, so it may be kept.
type httpAnswer struct {
	handle  lua.LUserData
	headers lua.LUserData
	call    *core.Call
	body    lua.LValue // once asked for
}

// newAnswer makes the handle. The bytes of the answer count among those that the script has made.
func newAnswer(a vm.Args, c *core.Call) lua.LValue {
	a.CheckString(len(c.Answer.Body))
	w := &httpAnswer{call: c}
	w.handle = lua.LUserData{Value: w, Metatable: answerMeta}
	w.headers = lua.LUserData{Value: w, Metatable: answerHeadersMeta}
	return &w.handle
}

var answerMeta = metatable("__index", goFunction(answerGet), "__newindex", goFunction(func(L *lua.LState) int {
	raise(L, "an answer of gw.http is read-only")
	return 0
}))

// answerCalls are the methods as functions, by name.
var answerCalls = func() map[string]*lua.LFunction {
	calls := map[string]*lua.LFunction{}
	for i := range answerMethods {
		calls[answerMethods[i].Name[len("answer:"):]] = answerMethods[i].Function()
	}
	return calls
}()

func answerGet(L *lua.LState) int {
	w := L.Get(1).(*lua.LUserData).Value.(*httpAnswer)
	key, _ := L.Get(2).(lua.LString)
	switch key {
	case "status":
		L.Push(number(float64(w.call.Answer.Status)))
	case "headers":
		L.Push(&w.headers)
	case "body":
		if w.body == nil {
			w.body = str(w.call.Answer.Body)
		}
		L.Push(w.body)
	default:
		method := answerCalls[string(key)]
		if method == nil {
			raise(L, "an answer of gw.http has no "+describe(L.Get(2))+": it has status, headers, body, :json(), :json_get()")
		}
		L.Push(method)
	}
	return 1
}

// answerOf is the answer of a method's handle.
func answerOf(a vm.Args) *httpAnswer {
	if ud, ok := a.L.Get(1).(*lua.LUserData); ok {
		if w, ok := ud.Value.(*httpAnswer); ok {
			return w
		}
	}
	raise(a.L, "call it with a colon: "+a.Func.Name+"(...)")
	return nil
}

var answerHeadersMeta = metatable("__index", goFunction(answerHeadersGet), "__newindex", goFunction(func(L *lua.LState) int {
	raise(L, "the headers of an answer of gw.http are read-only")
	return 0
}), "__pairs", goFunction(func(L *lua.LState) int {
	fields := answerHeadersOf(L).Fields()
	list := make([]lua.LValue, 0, 2*len(fields))
	for _, f := range fields {
		list = append(list, str(f.Name), str(f.Value))
	}
	return pushPairs(L, list)
}))

func answerHeadersOf(L *lua.LState) *core.Header {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if w, ok := ud.Value.(*httpAnswer); ok {
			return &w.call.Answer.Header
		}
	}
	raise(L, "call it with a colon, on the headers of an answer")
	return nil
}

func answerHeadersGet(L *lua.LState) int {
	h := answerHeadersOf(L)
	name := headerName(L, L.Get(2))
	switch name {
	case "all":
		L.Push(answerHeadersAll)
		return 1
	case "add":
		raise(L, "the headers of an answer of gw.http are read-only")
	}
	key := core.Bytes(name)
	fields := h.Fields()
	for i := range fields {
		if core.EqualFold(fields[i].Name, key) {
			L.Push(joined(fields[i:], key))
			return 1
		}
	}
	L.Push(lua.LNil)
	return 1
}

var answerHeadersAll = goFunction(func(L *lua.LState) int {
	h := answerHeadersOf(L)
	key := core.Bytes(headerName(L, L.Get(2)))
	all := newTable()
	for _, f := range h.Fields() {
		if core.EqualFold(f.Name, key) {
			all.Append(str(f.Value))
		}
	}
	L.Push(all)
	return 1
})
