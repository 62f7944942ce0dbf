package vm

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// maxSource is the longest script in bytes, so that a file put in by mistake ends in a message and not in gigabytes of syntax tree.
const maxSource = 1 << 20

// Script is a compiled file. It is immutable; all VMs share it.
type Script struct {
	Name   string // as it stands in errors: "auth.lua"
	Source string
	proto  *lua.FunctionProto
	usesG  bool
}

// Compile compiles a script. The error is an *Error with the script's name and line.
func Compile(name, source string) (s *Script, err error) {
	if len(source) > maxSource {
		return nil, &Error{Script: name, Message: fmt.Sprintf("source of %d bytes is longer than %d", len(source), maxSource)}
	}
	if _, err := knobs(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // the parser and compiler panic on some nonsense
			s, err = nil, &Error{Script: name, Message: fmt.Sprint("cannot be compiled: ", r)}
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(blankShebang(source)), name)
	if err != nil {
		return nil, syntaxError(name, source, err)
	}
	chunk, err = rewrite(name, chunk)
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, syntaxError(name, source, err)
	}
	keepFrames(proto)
	return &Script{Name: name, Source: source, proto: proto, usesG: names(proto, "_G")}, nil
}

// blankShebang replaces a byte order mark and a first line that begins with # by spaces, as the lua program does.
func blankShebang(source string) string {
	source = strings.TrimPrefix(source, "\uFEFF")
	if !strings.HasPrefix(source, "#") {
		return source
	}
	end := strings.IndexByte(source, '\n')
	if end < 0 {
		return ""
	}
	return source[end:]
}

func syntaxError(name, source string, err error) error {
	var p *parse.Error
	if errors.As(err, &p) {
		message := strings.TrimSpace(p.Message)
		if p.Pos.Line == parse.EOF {
			return &Error{Script: name, Line: strings.Count(source, "\n") + 1, Message: message + " at the end of the file"}
		}
		return &Error{Script: name, Line: p.Pos.Line, Message: fmt.Sprintf("%s near '%s'", message, clip(p.Token))}
	}
	var c *lua.CompileError
	if errors.As(err, &c) {
		return &Error{Script: name, Line: c.Line, Message: strings.TrimSpace(c.Message)}
	}
	return &Error{Script: name, Message: err.Error()}
}

// names tells whether a function, or one inside it, reads or sets a global by that name.
func names(p *lua.FunctionProto, name string) bool {
	for pc := 0; pc < len(p.Code); pc++ {
		switch inst := p.Code[pc]; int(inst >> 26) {
		case lua.OP_GETGLOBAL, lua.OP_SETGLOBAL:
			if p.Constants[inst&0x3ffff].String() == name {
				return true
			}
		case lua.OP_SETLIST:
			if (inst>>9)&0x1ff == 0 {
				pc++ // the next word is a number
			}
		}
	}
	for _, inner := range p.FunctionPrototypes {
		if names(inner, name) {
			return true
		}
	}
	return false
}
