package luaapi

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// machine is what luaapi keeps beside one VM for its life: its Data.
type machine struct {
	stage    *stage
	filters  []loaded      // by the script's index in the stage
	confs    []*lua.LTable // by the settings' index; nil: not needed yet
	surfaces surfaces
	cache    caches
	loading  string // the filter for which a script is loaded

	initTimers [][]timerDeclaration // by the settings' index: of init
	declared   *[]timerDeclaration  // where gw.time.every puts them now; nil: nowhere
	waiter     waiter
}

func newMachine(s *stage) *machine {
	return &machine{stage: s, filters: make([]loaded, len(s.scripts)), confs: make([]*lua.LTable, len(s.settings)),
		initTimers: make([][]timerDeclaration, len(s.settings))}
}

// prepare loads a script, once, and runs its init for settings, once for each.
func (m *machine) prepare(v *vm.VM, f *filter, set *settings) (*lua.LTable, error) {
	m.loading = f.name
	defer func() { m.declared = nil }()
	l := &m.filters[f.index]
	if !l.ready {
		l.timers, m.declared = nil, &l.timers
		table, err := v.Run(f.script.code)
		if err != nil {
			return nil, err
		}
		if l.fn, err = functionsOf(f.script, table); err != nil {
			return nil, err
		}
		l.ready = true
	}
	conf := set.conf
	if init := l.fn[onInit]; init != nil {
		m.initTimers[set.index] = nil
		v.Phase, m.declared = phaseInit, &m.initTimers[set.index]
		state, err := v.Call(init, set.conf)
		if err != nil {
			return nil, err
		}
		conf = withState(set.real, state)
	}
	m.confs[set.index] = conf
	return conf, nil
}

// withState is a filter's settings as one VM sees them: with what init made, read-only like all of them.
func withState(real *lua.LTable, state lua.LValue) *lua.LTable {
	own := newTable()
	own.Metatable = real.Metatable
	for key, v := real.Next(lua.LNil); key != lua.LNil; key, v = real.Next(key) {
		own.RawSet(key, v)
	}
	if state != lua.LNil {
		own.RawSetString("state", state)
	}
	return vm.Freeze("conf", own)
}

// functionsOf takes the functions out of what a script returned.
func functionsOf(s *script, result lua.LValue) (fn [functions]*lua.LFunction, err error) {
	t, ok := result.(*lua.LTable)
	if !ok {
		return fn, &vm.Error{Script: s.file, Line: lastLine(s.source), Message: "the script returned " + describe(result) +
			": it returns a table with its functions"}
	}
	for i, name := range functionNames {
		switch v := t.RawGetString(name).(type) {
		case *lua.LNilType:
		case *lua.LFunction:
			fn[i] = v
		default:
			return fn, errors.New(name + " is a " + v.Type().String() + ", not a function")
		}
	}
	return fn, nil
}
