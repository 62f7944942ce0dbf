package luaapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/vm"
)

// schema is the config table of a script: which settings it takes.
type schema struct {
	keys   []string // in the order of the script
	fields map[string]*setting
	strict *lua.LTable // metatable of the tables that scripts see: a name that is no setting raises
}

func newSchema() *schema {
	sc := &schema{fields: map[string]*setting{}}
	sc.strict = metatable("__index", goFunction(func(L *lua.LState) int {
		name, _ := L.Get(2).(lua.LString)
		if sc.fields[string(name)] == nil && name != "state" {
			raise(L, "conf has no "+describe(L.Get(2))+": declare it in config; "+sc.known())
		}
		L.Push(lua.LNil)
		return 1
	}))
	return sc
}

// setting is one of them.
type setting struct {
	kind     string
	item     *setting // of a list or map
	values   []string // of an enum
	required bool
	fallback *conf.Value // default
	min, max *float64    // of the value, or of its length; in seconds and bytes where it has a unit
	pattern  *regexp.Regexp
	doc      string
	identity bool // its value, its items, or the names of a map, are headers that only this filter may set
	line     int
}

var settingKinds = []string{"string", "number", "integer", "boolean", "duration", "size", "rate", "list", "map", "enum", "secret"}

var settingOptions = []string{"default", "required", "min", "max", "pattern", "values", "of", "doc", "identity"}

// readSchema reads M.config. Faults are noted at the script.
func (b *builder) readSchema(s *script, config *lua.LTable) *schema {
	sc := newSchema()
	for key, v := config.Next(lua.LNil); key != lua.LNil; key, v = config.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			b.scriptFault(s, lineOf(s.source, "config"), "config has the key %s: settings have names", describe(key))
			continue
		}
		line := lineOf(s.source, string(name))
		if slices.Contains(conf.ReservedSettings(), string(name)) {
			b.scriptFault(s, line, "config.%s: this name is the gateway's, choose another", name)
			continue
		}
		if st := b.readSetting(s, "config."+string(name), line, v); st != nil {
			sc.keys = append(sc.keys, string(name))
			sc.fields[string(name)] = st
		}
	}
	return sc
}

// readSetting reads "string" or { "list", default = {} }.
func (b *builder) readSetting(s *script, path string, line int, v lua.LValue) *setting {
	st := &setting{line: line}
	options, _ := v.(*lua.LTable)
	if options == nil {
		options = newTable()
		options.RawSetInt(1, v)
	}
	kind, _ := options.RawGetInt(1).(lua.LString)
	if st.kind = string(kind); !slices.Contains(settingKinds, st.kind) {
		b.scriptFault(s, line, "%s: %s is no type: it is one of %s", path, describe(options.RawGetInt(1)), strings.Join(settingKinds, ", "))
		return nil
	}
	faults := len(b.errs)
	for key, v := options.Next(lua.LNil); key != lua.LNil; key, v = options.Next(key) {
		if key != lua.LNumber(1) {
			b.readOption(s, st, path, key, v)
		}
	}
	if st.kind == "enum" && st.values == nil {
		b.scriptFault(s, line, `%s: an enum lists its values: { "enum", values = { "a", "b" } }`, path)
	}
	if len(b.errs) > faults {
		return nil
	}
	b.readDefault(s, st, path, options.RawGetString("default"))
	return st
}

// maxNested is how deep types of items may nest.
const maxNested = 8

func (b *builder) readOption(s *script, st *setting, path string, key, v lua.LValue) {
	bad := func(want string) { b.scriptFault(s, st.line, "%s.%s %s", path, key, want) }
	name, _ := key.(lua.LString)
	switch name {
	case "default":
	case "doc":
		text, ok := v.(lua.LString)
		if !ok {
			bad("is a string")
		}
		st.doc = string(text)
	case "required":
		is, ok := v.(lua.LBool)
		if !ok {
			bad("is true or false")
		}
		st.required = bool(is)
	case "identity":
		is, ok := v.(lua.LBool)
		if !ok || st.kind != "map" && st.kind != "string" && st.kind != "list" {
			bad("is true for a string or list that names headers, or a map whose names do")
		}
		st.identity = bool(is)
	case "min", "max":
		n, ok := b.bound(st, v)
		if !ok {
			bad("is a value of the setting's own type, or a length")
		} else if name == "min" {
			st.min = &n
		} else {
			st.max = &n
		}
	case "pattern":
		text, _ := v.(lua.LString)
		re, err := regexp.Compile(string(text))
		if err != nil || text == "" || !slices.Contains([]string{"string", "secret", "list"}, st.kind) {
			bad("is a regular expression (RE2) for a string, secret or list")
		}
		st.pattern = re
	case "values":
		list, _ := v.(*lua.LTable)
		if st.values = stringsOf(list); st.values == nil || st.kind != "enum" {
			bad("lists the strings of an enum")
		}
	case "of":
		if st.kind != "list" && st.kind != "map" || strings.Count(path, ".of") >= maxNested {
			bad("is the type of a list's or map's items")
		} else {
			st.item = b.readSetting(s, path+".of", st.line, v)
		}
	default:
		b.scriptFault(s, st.line, "%s has no option %s: it may have %s", path, describe(key), strings.Join(settingOptions, ", "))
	}
}

// bound reads min or max as a plain number.
func (b *builder) bound(st *setting, v lua.LValue) (float64, bool) {
	if n, ok := v.(lua.LNumber); ok {
		return float64(n), st.kind != "boolean" && st.kind != "rate" && st.kind != "duration" && st.kind != "enum"
	}
	text, ok := v.(lua.LString)
	switch {
	case ok && st.kind == "duration":
		d, err := conf.ParseDuration(string(text))
		return d.Seconds(), err == nil
	case ok && st.kind == "size":
		n, err := conf.ParseSize(string(text))
		return float64(n), err == nil
	}
	return 0, false
}

func (b *builder) readDefault(s *script, st *setting, path string, v lua.LValue) {
	if v == lua.LNil {
		return
	}
	left := maxDefault
	value, err := confValue(conf.Pos{File: s.path, Line: st.line}, v, &left)
	if err == nil {
		_, err = st.convert(value)
	}
	if err != nil {
		b.scriptFault(s, st.line, "%s.default %s", path, err)
		return
	}
	st.fallback = &value
}

// maxDefault is how many values a default may have, those within it counted.
const maxDefault = 4096

// confValue turns a script's default into what TOML would have given.
func confValue(pos conf.Pos, v lua.LValue, left *int) (conf.Value, error) {
	out := conf.Value{Pos: pos}
	if *left--; *left < 0 {
		return out, fmt.Errorf("has more than %d values in it", maxDefault)
	}
	switch v := v.(type) {
	case lua.LString:
		out.V = string(v)
	case lua.LBool:
		out.V = bool(v)
	case lua.LNumber:
		if n := int64(v); lua.LNumber(n) == v {
			out.V = n
		} else {
			out.V = float64(v)
		}
	case *lua.LTable:
		return confTable(pos, v, left)
	default:
		return out, fmt.Errorf("is a %s, which no setting can be", v.Type())
	}
	return out, nil
}

// confTable gives a list for an empty table or one with items, a map for one with names.
func confTable(pos conf.Pos, t *lua.LTable, left *int) (conf.Value, error) {
	t = vm.Thaw(t)
	out := conf.Value{Pos: pos}
	if n := t.MaxN(); n > 0 {
		var items []conf.Value
		for i := range n {
			item, err := confValue(pos, t.RawGetInt(i+1), left)
			if err != nil {
				return out, err
			}
			items = append(items, item)
		}
		out.V = items
		return out, nil
	}
	var names []string
	values := map[string]conf.Value{}
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		name, ok := key.(lua.LString)
		if !ok {
			return out, fmt.Errorf("has the key %s", describe(key))
		}
		value, err := confValue(pos, v, left)
		if err != nil {
			return out, err
		}
		names = append(names, string(name))
		values[string(name)] = value
	}
	out.V = luaMap{names, values}
	return out, nil
}

// luaMap is a map of a default; a default's conf.Value holds it where TOML would have given a table.
type luaMap struct {
	names  []string
	values map[string]conf.Value
}

// stringsOf gives the strings of a list; nil when it is empty or has something else.
func stringsOf(t *lua.LTable) []string {
	if t == nil {
		return nil
	}
	t = vm.Thaw(t)
	var list []string
	for i := 1; i <= t.MaxN(); i++ {
		s, ok := t.RawGetInt(i).(lua.LString)
		if !ok {
			return nil
		}
		list = append(list, string(s))
	}
	return list
}

// lineOf finds the line of a script that assigns to name, for messages; 1 when there is none.
func lineOf(source, name string) int {
	line := 1
	for text := range strings.SplitSeq(source, "\n") {
		if i := strings.Index(text, name); i >= 0 {
			rest := strings.TrimLeft(text[i+len(name):], " \t\"']")
			if strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") && (i == 0 || !isWordByte(text[i-1])) {
				return line
			}
		}
		line++
	}
	return 1
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
