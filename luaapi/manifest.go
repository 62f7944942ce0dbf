package luaapi

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/vm"
)

// readTable reads what a script says of itself.
func (b *builder) readTable(s *script, t *lua.LTable) {
	s.order = 50
	s.schema = newSchema()
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, _ := key.(lua.LString)
		line := lineOf(s.source, string(name))
		if fn, ok := v.(*lua.LFunction); ok && !fn.IsG {
			line = fn.Proto.LineDefined
		}
		if i := slices.Index(functionNames[:], string(name)); i >= 0 {
			b.readFunction(s, i, line, v)
		} else if read := manifest[string(name)]; read != nil {
			read(b, s, line, v)
		} else {
			b.scriptFault(s, line, "the table has an unknown field %s%s: a filter has stage, order, config, identity, on_error, on_timeout, leaves_bodies, init, on_request, on_response, on_request_chunk, on_response_chunk and on_log",
				describe(key), meant(string(name)))
		}
	}
	if s.leaves && !s.has[onRequestChunk] && !s.has[onResponseChunk] {
		b.scriptFault(s, lineOf(s.source, "leaves_bodies"), "leaves_bodies speaks of on_request_chunk and on_response_chunk, and the table has neither")
	}
	if s.stage == "" {
		b.scriptFault(s, lastLine(s.source), `the table has no stage: write stage = "NAME" with one of %s`, strings.Join(b.o.Config.Pipeline.Stages, ", "))
	}
}

// meant guesses what a misspelt field was to be.
func meant(name string) string {
	if near := conf.Nearest(name, append(slices.Sorted(maps.Keys(manifest)), functionNames[:]...)); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// manifest reads the fields of a script's table that are no functions.
var manifest = map[string]func(b *builder, s *script, line int, v lua.LValue){
	"stage": func(b *builder, s *script, line int, v lua.LValue) {
		stage, ok := v.(lua.LString)
		if s.stage = string(stage); !ok {
			b.scriptFault(s, line, "stage is %s, not a stage's name", describe(v))
		}
	},
	"order": func(b *builder, s *script, line int, v lua.LValue) {
		order, ok := v.(lua.LNumber)
		if s.order = float64(order); !ok {
			b.scriptFault(s, line, "order is %s, not a number", describe(v))
		}
	},
	"on_error": func(b *builder, s *script, line int, v lua.LValue) {
		s.onError = b.readPolicy(s, line, "on_error", v)
	},
	"on_timeout": func(b *builder, s *script, line int, v lua.LValue) {
		s.onTimeout = b.readPolicy(s, line, "on_timeout", v)
	},
	"leaves_bodies": func(b *builder, s *script, line int, v lua.LValue) {
		leaves, ok := v.(lua.LBool)
		if s.leaves = bool(leaves); !ok {
			b.scriptFault(s, line, "leaves_bodies is %s, not true or false", describe(v))
		}
	},
	"config": func(b *builder, s *script, line int, v lua.LValue) {
		if config, ok := v.(*lua.LTable); ok {
			s.schema = b.readSchema(s, vm.Thaw(config))
		} else {
			b.scriptFault(s, line, "config is %s, not a table of settings", describe(v))
		}
	},
	"identity": (*builder).readIdentity,
}

func (b *builder) readPolicy(s *script, line int, name string, v lua.LValue) string {
	choice, _ := v.(lua.LString)
	if choice != conf.FailOnError && choice != conf.ContinueOnError {
		b.scriptFault(s, line, `%s is %s: it is "fail" or "continue"`, name, describe(v))
	}
	return string(choice)
}

func (b *builder) readFunction(s *script, i, line int, v lua.LValue) {
	fn, ok := v.(*lua.LFunction)
	if s.has[i] = ok; !ok {
		b.scriptFault(s, line, "%s is %s, not a function", functionNames[i], describe(v))
	} else if fn.IsG {
		b.scriptFault(s, line, "%s is a function of the gateway, not of the script", functionNames[i])
	}
}

func (b *builder) readIdentity(s *script, line int, v lua.LValue) {
	list, _ := v.(*lua.LTable)
	s.identity = stringsOf(list)
	if list == nil || len(s.identity) != vm.Thaw(list).MaxN() || s.identity == nil {
		b.scriptFault(s, line, `identity lists headers that only this filter may set: { "X-User-Id" }`)
	}
	for _, name := range s.identity {
		if !validHeaderName(name) {
			b.scriptFault(s, line, "identity: no header can be named %s", describe(lua.LString(visible(name))))
		}
	}
}
