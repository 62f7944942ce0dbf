package luaapi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/vm"
)

// settings are one distinct set of a script's settings: all routes and filters that say the same share it.
type settings struct {
	index  int         // in its stage
	filter *filter     // the first that has them
	table  *conf.Table // as written
	real   *lua.LTable // what scripts read, never written
	conf   *lua.LTable // real, read-only for scripts and shared by all VMs
	where  conf.Pos
	key    string // dotted key of the table, for messages
	origin origin

	tokens atomic.Pointer[tokens] // of gw.jwt.verify(token, conf)
}

// checkSettings notes what is wrong with the settings of filters in a configuration that is wrong elsewhere: routes and filters that could
// not be read are not among it.
func (b *builder) checkSettings() {
	cfg := b.o.Config
	routes := []*conf.Route{nil}
	for i := range cfg.Routes {
		routes = append(routes, &cfg.Routes[i])
	}
	for i := range cfg.Filters {
		cf := &cfg.Filters[i]
		s := b.scripts[cf.Script]
		if s == nil {
			continue
		}
		seen := map[*conf.Table]bool{}
		for _, rt := range routes {
			if w, runs := settingsOn(cf, s, rt); runs && !seen[w.table] {
				seen[w.table] = true
				b.apply(s.schema, w.key, w.pos, w.table)
			}
		}
	}
}

// apply checks written settings against the schema and gives the table that scripts see. Faults are noted at the keys.
func (b *builder) apply(sc *schema, key string, pos conf.Pos, written *conf.Table) *lua.LTable {
	real := newTable()
	real.Metatable = sc.strict
	for name, v := range written.All() {
		st := sc.fields[name]
		if st == nil {
			b.errs.Add(v.Pos, key+"."+name, "the script has no such setting: %s", sc.known())
			continue
		}
		if st.kind == "secret" {
			v.Secret = true
		}
		if v.Broken() {
			continue
		}
		value, err := st.convert(v)
		if err != nil {
			b.errs.Add(v.Pos, key+"."+name, "%s", err)
			continue
		}
		if real.RawSetString(name, value); st.holdsSecrets() {
			b.world.mask.learn(value)
		}
	}
	for _, name := range sc.keys {
		st := sc.fields[name]
		if _, ok := written.Get(name); ok {
			continue
		}
		if st.fallback != nil {
			value, _ := st.convert(*st.fallback)
			real.RawSetString(name, value)
		} else if st.required {
			b.errs.Add(pos, key+"."+name, "is required: a %s", st.kind)
		}
	}
	return real
}

func (sc *schema) known() string {
	if len(sc.keys) == 0 {
		return "it takes none"
	}
	names := slices.Clone(sc.keys)
	slices.Sort(names)
	return "it has " + strings.Join(names, ", ")
}

// convert checks a value and gives it as scripts see it: durations in seconds, sizes in bytes, rates per second.
func (st *setting) convert(v conf.Value) (lua.LValue, error) {
	switch st.kind {
	case "string", "secret":
		return st.text(v)
	case "enum":
		s, ok := v.V.(string)
		if !ok || !slices.Contains(st.values, s) {
			return nil, fmt.Errorf("wants one of %s", strings.Join(st.values, ", "))
		}
		return lua.LString(s), nil
	case "boolean":
		switch is := v.V.(type) {
		case bool:
			return lua.LBool(is), nil
		case string:
			if v.FromEnv && (is == "true" || is == "false") {
				return lua.LBool(is == "true"), nil
			}
		}
		return nil, wants(v, "true or false")
	case "number", "integer":
		return st.numeric(v)
	case "duration":
		return st.duration(v)
	case "size":
		return st.size(v)
	case "rate":
		rate, err := v.Rate()
		if err != nil {
			return nil, err
		}
		return lua.LNumber(rate.PerSecond()), nil
	case "list":
		return st.list(v)
	}
	return st.mapping(v)
}

// wants words a value of the wrong type; values that may be secret are not shown.
func wants(v conf.Value, what string) error {
	if v.Secret {
		return errors.New("wants " + what)
	}
	text := "a list"
	switch v.V.(type) {
	case *conf.Table, luaMap:
		text = "a table"
	case []conf.Value:
	default:
		text = v.Text()
	}
	return fmt.Errorf("wants %s, not %s", what, text)
}

func (st *setting) text(v conf.Value) (lua.LValue, error) {
	s, ok := v.V.(string)
	if !ok {
		return nil, wants(v, "a string")
	}
	if err := st.within(float64(len(s)), " bytes"); err != nil {
		return nil, err
	}
	if st.pattern != nil && !st.pattern.MatchString(s) {
		return nil, fmt.Errorf("does not match %s", st.pattern)
	}
	return lua.LString(s), nil
}

func (st *setting) numeric(v conf.Value) (lua.LValue, error) {
	var f float64
	ok := true
	switch n := v.V.(type) {
	case int64:
		f = float64(n)
	case float64:
		f = n
	case string:
		var err error
		f, err = strconv.ParseFloat(n, 64)
		ok = v.FromEnv && err == nil
	default:
		ok = false
	}
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, wants(v, "a number")
	}
	if st.kind == "integer" && (f != math.Trunc(f) || math.Abs(f) > 1<<53) {
		return nil, wants(v, "a whole number")
	}
	return lua.LNumber(f), st.within(f, "")
}

func (st *setting) duration(v conf.Value) (lua.LValue, error) {
	s, ok := v.V.(string)
	if !ok {
		return nil, wants(v, `a duration with its unit, such as "5s"`)
	}
	d, err := conf.ParseDuration(s)
	if err != nil {
		return nil, err
	}
	return lua.LNumber(d.Seconds()), st.within(d.Seconds(), "s")
}

func (st *setting) size(v conf.Value) (lua.LValue, error) {
	n, ok := v.V.(int64)
	if s, text := v.V.(string); text {
		var err error
		if n, err = conf.ParseSize(s); err != nil {
			return nil, err
		}
		ok = true
	}
	if !ok || n < 0 {
		return nil, wants(v, `a size, such as "64KiB"`)
	}
	return lua.LNumber(n), st.within(float64(n), " bytes")
}

func (st *setting) list(v conf.Value) (lua.LValue, error) {
	items, ok := v.V.([]conf.Value)
	if m, empty := v.V.(luaMap); empty && len(m.names) == 0 {
		ok = true
	}
	if !ok {
		return nil, wants(v, "a list")
	}
	if err := st.within(float64(len(items)), " items"); err != nil {
		return nil, err
	}
	if len(items) > maxItems {
		return nil, fmt.Errorf("has more than %d items", maxItems)
	}
	t := newTable()
	t.Metatable = jsonArray
	for i, item := range items {
		value, err := st.ofItem(v, item)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		t.Append(value)
	}
	return t, nil
}

func (st *setting) mapping(v conf.Value) (lua.LValue, error) {
	t := newTable()
	put := func(name string, item conf.Value) error {
		value, err := st.ofItem(v, item)
		if err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		t.RawSetString(name, value)
		return nil
	}
	switch m := v.V.(type) {
	case *conf.Table:
		for name, item := range m.All() {
			if err := put(name, item); err != nil {
				return nil, err
			}
		}
		return t, st.within(float64(m.Len()), " members")
	case luaMap:
		for _, name := range m.names {
			if err := put(name, m.values[name]); err != nil {
				return nil, err
			}
		}
		return t, st.within(float64(len(m.names)), " members")
	}
	return nil, wants(v, "a table of names and values")
}

// ofItem converts an item of a list or map: by its declared type, else as it is.
func (st *setting) ofItem(of, item conf.Value) (lua.LValue, error) {
	item.Secret = item.Secret || of.Secret
	if st.item != nil {
		return st.item.convert(item)
	}
	if s, ok := item.V.(string); ok && st.pattern != nil && !st.pattern.MatchString(s) {
		return nil, fmt.Errorf("does not match %s", st.pattern)
	}
	return freeform(item)
}

// freeform converts a value without a declared type.
func freeform(v conf.Value) (lua.LValue, error) {
	switch x := v.V.(type) {
	case string:
		return lua.LString(x), nil
	case int64:
		return lua.LNumber(x), nil
	case float64:
		return lua.LNumber(x), nil
	case bool:
		return lua.LBool(x), nil
	case []conf.Value:
		return (&setting{kind: "list"}).list(v)
	case *conf.Table, luaMap:
		return (&setting{kind: "map"}).mapping(v)
	}
	return nil, errors.New("is of a type that scripts have no use for: write a string")
}

// within checks min and max.
func (st *setting) within(n float64, unit string) error {
	switch {
	case st.min != nil && n < *st.min:
		return fmt.Errorf("wants at least %s%s", vm.NumberText(*st.min), unit)
	case st.max != nil && n > *st.max:
		return fmt.Errorf("wants at most %s%s", vm.NumberText(*st.max), unit)
	}
	return nil
}
