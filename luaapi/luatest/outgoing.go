package luatest

import (
	"context"
	"errors"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// Called is a request that a filter made with gw.http.
type Called struct {
	Upstream string // "" for a URL
	URL      string // without path; "" for an upstream
	Method   string
	Path     string
	Query    string
	Headers  [][2]string
	Body     string
	Timeout  time.Duration
}

// Call implements core.Services: Bench.Calls answers, one call after the other. None sees the network.
func (s services) Call(ctx context.Context, _ *core.Exchange, calls ...*core.Call) {
	for _, c := range calls {
		called := Called{Upstream: c.Upstream, Method: c.Method, Path: string(c.Path), Query: string(c.Query), Body: string(c.Body), Timeout: c.Timeout}
		if c.Upstream == "" {
			called.URL = c.Scheme + "://" + c.Authority
		}
		for _, f := range c.Header.Fields() {
			called.Headers = append(called.Headers, [2]string{string(f.Name), string(f.Value)})
		}
		s.mu.Lock()
		s.Called = append(s.Called, called)
		s.mu.Unlock()
		answer := Answer{Status: 200}
		if s.Calls != nil {
			answer = s.Calls(called)
		}
		switch {
		case answer.Err != nil:
			c.Err = answer.Err
		case ctx.Err() != nil:
			c.Err = context.Cause(ctx)
		case int64(len(answer.Body)) > c.MaxAnswer:
			c.Err = core.ErrBodyTooLarge
		default:
			c.Answer.Status, c.Answer.Body = answer.Status, []byte(answer.Body)
			for _, line := range answer.Headers {
				c.Answer.Header.Add(line[0], line[1])
			}
		}
	}
}

// ReserveDelay implements core.Services.
func (s services) ReserveDelay() bool { return true }

// Delay implements core.Services: time is noted, and nobody waits.
func (s services) Delay(_ *core.Exchange, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Delayed += d
	return nil
}

// setCalls is t.calls.
func (s *suite) setCalls(a vm.Args) int {
	if fn, ok := a.Get(1).(*lua.LFunction); ok {
		s.callBy = fn
		return 0
	}
	t := a.Table(1)
	s.callBy, s.called = nil, callAnswer(a, t, lua.LNil)
	return 0
}

// answerCall gives the answer of t.calls to a call.
func (s *suite) answerCall(a vm.Args, c Called) Answer {
	if s.callBy == nil {
		return s.called
	}
	a.Call(2, s.callBy, calledTable(&c))
	first, second := a.L.Get(-2), a.L.Get(-1)
	a.L.Pop(2)
	return callAnswer(a, first, second)
}

// callAnswer reads what a function of t.calls gives: an answer, or nil and why there is none.
func callAnswer(a vm.Args, v, why lua.LValue) Answer {
	switch v := v.(type) {
	case *lua.LTable:
		return answerOf(a, v)
	case *lua.LNilType:
		return Answer{Err: errors.New(text(why))}
	}
	a.Raise("the function of t.calls gives a table, or nil and why there is no answer")
	return Answer{}
}

func calledTable(c *Called) *lua.LTable {
	t := newTable()
	for name, value := range map[string]string{"upstream": c.Upstream, "url": c.URL, "method": c.Method, "path": c.Path, "query": c.Query, "body": c.Body} {
		if value != "" || name != "upstream" && name != "url" {
			t.RawSetString(name, lua.LString(value))
		}
	}
	t.RawSetString("timeout", lua.LNumber(c.Timeout.Seconds()))
	t.RawSetString("headers", headerTable(c.Headers))
	return t
}

// noteOutgoing adds to a result what filters asked of others.
func noteOutgoing(t *lua.LTable, b *Bench) {
	calls, mirrored := newTable(), newTable()
	for i := range b.Called {
		calls.Append(calledTable(&b.Called[i]))
	}
	for _, upstream := range b.Mirrored {
		mirrored.Append(lua.LString(upstream))
	}
	t.RawSetString("calls", calls)
	t.RawSetString("mirrored", mirrored)
	t.RawSetString("delayed", lua.LNumber(b.Delayed.Seconds()))
}
