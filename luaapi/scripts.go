package luaapi

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/lint"
	"github.com/moongate/moongate/luaapi/vm"
)

// compile compiles the live scripts and the libraries.
func (b *builder) compile() {
	cfg := &b.o.Config.Scripts
	b.lib = map[string]*vm.Script{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Lib)) {
		text := cfg.Lib[name]
		file := "lib/" + strings.ReplaceAll(name, ".", "/") + ".lua"
		if code := b.compileFile(file, text); code != nil {
			b.lib[name] = code
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Live)) {
		text := cfg.Live[name]
		if code := b.compileFile(name+".lua", text); code != nil {
			b.scripts[name] = &script{name: name, file: name + ".lua", path: text.Path, source: text.Source, code: code}
		}
	}
}

func (b *builder) compileFile(file string, text conf.Script) *vm.Script {
	b.paths[file] = text.Path
	b.world.saysHeaders = b.world.saysHeaders || strings.Contains(text.Source, "headers")
	code, err := vm.Compile(file, text.Source)
	if err != nil {
		b.raised(conf.Pos{File: text.Path, Line: 1}, "", err)
		return nil
	}
	for _, f := range lint.Check(text.Source, b.sight()) {
		b.warnings.Add(conf.Pos{File: text.Path, Line: f.Line, Column: f.Column}, "", "%s", f.Message)
	}
	return code
}

// readScripts runs every script in a VM that is thrown away and reads its table.
func (b *builder) readScripts() {
	for _, name := range slices.Sorted(maps.Keys(b.scripts)) {
		s := b.scripts[name]
		faults := len(b.errs)
		if table := b.load(s); table != nil {
			b.readTable(s, table)
		}
		if len(b.errs) > faults {
			delete(b.scripts, name)
		}
	}
}

func (b *builder) load(s *script) *lua.LTable {
	v := vm.New(b.base)
	m := newMachine(&stage{world: b.world})
	m.loading = s.name
	v.Data = m
	result, err := v.Load(s.code)
	if err != nil {
		b.raised(conf.Pos{File: s.path, Line: 1}, "", err)
		return nil
	}
	table, ok := result.(*lua.LTable)
	if !ok {
		b.scriptFault(s, lastLine(s.source), "the script returned %s: it returns a table with its functions", describe(result))
		return nil
	}
	return vm.Thaw(table)
}

func lastLine(source string) int { return strings.Count(strings.TrimRight(source, "\n"), "\n") + 1 }
