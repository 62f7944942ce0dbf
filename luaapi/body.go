package luaapi

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// defaultBuffer is the longest body that scripts see where no route says so.
const defaultBuffer = 1 << 20

// requestMethods are the functions of req.
var requestMethods = []vm.Func{
	{Name: "req:body", Phases: phaseWhole,
		Doc: "Reads the whole body, as it came. Beyond the route's `body_buffer` the request ends with 413 before the script sees a part. " +
			"After on_request a body that nobody had read is gone: nil and why.",
		Returns: []vm.Param{{Name: "body", Type: "string?", Doc: "empty when there is none"}, {Name: "err", Type: "string?"}},
		Do: func(a vm.Args) int {
			body, err := requestOf(a).requestBody(a)
			return pushBody(a, body, err)
		}},
	{Name: "req:body_fits", Phases: phaseRequest,
		Doc: "Tells whether the whole body fits into the route's `body_buffer`, reading it that far. A body that does not goes upstream whole, " +
			"and reading it would end the request with 413.",
		Returns: []vm.Param{{Name: "fits", Type: "boolean"}},
		Do: func(a vm.Args) int {
			f := requestOf(a)
			_, err := f.x.Request.Body.Buffer(f.bodyBuffer())
			if err != nil && !errors.Is(err, core.ErrBodyTooLarge) {
				f.unreadable(a.L, err)
			}
			a.L.Push(lua.LBool(err == nil))
			return 1
		}},
	{Name: "req:json", Phases: phaseWhole,
		Doc:     "Reads the body as gw.json.decode does, uncompressed when it is gzip or deflate.",
		Returns: []vm.Param{{Name: "value", Type: "any"}, {Name: "err", Type: "string?", Doc: "why it is no JSON"}},
		Do: func(a vm.Args) int {
			body, err := requestOf(a).requestContent(a)
			return pushDecoded(a, body, err)
		}},
	{Name: "req:json_get", Phases: phaseWhole,
		Doc: "Reads one value of a JSON body, uncompressed when it is gzip or deflate, without making tables of the rest: names, and indexes " +
			"from 0, joined by dots; `\\.` is a dot within a name.",
		Params: []vm.Param{{Name: "path", Type: "string", Doc: "such as `user.roles.0`"}},
		Returns: []vm.Param{{Name: "value", Type: "any", Doc: "nil when the path leads nowhere"},
			{Name: "err", Type: "string?", Doc: "why it is no JSON"}},
		Do: func(a vm.Args) int {
			body, err := requestOf(a).requestContent(a)
			return pushFound(a, body, err)
		}},
	{Name: "req:set_body", Phases: phaseRequest,
		Doc:    "Replaces the body. Its length stays true; Content-Encoding and digests, which no longer are, go.",
		Params: []vm.Param{{Name: "body", Type: "string"}},
		Do: func(a vm.Args) int {
			f := requestOf(a)
			f.x.Request.Body.Replace(core.Bytes(argText(a, 2)))
			f.x.Request.Keep()
			f.x.Request.Header.DelFunc(describesBody)
			return 0
		}},
}

// responseMethods are the functions of res.
var responseMethods = []vm.Func{
	{Name: "res:body", Phases: phaseResponse,
		Doc:     "Reads the whole body, as it came. Beyond the route's `body_buffer` it is nil and `too large`, and the answer streams on untouched.",
		Returns: []vm.Param{{Name: "body", Type: "string?"}, {Name: "err", Type: "string?"}},
		Do: func(a vm.Args) int {
			body, err := responseOf(a).responseBody(a)
			return pushBody(a, body, err)
		}},
	{Name: "res:json", Phases: phaseResponse,
		Doc:     "Reads the body as gw.json.decode does, uncompressed when it is gzip or deflate.",
		Returns: []vm.Param{{Name: "value", Type: "any"}, {Name: "err", Type: "string?", Doc: "why it is no JSON, or `too large`"}},
		Do: func(a vm.Args) int {
			body, err := responseOf(a).responseContent(a)
			return pushDecoded(a, body, err)
		}},
	{Name: "res:json_get", Phases: phaseResponse,
		Doc:    "Reads one value of a JSON body, as req:json_get does.",
		Params: []vm.Param{{Name: "path", Type: "string", Doc: "such as `error.code`"}},
		Returns: []vm.Param{{Name: "value", Type: "any", Doc: "nil when the path leads nowhere"},
			{Name: "err", Type: "string?", Doc: "why it is no JSON, or `too large`"}},
		Do: func(a vm.Args) int {
			body, err := responseOf(a).responseContent(a)
			return pushFound(a, body, err)
		}},
	{Name: "res:set_body", Phases: phaseResponse,
		Doc: "Replaces the body. Its length stays true; Content-Encoding, digests, ETag, Last-Modified and ranges, which no longer " +
			"are, go.",
		Params: []vm.Param{{Name: "body", Type: "string"}},
		Do: func(a vm.Args) int {
			f := responseOf(a)
			r := &f.x.Response
			switch {
			case r.Started:
				raise(a.L, "res:set_body came too late: the answer's head has been sent")
			case !core.BodyAllowed(r.Status):
				raise(a.L, "an answer of this status has no body: set res.status first")
			}
			r.Body.Replace(core.Bytes(argText(a, 2)))
			r.Header.DelFunc(func(h *core.Field) bool { return describesBody(h) || validatesBody(h) })
			return 0
		}},
}

// requestOf is the frame of a method's req.
func requestOf(a vm.Args) *frame {
	if ud, ok := a.L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*requestHandle); ok {
			return (*frame)(h).alive(a.L)
		}
	}
	raise(a.L, "call it with a colon: "+a.Func.Name+"(...)")
	return nil
}

// responseOf is the frame of a method's res.
func responseOf(a vm.Args) *frame {
	if ud, ok := a.L.Get(1).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*responseHandle); ok {
			return (*frame)(h).alive(a.L)
		}
	}
	raise(a.L, "call it with a colon: "+a.Func.Name+"(...)")
	return nil
}

// alive raises when the frame's exchange is over.
func (f *frame) alive(L *lua.LState) *frame {
	if f.x == nil {
		raise(L, staleMessage)
	}
	return f
}

func (f *frame) bodyBuffer() int64 {
	if f.x.Route == nil || f.x.Route.BodyBuffer <= 0 {
		return defaultBuffer
	}
	return f.x.Route.BodyBuffer
}

// requestBody reads the request's body whole. When that fails the exchange does, even if the script catches the error: no script
// ever decides on a part.
func (f *frame) requestBody(a vm.Args) ([]byte, error) {
	b := &f.x.Request.Body
	if f.phase != phaseRequest {
		if body, whole := b.AsRead(); whole {
			return body, nil
		}
		return nil, errors.New("the body went upstream unread: read it in on_request")
	}
	body, err := b.Buffer(f.bodyBuffer())
	if err == nil {
		return body, nil
	}
	f.unreadable(a.L, err)
	return nil, err
}

// unreadable ends the exchange whose request's body cannot be had. It does not return.
func (f *frame) unreadable(L *lua.LState, err error) {
	if f.fault = bodyFault(err); f.fault.Status == 413 {
		raise(L, "the body is larger than the route's body_buffer")
	}
	raise(L, "the body could not be read: "+err.Error())
}

// responseBody reads the response's body whole.
func (f *frame) responseBody(a vm.Args) ([]byte, error) {
	body, err := f.x.Response.Body.Buffer(f.bodyBuffer())
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, core.ErrBodyTooLarge):
		return nil, errors.New("too large")
	}
	return nil, errors.New("the body could not be read: " + err.Error())
}

// requestContent is the request's body without its content coding.
func (f *frame) requestContent(a vm.Args) ([]byte, error) {
	body, err := f.requestBody(a)
	if err != nil {
		return nil, err
	}
	return content(&f.x.Request.Header, body, f.bodyBuffer())
}

// responseContent is the response's body without its content coding.
func (f *frame) responseContent(a vm.Args) ([]byte, error) {
	body, err := f.responseBody(a)
	if err != nil {
		return nil, err
	}
	return content(&f.x.Response.Header, body, f.bodyBuffer())
}

// bodyFault is what a request deserves whose body cannot be had.
func bodyFault(err error) *core.Error {
	var fault *core.Error
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, core.ErrBodyTooLarge):
		return core.Fail(413, "request body too large", err)
	}
	return core.Fail(400, "request body cut short", err)
}

func pushBody(a vm.Args, body []byte, err error) int {
	if err != nil {
		return pushFailure(a, err)
	}
	a.CheckString(len(body))
	a.L.Push(str(body))
	return 1
}

func pushFailure(a vm.Args, err error) int {
	a.L.Push(lua.LNil)
	a.L.Push(lua.LString(err.Error()))
	return 2
}

// describesBody tells whether a header line speaks of the bytes of a body and is no longer true when they change.
func describesBody(h *core.Field) bool {
	if h.Kind == core.KindContentEncoding || h.Kind == core.KindContentLength {
		return true
	}
	return isOneOf(h.Name, "content-md5", "digest", "content-digest", "repr-digest")
}

// validatesBody tells whether a header line lets caches or ranges tell a body from its successor.
func validatesBody(h *core.Field) bool {
	return isOneOf(h.Name, "etag", "last-modified", "accept-ranges", "content-range")
}

func isOneOf(name []byte, names ...string) bool {
	for _, n := range names {
		if core.EqualFoldString(name, n) {
			return true
		}
	}
	return false
}

// argText is argument i as text; numbers are written without exponent. Anything else raises.
func argText(a vm.Args, i int) string {
	s, ok := text(a.Get(i))
	if !ok {
		a.Bad(i, "string expected, got %s", a.Get(i).Type())
	}
	return s
}
