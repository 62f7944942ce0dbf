package luaapi

import (
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// The moments in which a script runs.
const (
	phaseLoad vm.Phase = 1 << iota // the file itself
	phaseInit
	phaseRequest
	phaseResponse
	phaseLog
	phaseRequestChunk
	phaseResponseChunk
	phaseTimer

	phaseWhole    = phaseRequest | phaseResponse | phaseLog // functions that get a handle on req or res
	phaseExchange = phaseWhole | phaseRequestChunk | phaseResponseChunk
	phaseRun      = phaseExchange | phaseTimer // everything but loading, which is also done to try
)

var phaseNames = []string{"the file itself", "init", "on_request", "on_response", "on_log", "on_request_chunk", "on_response_chunk", "a timer"}

// frame is one taking of a VM for one exchange and phase. It holds the handles that scripts get, in one allocation, and is never
// used again: a handle that a script keeps finds its frame empty.
type frame struct {
	main    lua.LUserData // req, res or entry
	headers lua.LUserData // of req or res
	ctx     lua.LUserData

	x     *core.Exchange
	m     *machine
	phase vm.Phase
	turn  *turn // the filter whose turn it is
	conf  *lua.LTable
	reply *core.Reply
	calls counted        // of gw.http
	delay time.Duration  // after which the exchange goes on
	fault *core.Error    // ends the exchange, whatever the script makes of it
	who   *auth.Identity // that a verifier told last

	req, res *lua.LUserData // of res.req, entry.req and entry.res, once a script asked for them
}

// Handles are userdata whose value is the frame under the name of what they stand for.
type (
	requestHandle   frame
	responseHandle  frame
	entryHandle     frame
	contextHandle   frame
	requestHeaders  frame
	responseHeaders frame
	queryHandle     frame
	cookiesHandle   frame
	paramsHandle    frame
)

// begin gives the machine a frame for an exchange. Fields are set one by one: copying whole handles costs barriers while the collector
// marks.
func (m *machine) begin(x *core.Exchange, phase vm.Phase) *frame {
	f := &frame{x: x, m: m, phase: phase}
	f.ctx.Value, f.ctx.Metatable = (*contextHandle)(f), contextMeta
	switch phase {
	case phaseRequest:
		f.main.Value, f.main.Metatable = (*requestHandle)(f), m.surface(requestSurface)
		f.headers.Value, f.headers.Metatable = (*requestHeaders)(f), headersMeta
		m.show(requestSurface, &f.headers)
	case phaseResponse:
		f.main.Value, f.main.Metatable = (*responseHandle)(f), m.surface(responseSurface)
		f.headers.Value, f.headers.Metatable = (*responseHeaders)(f), headersMeta
		m.show(responseSurface, &f.headers)
	case phaseLog:
		f.main.Value, f.main.Metatable = (*entryHandle)(f), m.surface(entrySurface)
	}
	return f
}

// end makes every handle of the frame useless.
func (f *frame) end() {
	f.x, f.turn, f.conf, f.who = nil, nil, nil, nil
	f.main.Metatable = staleMeta
	if f.req != nil {
		f.req.Metatable = staleMeta
	}
	if f.res != nil {
		f.res.Metatable = staleMeta
	}
}

// requestView is the handle on the request that responses and log entries show.
func (f *frame) requestView() lua.LValue {
	if f.req == nil {
		f.req = &lua.LUserData{Value: (*requestHandle)(f), Metatable: f.m.surface(requestSurface)}
		f.m.show(requestSurface, &lua.LUserData{Value: (*requestHeaders)(f), Metatable: headersMeta})
	}
	return f.req
}

// responseView is the handle on the response that log entries show.
func (f *frame) responseView() lua.LValue {
	if f.res == nil {
		f.res = &lua.LUserData{Value: (*responseHandle)(f), Metatable: f.m.surface(responseSurface)}
		f.m.show(responseSurface, &lua.LUserData{Value: (*responseHeaders)(f), Metatable: headersMeta})
	}
	return f.res
}

// current is the frame in which a binding was called. Only functions of the exchange's phases may ask.
func current(L *lua.LState) *frame {
	return vm.From(L).Slot.(*frame)
}

// raise raises an error with the position of the calling script. It does not return.
func raise(L *lua.LState, message string) { L.RaiseError("%s", message) }

const staleMessage = "this handle was used after its request: keep values, not handles"
