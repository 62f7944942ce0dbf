package vm

import (
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Limits bounds what one call may use. Zero values take the defaults.
type Limits struct {
	Budget     time.Duration // Lua time of one Call; default 50ms
	LoadBudget time.Duration // Lua time of one Load; default 1s
	String     int           // bytes of one string; default 1 MiB
	Grow       int           // bytes of all strings that natives and `..` make in one call; default 128 times String
	Coroutines int           // unfinished coroutines of one call; default 100
	Calls      int           // depth of calls; default 200
	Registers  int           // registers (values on the stack) of one thread; default 16384
}

func (l *Limits) fill() {
	if l.Budget <= 0 {
		l.Budget = 50 * time.Millisecond
	}
	if l.LoadBudget <= 0 {
		l.LoadBudget = time.Second
	}
	if l.String <= 0 {
		l.String = 1 << 20
	}
	if l.Grow <= 0 {
		l.Grow = 128 * l.String
	}
	if l.Coroutines <= 0 {
		l.Coroutines = 100
	}
	if l.Calls <= 0 {
		l.Calls = 200
	}
	if l.Registers < 1024 {
		l.Registers = 16384
	}
}

// Options says what a Base is made of. It must not be changed after NewBase.
type Options struct {
	// Funcs are the functions that scripts see. Those without a dot are globals, the others live in read-only tables.
	Funcs []Func
	// Values are constants by dotted name: "math.pi", "gw.json.null". Tables are frozen (and taken over).
	Values map[string]lua.LValue
	// Strict names a table of Funcs, such as "gw": in it and in the tables within, reading a name that is not there raises.
	Strict string
	// Lib is what require reaches, by the name that scripts write: "util" or "acme.sign".
	Lib map[string]*Script
	// Phases names the bits of Phase for messages: Phases[0] is the name of 1<<0.
	Phases []string
	// LoadPhase is the Phase while a chunk is loaded.
	LoadPhase Phase
	// Print receives what a script prints, one call of print at a time, without a newline. Nil drops it. It is called on the
	// goroutine of the VM.
	Print  func(v *VM, text string)
	Limits Limits
}

// Base is what all VMs of a generation share and nobody writes. It is safe for concurrent use.
type Base struct {
	options  Options
	layout   *layout
	globals  *lua.LTable // libraries; its metatable leads to the hidden names
	envMT    *lua.LTable // metatable of environments without globals of their own
	storeMT  *lua.LTable // metatable of stores: what they lack is a library
	stringMT *lua.LTable // metatable of strings
	funcs    []Func
	epoch    atomic.Uint64
}

// NewBase builds the shared part. It returns an error for a name that is taken twice or stands in the way of another.
func NewBase(o Options) (*Base, error) {
	m, err := knobs()
	if err != nil {
		return nil, err
	}
	o.Limits.fill()
	b := &Base{options: o, layout: m}
	b.funcs = append(append(b.funcs, ownFuncs()...), o.Funcs...)
	tree := newTree()
	for i := range b.funcs {
		f := &b.funcs[i]
		if f.Do == nil {
			return nil, fmt.Errorf("function %s has no body", f.Name)
		}
		if strings.Contains(f.Name, ":") {
			continue // methods are documented here and registered by their owner
		}
		if err := tree.put(f.Name, f.Function()); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(o.Values) {
		if err := tree.put(name, o.Values[name]); err != nil {
			return nil, err
		}
	}
	b.stringMT = stringMetatable(tree)
	tree.makeStrict(o.Strict)
	b.globals = tree.freeze()
	b.envMT = envMetatable(b.globals, envWrite)
	b.storeMT = smallTable(1)
	b.storeMT.RawSetString("__index", b.globals)
	return b, nil
}

// Funcs is the whole binding table, the machine's own functions first. It must not be changed.
func (b *Base) Funcs() []Func { return b.funcs }

// Limits is what calls may use, defaults filled in.
func (b *Base) Limits() Limits { return b.options.Limits }

// Has tells whether a global of that name exists for every script.
func (b *Base) Has(global string) bool {
	return global == "_G" || b.globals.RawGetString(global) != lua.LNil
}

// Retire makes pools drop all VMs that exist now when they come back. A guard of the process's memory calls it.
func (b *Base) Retire() { b.epoch.Add(1) }

// tree collects dotted names into nested tables.
type tree struct {
	root   *lua.LTable
	tables map[string]*lua.LTable
}

func newTree() *tree {
	root := &lua.LTable{Metatable: lua.LNil}
	return &tree{root: root, tables: map[string]*lua.LTable{"": root}}
}

func (t *tree) table(path string) (*lua.LTable, error) {
	if found := t.tables[path]; found != nil {
		return found, nil
	}
	made := &lua.LTable{Metatable: lua.LNil}
	if err := t.put(path, made); err != nil {
		return nil, err
	}
	t.tables[path] = made
	return made, nil
}

func (t *tree) put(name string, v lua.LValue) error {
	path, leaf := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		path, leaf = name[:i], name[i+1:]
	}
	in, err := t.table(path)
	if err != nil {
		return err
	}
	if leaf == "" || in.RawGetString(leaf) != lua.LNil {
		return fmt.Errorf("global %q is empty or defined twice", name)
	}
	in.RawSetString(leaf, v)
	return nil
}

// makeStrict lets the tables at and below path refuse names that they do not have.
func (t *tree) makeStrict(path string) {
	for name, table := range t.tables {
		if path != "" && (name == path || strings.HasPrefix(name, path+".")) {
			table.Metatable = strictMetatable(name, table)
		}
	}
}

func strictMetatable(name string, table *lua.LTable) *lua.LTable {
	var known []string
	for k, _ := table.Next(lua.LNil); k != lua.LNil; k, _ = table.Next(k) {
		known = append(known, plainText(k))
	}
	sort.Strings(known)
	mt := &lua.LTable{Metatable: lua.LNil}
	mt.RawSetString("__index", &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int {
		L.RaiseError("%s has no '%s': it has %s", name, clip(plainText(L.Get(2))), strings.Join(known, ", "))
		return 0
	}})
	return mt
}

// freeze makes all tables but the root read-only and puts the hidden names behind the root.
func (t *tree) freeze() *lua.LTable {
	f := freezer{done: map[*lua.LTable]*lua.LTable{}}
	for k, v := t.root.Next(lua.LNil); k != lua.LNil; k, v = t.root.Next(k) {
		if nested, ok := v.(*lua.LTable); ok {
			t.root.RawSet(k, f.freeze(k.String(), nested))
		}
	}
	hidden := &lua.LTable{Metatable: lua.LNil}
	hidden.RawSetString(concatName, &lua.LFunction{IsG: true, GFunction: concat})
	behind := &lua.LTable{Metatable: lua.LNil}
	behind.RawSetString("__index", hidden)
	t.root.Metatable = behind
	return t.root
}

func sortedKeys(m map[string]lua.LValue) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
