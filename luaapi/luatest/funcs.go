package luatest

import (
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

func param(name, kind, doc string) vm.Param { return vm.Param{Name: name, Type: kind, Doc: doc} }

// Funcs is the binding table of test files, for documentation.
func Funcs() []vm.Func { return (&suite{}).funcs() }

func (s *suite) funcs() []vm.Func {
	return []vm.Func{
		{Name: "test", Doc: "Declares a test. Each begins anew: no settings, an upstream that answers 200, full buckets.",
			Params: []vm.Param{param("name", "string", "what holds, as a sentence"), param("run", "fun(t)", "the same as the global t")},
			Do:     s.declare},
		{Name: "t.config", Doc: "Gives the filter its settings, as [filter.NAME] would.",
			Params: []vm.Param{param("settings", "table", "")}, Do: s.configure},
		{Name: "t.toml", Doc: "Adds text to the configuration, such as a [limiter.NAME]. The upstreams main and canary and the route test, for every path, are there " +
			"anyway. A [redis.NAME] is the one server that is really asked.",
			Params: []vm.Param{param("text", "string", "TOML; around [[tables]] write [=[ and ]=], since a text in [[ ]] ends at its first ]]")},
			Do: func(a vm.Args) int {
				s.toml += a.String(1) + "\n"
				s.bench = nil
				return 0
			}},
		{Name: "t.answer", Doc: "Says what the upstream answers from now on: a response, or a function that makes one of the forwarded request.",
			Params: []vm.Param{param("answer", "table|fun(forwarded): table", "status, headers, body")}, Do: s.setAnswer},
		{Name: "t.calls", Doc: "Says what gw.http gets from now on: a response, or a function that makes one of the call, or gives nil and why there is none. Nothing of " +
			"it goes over the network.",
			Params: []vm.Param{param("answer", "table|fun(call): table?, string?", "status, headers, body; a call has upstream or url, method, path, query, headers, body, timeout")},
			Do:     s.setCalls},
		{Name: "t.request", Doc: "Sends a request through the filter and gives what the client and the upstream see.",
			Params:  []vm.Param{param("request", "table", "method, path (with query), headers, body, client_ip, host, params (by name, as the route would have them), tls (subject, fingerprint, san of a client certificate)")},
			Returns: []vm.Param{param("result", "table", "status, headers, body, source, error; forwarded (nil: not asked) with upstream, endpoint, method, path, query, headers, body; lines of the access log; calls made with gw.http; mirrored, the upstreams that copies went to; delayed, in seconds")},
			Do:      s.request},
		{Name: "t.refused", Doc: "Gives the message with which the configuration is refused at load, nil when it is not.",
			Returns: []vm.Param{param("message", "string?", "")},
			Do: func(a vm.Args) int {
				if err := s.build(); err != nil {
					return a.Return(lua.LString(err.Error()))
				}
				return a.Return(lua.LNil)
			}},
		{Name: "t.sleep", Doc: "Lets time pass for limiters, gw.shared and gw.cache, without waiting.",
			Params: []vm.Param{param("seconds", "number", "")},
			Do: func(a vm.Args) int {
				s.clock += time.Duration(a.Number(1) * float64(time.Second))
				return 0
			}},
		{Name: "t.tick", Doc: "Runs every timer of the filter once (gw.time.every); none runs by itself in a test. An error in one fails the test.",
			Do: func(a vm.Args) int {
				if err := s.build(); err != nil {
					a.Raise("the configuration is refused: %s", err)
				}
				if err := s.bench.Pipeline.Tick(); err != nil {
					a.Raise("%s", err)
				}
				return 0
			}},
		{Name: "t.token", Doc: "Signs a JSON Web Token (HS256).",
			Params: []vm.Param{param("secret", "string", ""), param("claims", "table", ""),
				{Name: "seconds", Type: "number", Optional: true, Doc: "until it expires; default 3600"}},
			Returns: []vm.Param{param("token", "string", "")}, Do: token},
		{Name: "t.log", Doc: "Gives what was logged since the last call, one JSON object a line.",
			Returns: []vm.Param{param("text", "string", "")},
			Do: func(a vm.Args) int {
				if s.bench == nil {
					return a.Return(lua.LString(""))
				}
				return a.Return(lua.LString(s.bench.Log()))
			}},
		{Name: "t.equal", Doc: "Fails the test unless two values are equal; tables are compared by what is in them.",
			Params: []vm.Param{param("got", "any", ""), param("want", "any", ""), {Name: "what", Type: "string", Optional: true}},
			Do: func(a vm.Args) int {
				if got, want := a.Get(1), a.Get(2); !same(got, want, 0) {
					a.Raise("%sgot %s, want %s", remark(a, 3), show(got), show(want))
				}
				return 0
			}},
		{Name: "t.ok", Doc: "Fails the test unless a value is true.",
			Params: []vm.Param{param("value", "any", ""), {Name: "what", Type: "string", Optional: true}},
			Do: func(a vm.Args) int {
				if !a.Bool(1) {
					a.Raise("%sgot %s", remark(a, 2), show(a.Get(1)))
				}
				return 0
			}},
		{Name: "t.contains", Doc: "Fails the test unless a text has another in it.",
			Params: []vm.Param{param("text", "string", ""), param("part", "string", "")},
			Do: func(a vm.Args) int {
				if text, ok := a.Get(1).(lua.LString); !ok || !strings.Contains(string(text), a.String(2)) {
					a.Raise("got %s, want %s in it", show(a.Get(1)), show(a.Get(2)))
				}
				return 0
			}},
	}
}

func (s *suite) declare(a vm.Args) int {
	fn := a.Function(2)
	if fn.IsG {
		a.Raise("a test is a function of the test's file")
	}
	s.tests = append(s.tests, declared{a.String(1), fn.Proto.LineDefined, fn})
	return 0
}

func (s *suite) configure(a vm.Args) int {
	pairs, err := tomlPairs(a.Table(1))
	if err != nil {
		a.Bad(1, "%s", err)
	}
	s.settings, s.bench = strings.Join(pairs, "\n"), nil
	return 0
}

func (s *suite) setAnswer(a vm.Args) int {
	s.answerBy = nil
	if fn, ok := a.Get(1).(*lua.LFunction); ok {
		s.answerBy = fn
		return 0
	}
	s.answer = answerOf(a, a.Table(1))
	return 0
}

// build makes the pipeline of the test's configuration.
func (s *suite) build() error {
	if s.bench != nil {
		return nil
	}
	var text strings.Builder
	for _, name := range s.upstreams {
		text.WriteString("[[upstream]]\nname = " + tomlString(name) + "\nendpoints = [\"http://127.0.0.1:9001\", \"http://127.0.0.1:9002\"]\n")
	}
	text.WriteString("[filter." + s.script + "]\n" + s.settings + "\n" + s.toml)
	text.WriteString("[[route]]\nname = \"test\"\npath = \"/**\"\nupstream = \"main\"\n")
	files := map[string]string{"gateway.toml": text.String()}
	for name, source := range s.files {
		files[name] = source
	}
	var err error
	s.bench, err = New(Options{Files: files, Folder: s.dir, Clock: func() time.Duration { return s.clock }})
	return err
}

func (s *suite) request(a vm.Args) int {
	r := requestOf(a, a.Table(1))
	if err := s.build(); err != nil {
		a.Raise("the configuration is refused: %s", err)
	}
	b := s.bench
	s.forwarded, b.Lines, b.Called, b.Mirrored, b.Delayed = nil, nil, nil, nil, 0
	b.Calls = func(c Called) Answer { return s.answerCall(a, c) }
	s.bench.Upstream = func(f Forwarded) Answer {
		s.forwarded = &f
		if s.answerBy != nil {
			a.Call(1, s.answerBy, forwardedTable(&f))
			t, ok := a.L.Get(-1).(*lua.LTable)
			a.L.Pop(1)
			if !ok {
				a.Raise("the function of t.answer gives a table")
			}
			return answerOf(a, t)
		}
		return s.answer
	}
	answer := b.Do(r)
	s.failed = answer.Err
	t := resultTable(answer, s.forwarded, b.Lines)
	noteOutgoing(t, b)
	a.L.Push(t)
	return 1
}

func token(a vm.Args) int {
	claims := map[string]any{}
	t := a.Table(2)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		claims[key.String()] = goValue(v)
	}
	seconds := a.OptNumber(3, 3600)
	text, err := auth.Sign([]byte(a.String(1)), claims, time.Now().Add(time.Duration(seconds*float64(time.Second))))
	if err != nil {
		a.Raise("%s", err)
	}
	return a.Return(lua.LString(text))
}
