package vm

import (
	"fmt"
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// globalUse is one read or write of a global.
type globalUse struct {
	name       string
	line       int
	write      bool
	inFunction bool
}

// inspect collects from the compiled code what a reviewer wants to know.
func (s *Script) inspect() {
	s.walk(s.proto, nil, false)
	sort.SliceStable(s.Warnings, func(i, j int) bool { return s.Warnings[i].Line < s.Warnings[j].Line })
	for _, g := range s.globals {
		s.usesG = s.usesG || g.name == "_G"
	}
}

// walk looks at one function. fileLevel[i] tells whether its upvalue i is a local of the main chunk.
func (s *Script) walk(p *lua.FunctionProto, fileLevel []bool, inFunction bool) {
	for pc := 0; pc < len(p.Code); pc++ {
		inst := p.Code[pc]
		switch int(inst >> 26) {
		case lua.OP_SETUPVAL:
			if b := int(inst & 0x1ff); b < len(fileLevel) && fileLevel[b] {
				s.warn(p, pc, "function assigns to the file-level local '%s': each VM has its own, the next request may see another",
					p.DbgUpvalues[b])
			}
		case lua.OP_GETGLOBAL, lua.OP_SETGLOBAL:
			write := int(inst>>26) == lua.OP_SETGLOBAL
			name := p.Constants[inst&0x3ffff].String()
			s.globals = append(s.globals, globalUse{name, p.DbgSourcePositions[pc], write, inFunction})
			if write && inFunction {
				s.warn(p, pc, "function sets global '%s': that is an error after the script is loaded; write 'local %s'", name, name)
			}
		case lua.OP_CLOSURE:
			child := p.FunctionPrototypes[inst&0x3ffff]
			origin := make([]bool, child.NumUpvalues)
			for i := range origin { // one pseudo-instruction for each upvalue follows
				pc++
				b := int(p.Code[pc] & 0x1ff)
				if int(p.Code[pc]>>26) == lua.OP_MOVE {
					origin[i] = !inFunction
				} else {
					origin[i] = b < len(fileLevel) && fileLevel[b]
				}
			}
			s.walk(child, origin, true)
		case lua.OP_SETLIST:
			if (inst>>9)&0x1ff == 0 {
				pc++ // the next word is a number
			}
		}
	}
}

func (s *Script) warn(p *lua.FunctionProto, pc int, format string, args ...any) {
	s.Warnings = append(s.Warnings, Warning{s.Name, p.DbgSourcePositions[pc], fmt.Sprintf(format, args...)})
}

// Undefined reports globals that the script reads and that neither it nor b defines: they are nil, and mostly misspelt.
func (s *Script) Undefined(b *Base) []Warning {
	defined := map[string]bool{concatName: true}
	for _, g := range s.globals {
		if g.write {
			defined[g.name] = true
		}
	}
	var found []Warning
	for _, g := range s.globals {
		if !defined[g.name] && !b.Has(g.name) {
			found = append(found, Warning{s.Name, g.line, "global '" + g.name + "' is not defined, it is always nil"})
		}
	}
	return found
}
