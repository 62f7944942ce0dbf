package luaapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/moongate/moongate/luaapi/lint"
	"github.com/moongate/moongate/luaapi/stdlib"
	"github.com/moongate/moongate/luaapi/vm"
)

// sight is what scripts see, for those who read them without running them.
func (b *builder) sight() *lint.World {
	if b.seen == nil {
		b.seen = Sight()
	}
	return b.seen
}

// Sight describes what scripts see, made of the binding tables.
func Sight() *lint.World {
	return &lint.World{
		Funcs:   append(append(standardFuncs(), Funcs()...), Methods()...),
		Values:  slices.Sorted(maps.Keys(values(stdlib.Values()))),
		Load:    phaseLoad,
		Later:   map[string]vm.Phase{everyFunc.Name: phaseTimer},
		Phases:  phaseNames,
		Native:  []string{"rate", "burst", "limiter", "key"},
		Handles: map[string]map[string]lint.Field{"req": fieldsOf(requestFields), "res": fieldsOf(responseFields), "entry": fieldsOf(entryFields)},
		Functions: map[string]lint.Function{
			functionNames[onRequest]: {Phase: phaseRequest, Params: []string{"req", "ctx", "conf"},
				Returns: []string{"gw.Reply"}, ReturnsText: "nothing or gw.respond(...)"},
			functionNames[onResponse]: {Phase: phaseResponse, Params: []string{"res", "ctx", "conf"}, Returns: []string{}, ReturnsText: "nothing"},
			functionNames[onLog]:      {Phase: phaseLog, Params: []string{"entry", "ctx", "conf"}, Returns: []string{}, ReturnsText: "nothing"},
			functionNames[onInit]:     {Phase: phaseInit, Params: []string{"conf"}},
			functionNames[onRequestChunk]: {Phase: phaseRequestChunk, Params: []string{"", "ctx", "conf", ""},
				Returns: []string{"string", "gw.Reply"}, ReturnsText: "a text, nothing or gw.respond(...)"},
			functionNames[onResponseChunk]: {Phase: phaseResponseChunk, Params: []string{"", "ctx", "conf", ""},
				Returns: []string{"string"}, ReturnsText: "a text or nothing"},
		},
	}
}

// handleNames are the handles by their types in the documentation.
var handleNames = map[string]string{"gw.Headers": "headers", "gw.Query": "query", "gw.Cookies": "cookies", "gw.Request": "req", "gw.Response": "res"}

func fieldsOf(fields []field) map[string]lint.Field {
	all := map[string]lint.Field{}
	for i := range fields {
		f := &fields[i]
		all[f.name] = lint.Field{Handle: handleNames[strings.TrimSuffix(f.kind, "?")], Writable: f.set != nil}
	}
	return all
}
