package luatest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi"
	"github.com/moongate/moongate/luaapi/stdlib"
	"github.com/moongate/moongate/luaapi/vm"
)

// Result is how one test ended.
type Result struct {
	Name  string
	Line  int // of the test in its file
	Err   error
	Cause error // why the gateway failed the test's last request; nil when it did not
	Took  time.Duration
}

// budget is the Lua time of one test; what it asks of the pipeline is not counted there.
const budget = 10 * time.Second

// Tests finds the test files of a scripts folder: NAME_test.lua in it and in available/.
func Tests(dir string) ([]string, error) {
	var files []string
	for _, pattern := range []string{"*_test.lua", "available/*_test.lua"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// RunFile runs the tests of a file against the script beside it. The error says why they could not be run at all.
func RunFile(path string) ([]Result, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := newSuite(path)
	if err != nil {
		return nil, err
	}
	base, err := vm.NewBase(vm.Options{
		Funcs:  slices.Concat(stdlib.Funcs(), luaapi.PlainFuncs(), s.funcs()),
		Values: luaapi.PlainValues(stdlib.Values()),
		Limits: vm.Limits{Budget: budget, LoadBudget: budget, String: 16 << 20},
	})
	if err != nil {
		return nil, err
	}
	v := vm.New(base)
	v.Data = luaapi.PlainData()
	code, err := vm.Compile(filepath.Base(path), string(source))
	if err != nil {
		return nil, explain(err, string(source))
	}
	if _, err := v.Load(code); err != nil {
		return nil, err
	}
	tool, err := vm.Compile("luatest", "return t")
	if err != nil {
		return nil, err
	}
	t, err := v.Load(tool)
	if err != nil {
		return nil, err
	}
	return s.run(v, t), nil
}

// cutTOML is a long string of Lua with an array of tables of TOML in it, at whose brackets the string ends.
var cutTOML = regexp.MustCompile(`\[\[[^\]]*(?:\][^\]]+)*\n[ \t]*\[\[[a-z_.]+\]\]`)

// explain adds to a syntax error what is most likely behind it.
func explain(err error, source string) error {
	if cutTOML.MatchString(source) {
		return fmt.Errorf("%w (a text in [[ ]] ends at its first ]]: write [=[ ]=] around TOML that has [[upstream]] in it)", err)
	}
	return err
}

// suite is one test file and the state of the test in work.
type suite struct {
	script string            // name of the script under test
	files  map[string]string // the script, its libraries
	dir    string            // scripts folder, for gw.file.read
	tests  []declared

	settings  string
	toml      string
	upstreams []string
	answer    Answer
	answerBy  *lua.LFunction
	called    Answer         // to calls
	callBy    *lua.LFunction // likewise
	bench     *Bench
	clock     time.Duration
	forwarded *Forwarded
	failed    error // why the gateway failed the last request
}

type declared struct {
	name string
	line int
	fn   *lua.LFunction
}

func newSuite(path string) (*suite, error) {
	dir, file := filepath.Split(path)
	name, ok := strings.CutSuffix(file, "_test.lua")
	if !ok {
		return nil, fmt.Errorf("%s: a test's file is called NAME_test.lua", path)
	}
	s := &suite{script: name, files: map[string]string{}, dir: filepath.Clean(dir)}
	source, err := os.ReadFile(filepath.Join(dir, name+".lua"))
	if err != nil {
		return nil, err
	}
	s.files["scripts/"+name+".lua"] = string(source)
	if filepath.Base(s.dir) == "available" {
		s.dir = filepath.Dir(s.dir)
	}
	return s, s.readLibraries()
}

func (s *suite) readLibraries() error {
	lib := filepath.Join(s.dir, "lib")
	err := filepath.WalkDir(lib, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".lua") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(s.dir, path)
		s.files["scripts/"+filepath.ToSlash(rest)] = string(text)
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *suite) run(v *vm.VM, t lua.LValue) []Result {
	var results []Result
	for _, test := range s.tests {
		s.settings, s.toml, s.upstreams, s.bench, s.answerBy = "", "", []string{"main", "canary"}, nil, nil
		s.answer, s.forwarded, s.clock = Answer{Status: 200}, nil, time.Hour
		s.called, s.callBy, s.failed = Answer{Status: 200}, nil, nil
		start := time.Now()
		_, err := v.Call(test.fn, t)
		results = append(results, Result{Name: test.name, Line: test.line, Err: err, Cause: s.failed, Took: time.Since(start)})
	}
	return results
}
