package luaapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// fields reads the settings of a verifier out of a table and remembers what it read, so that equal settings are known again. A setting
// of the wrong type raises, with its name.
type fields struct {
	L    *lua.LState
	vm   *vm.VM
	t    *lua.LTable
	path string // before the names, for messages
	hash hash.Hash
	read []string // names, those that stand in the table
	all  []string // names, all that were asked for
}

func newFields(L *lua.LState, t *lua.LTable, path string) *fields {
	return &fields{L: L, vm: vm.From(L), t: vm.Thaw(t), path: path, hash: sha256.New()}
}

// id tells apart what was read. No secret can be read from it.
func (f *fields) id(kind string) (id auth.ID) {
	f.note("", kind)
	f.hash.Sum(id[:0])
	return id
}

func (f *fields) note(name, text string) {
	f.vm.Charge(4 + len(text)/16)
	fmt.Fprintf(f.hash, "%d %s %d %s\n", len(name), name, len(text), text)
}

// get gives a setting that stands there.
func (f *fields) get(name string) lua.LValue {
	f.all = append(f.all, name)
	v := f.t.RawGetString(name)
	if v != lua.LNil && !slices.Contains(f.read, name) {
		f.read = append(f.read, name)
	}
	return v
}

func (f *fields) has(name string) bool { return f.t.RawGetString(name) != lua.LNil }

// bad raises that a setting is impossible: while settings are tried so that their place can be told, else as a text. It does not return.
func (f *fields) bad(name, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if f.vm.Phase&(phaseLoad|phaseInit) == 0 {
		raise(f.L, f.path+name+": "+err.Error())
	}
	raiseSetting(f.L, f.path+name, err)
}

// text is a string, "" when it is absent.
func (f *fields) text(name string) string {
	switch v := f.get(name).(type) {
	case *lua.LNilType:
	case lua.LString:
		if len(v) > maxSetting {
			f.bad(name, "is longer than %d bytes", maxSetting)
		}
		f.note(name, string(v))
		return string(v)
	default:
		f.bad(name, "is a string, not a %s", v.Type())
	}
	return ""
}

// bytes is text, nil when it is empty.
func (f *fields) bytes(name string) []byte {
	if text := f.text(name); text != "" {
		return []byte(text)
	}
	return nil
}

// What a setting may be at most.
const (
	maxSetting  = 4 << 20
	maxSettings = 65535
)

// list is a string or a list of strings.
func (f *fields) list(name string) []string {
	var items []string
	switch v := f.get(name).(type) {
	case *lua.LNilType:
		return nil
	case lua.LString:
		items = []string{string(v)}
	case *lua.LTable:
		items = f.strings(name, v)
	default:
		f.bad(name, "is a list of strings, not a %s", v.Type())
	}
	f.note(name, strings.Join(items, "\x00"))
	return items
}

// strings reads a list that may come from a script, so that all of it together is bounded.
func (f *fields) strings(name string, t *lua.LTable) []string {
	items := stringsOf(t)
	if len(items) != vm.Thaw(t).MaxN() || len(items) > maxSettings {
		f.bad(name, "is a list of strings")
	}
	f.vm.Charge(8 * len(items))
	size := 0
	for _, item := range items {
		if size += len(item) + 1; size > maxSetting {
			f.bad(name, "is longer than %d bytes", maxSetting)
		}
	}
	return items
}

// duration is a number of seconds, or a text such as "5s".
func (f *fields) duration(name string) (d time.Duration) {
	switch v := f.get(name).(type) {
	case *lua.LNilType:
		return 0
	case lua.LNumber:
		d = time.Duration(float64(v) * float64(time.Second))
	case lua.LString:
		var err error
		if d, err = conf.ParseDuration(string(v)); err != nil {
			f.bad(name, "%s", err)
		}
	default:
		f.bad(name, `is a duration such as "5s"`)
	}
	if d < 0 || d > longestSetting {
		f.bad(name, "is from 0s to %s", longestSetting)
	}
	f.note(name, d.String())
	return d
}

const longestSetting = 24 * time.Hour

func (f *fields) boolean(name string) bool {
	switch v := f.get(name).(type) {
	case *lua.LNilType:
	case lua.LBool:
		f.note(name, v.String())
		return bool(v)
	default:
		f.bad(name, "is true or false")
	}
	return false
}

// table is a table of settings of its own, nil when it is absent.
func (f *fields) table(name string) *lua.LTable {
	switch v := f.get(name).(type) {
	case *lua.LNilType:
	case *lua.LTable:
		return vm.Thaw(v)
	default:
		f.bad(name, "is a table")
	}
	return nil
}

// each calls do with the members of a table by their names, in order, and with their settings where they are tables.
func (f *fields) each(name string, do func(name string, v lua.LValue)) {
	t := f.table(name)
	if t == nil {
		return
	}
	members := map[string]lua.LValue{}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		text, ok := key.(lua.LString)
		if !ok {
			f.bad(name, "is a table of names and values")
		}
		members[string(text)] = v
	}
	names := make([]string, 0, len(members))
	for member := range members {
		names = append(names, member)
	}
	slices.Sort(names)
	for _, member := range names {
		f.note(name, member)
		do(member, members[member])
	}
}

// inner reads a table within as settings; they count among those of f.
func (f *fields) inner(path string, v lua.LValue) *fields {
	t, ok := v.(*lua.LTable)
	if !ok {
		f.bad(path, "is a table of settings")
	}
	return &fields{L: f.L, vm: f.vm, t: vm.Thaw(t), path: f.path + path + ".", hash: f.hash}
}

// complete raises for a setting that nobody read.
func (f *fields) complete() {
	for key, _ := f.t.Next(lua.LNil); key != lua.LNil; key, _ = f.t.Next(key) {
		if name, ok := key.(lua.LString); !ok || !slices.Contains(f.all, string(name)) {
			names := slices.Clone(f.all)
			slices.Sort(names)
			f.bad(visible(key.String()), "there is no such setting: it has %s", strings.Join(slices.Compact(names), ", "))
		}
	}
}

// culprit is the setting that an error is about: the one that it says, or whose name it begins with, else the given one.
func (f *fields) culprit(err error, main string) string {
	if e, ok := errors.AsType[*fieldError](err); ok {
		return e.name
	}
	for _, name := range f.all {
		if strings.HasPrefix(err.Error(), name) || strings.HasPrefix(err.Error(), strings.ReplaceAll(name, "_", " ")) {
			return name
		}
	}
	return main
}
