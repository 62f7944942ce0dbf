package luaapi

import (
	"bytes"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// req.query: a view on the query's bytes. It is split at & only, and a pair that cannot be decoded is seen as it came, so that
// scripts and upstream never disagree. Pairs that nobody assigns to go on byte for byte.

var queryMeta = metatable("__index", goFunction(queryGet), "__newindex", goFunction(querySet), "__pairs", goFunction(queryPairs))

// rawQuery is the query as it would go upstream, in on_request; as it came, later.
func (f *frame) rawQuery() []byte {
	if r := &f.x.Request; r.QuerySet && f.phase == phaseRequest {
		return r.TargetQuery
	}
	return f.x.Request.RawQuery
}

// charge counts a walk through the query.
func (f *frame) charge(L *lua.LState) { vm.From(L).Charge(len(f.rawQuery()) >> 5) }

func (f *frame) setQuery(query []byte) {
	f.x.Request.TargetQuery, f.x.Request.QuerySet = query, true
}

func setRawQuery(f *frame, L *lua.LState, v lua.LValue) {
	f.writable(L, "req.raw_query")
	if v == lua.LNil {
		f.setQuery(nil)
		return
	}
	query := wanted(L, "req.raw_query", v)
	for i := range len(query) {
		if queryByte[query[i]] == 0 && query[i] != '%' {
			raise(L, "req.raw_query has a byte in it that no query may have: encode it, or assign to req.query[name]")
		}
	}
	f.setQuery(core.Bytes(query))
}

func queryFrame(L *lua.LState) *frame {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*queryHandle); ok {
			f := (*frame)(h).alive(L)
			f.charge(L)
			return f
		}
	}
	raise(L, "this works on req.query")
	return nil
}

func queryGet(L *lua.LState) int {
	f := queryFrame(L)
	key, ok := text(L.Get(2))
	if !ok {
		raise(L, "a query parameter's name is a string")
	}
	for pair, rest := cutPair(f.rawQuery()); pair != nil; pair, rest = cutPair(rest) {
		if name, value, _ := bytes.Cut(pair, []byte("=")); decodesTo(name, key) {
			L.Push(lua.LString(decoded(value)))
			return 1
		}
	}
	L.Push(lua.LNil)
	return 1
}

// querySet gives the first pair of that name the value and takes the others away; nil takes all.
func querySet(L *lua.LState) int {
	f := queryFrame(L)
	f.writable(L, "req.query")
	key := wanted(L, "a query parameter's name", L.Get(2))
	value, set := "", L.Get(3) != lua.LNil
	if set {
		value = wanted(L, "req.query."+visible(key), L.Get(3))
	}
	var query []byte
	for pair, rest := cutPair(f.rawQuery()); pair != nil; pair, rest = cutPair(rest) {
		if name, _, _ := bytes.Cut(pair, []byte("=")); !decodesTo(name, key) {
			query = append(appendAnd(query), pair...)
		} else if set {
			query, set = appendPair(query, key, value), false
		}
	}
	if set {
		query = appendPair(query, key, value)
	}
	f.setQuery(query)
	return 0
}

// queryMethods are functions of req, because a parameter may have any name.
var queryMethods = []vm.Func{
	{Name: "req:query_all", Phases: phaseWhole,
		Doc:     "Lists all values of a query parameter, in order; empty when there is none.",
		Params:  []vm.Param{{Name: "name", Type: "string"}},
		Returns: []vm.Param{{Name: "values", Type: "string[]"}},
		Do: func(a vm.Args) int {
			key := argText(a, 2)
			all := newTable()
			f := requestOf(a)
			f.charge(a.L)
			for pair, rest := cutPair(f.rawQuery()); pair != nil; pair, rest = cutPair(rest) {
				if name, value, _ := bytes.Cut(pair, []byte("=")); decodesTo(name, key) {
					appendItem(a, all, lua.LString(decoded(value)))
				}
			}
			a.L.Push(all)
			return 1
		}},
	{Name: "req:query_add", Phases: phaseRequest,
		Doc:    "Adds a query parameter after all others.",
		Params: []vm.Param{{Name: "name", Type: "string"}, {Name: "value", Type: "string"}},
		Do: func(a vm.Args) int {
			f := requestOf(a)
			f.charge(a.L)
			f.setQuery(appendPair(bytes.Clone(f.rawQuery()), argText(a, 2), argText(a, 3)))
			return 0
		}},
}

// appendItem appends to a list that is made for a script; beyond what a table holds as one it raises.
func appendItem(a vm.Args, list *lua.LTable, v lua.LValue) {
	if list.Len() >= maxItems {
		a.Raise("a list of more than %d items", maxItems)
	}
	list.Append(v)
}

func queryPairs(L *lua.LState) int {
	var list []lua.LValue
	for pair, rest := cutPair(queryFrame(L).rawQuery()); pair != nil; pair, rest = cutPair(rest) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		list = append(list, lua.LString(decoded(name)), lua.LString(decoded(value)))
	}
	return pushPairs(L, list)
}

// pushPairs returns an iterator over a list of keys and values that stands for itself, whatever the script changes meanwhile.
func pushPairs(L *lua.LState, list []lua.LValue) int {
	L.Push(goFunction(func(L *lua.LState) int {
		if len(list) == 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(list[0])
		L.Push(list[1])
		list = list[2:]
		return 2
	}))
	return 1
}

// cutPair takes the first non-empty pair; pair is nil at the end.
func cutPair(query []byte) (pair, rest []byte) {
	for len(query) > 0 {
		pair, query, _ = bytes.Cut(query, []byte("&"))
		if len(pair) > 0 {
			return pair, query
		}
	}
	return nil, nil
}

func appendAnd(query []byte) []byte {
	if len(query) > 0 {
		query = append(query, '&')
	}
	return query
}

func appendPair(query []byte, key, value string) []byte {
	query = appendEncoded(appendAnd(query), key)
	return appendEncoded(append(query, '='), value)
}
