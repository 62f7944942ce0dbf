package luaapi

import (
	"errors"
	"io"
	"strconv"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/compress"
	"github.com/moongate/moongate/luaapi/vm"
)

// on_request_chunk and on_response_chunk: bodies that filters work on as they pass.

// maxChunk is the longest piece of a body that a function gets, unless one before it gave more.
const maxChunk = 32 << 10

// passage is a body on its way through the functions of one stage. It moves when its reader asks: a reader that waits makes the sender
// wait. A VM is held while the functions run for one piece, and never while the next is waited for.
type passage struct {
	stage    *stage
	x        *core.Exchange
	src      *core.Body
	phase    vm.Phase
	function int
	turns    []*turn // in the order in which they see a piece; nil: it failed and is passed by
	shared   bool

	leaves bool    // all functions give what they get
	left   int64   // bytes that src has still to give to the functions; -1: nobody knows
	held   int     // bytes in buf that wait for the end of src
	end    [1]byte // room to read the end

	buf     []byte // nil before the first piece
	pending []byte // what the functions gave and nobody has read
	ended   error  // of src; given once the functions have had the last piece
	err     error  // sticky: after pending

	kept   int // bytes that ctx held before the first piece
	weighs map[*lua.LTable]int
}

var chunkBuffers = sync.Pool{New: func() any { return new([maxChunk]byte) }}

// over makes p read src.
func (p *passage) over(src *core.Body) io.Reader {
	p.src, p.left = src, src.Length()
	return p
}

// AtHand tells whether a Read would find something without waiting for the source. To know, it may run the functions.
func (p *passage) AtHand() bool {
	for len(p.pending) == 0 && p.err == nil && p.src.AtHand() {
		p.move(false)
	}
	return len(p.pending) > 0 || p.err != nil
}

// Read gives what the functions made of the body. It returns io.EOF with the last of it.
func (p *passage) Read(b []byte) (int, error) {
	for len(p.pending) == 0 && p.err == nil {
		p.move(true)
	}
	n := copy(b, p.pending)
	if p.pending = p.pending[n:]; len(p.pending) > 0 || p.err == nil || n > 0 && p.err != io.EOF {
		return n, nil
	}
	p.release()
	return n, p.err
}

func (p *passage) release() {
	if p.buf != nil {
		chunkBuffers.Put((*[maxChunk]byte)(p.buf[:maxChunk]))
		p.buf, p.pending = nil, nil
	}
}

// move takes the next piece through the functions. It waits for the source, unless it shall not, where the piece is the last and whether it is can
// only be told by the end.
func (p *passage) move(wait bool) {
	n := 0
	if p.ended == nil {
		if n = p.fill(); p.ended == nil && p.leaves && int64(n) == p.left && !p.readEnd(wait) {
			p.held = n
			return
		}
		p.left -= int64(n)
	}
	last := p.ended == io.EOF
	if n > 0 || last {
		p.pending, p.err = p.pass(p.buf[:n], last)
	}
	if p.err == nil && p.ended != nil {
		p.err = p.ended
	}
}

// fill reads a piece: what has come, up to its limit. It waits for the first byte alone.
func (p *passage) fill() (n int) {
	n, p.held = p.held, 0
	if p.buf == nil {
		p.buf = chunkBuffers.Get().(*[maxChunk]byte)[:]
	}
	for p.ended == nil && n < maxChunk && (n == 0 || p.src.AtHand()) {
		var got int
		got, p.ended = p.src.Read(p.buf[n:])
		n += got
	}
	if p.function == onRequestChunk && errors.Is(p.ended, compress.ErrCoding) {
		p.ended = core.Fail(400, "request body is not encoded as it says", p.ended)
	}
	return n
}

// readEnd reads the end of a body whose bytes have all come: who receives it counts them, and would have a body whole before the functions'
// last call can refuse it. False when it has not come.
func (p *passage) readEnd(wait bool) bool {
	for p.ended == nil && (wait || p.src.AtHand()) {
		var got int
		if got, p.ended = p.src.Read(p.end[:]); got > 0 {
			p.ended = errLonger
		}
	}
	return p.ended != nil
}

var errLonger = errors.New("a body is longer than was announced")

// pass runs the functions for one piece.
func (p *passage) pass(chunk []byte, last bool) ([]byte, error) {
	if p.shared {
		p.x.Filters.Lock()
		defer p.x.Filters.Unlock()
	}
	r, err := p.stage.begin(p.x, p.phase)
	if err != nil {
		return nil, err
	}
	defer r.end()
	given := lua.LString(chunk)
	v := given
	for i, t := range p.turns {
		if t == nil || v == "" && !last {
			continue
		}
		out, on, err := r.chunk(t, p.function, v, last)
		if err != nil {
			return nil, err
		}
		if v = out; !on {
			p.turns[i] = nil
		}
	}
	if err := p.checkHeld(&r); err != nil {
		return nil, err
	}
	if v == given {
		return chunk, nil
	}
	return core.Bytes(string(v)), nil
}

// chunk gives a filter its turn with a piece. on is false when it failed and the body shall pass it by.
func (r *runner) chunk(t *turn, function int, chunk lua.LString, last bool) (out lua.LString, on bool, err error) {
	if !t.filter.breaker.admits(r.since) {
		return chunk, false, t.filter.rest(t)
	}
	out, failed := r.callChunk(t, function, chunk, last)
	if err = r.settle(t, failed, "filter failed, the rest of the body passes it by"); err != nil {
		return "", false, err
	}
	if reply := r.frame.reply; reply != nil {
		return "", false, core.Fail(reply.Status, "", &core.Answered{Reply: reply})
	}
	return out, failed == nil, nil
}

// callChunk calls the function and looks at what it returned.
func (r *runner) callChunk(t *turn, function int, chunk lua.LString, last bool) (lua.LString, error) {
	fn, err := r.ready(t, function)
	if err != nil {
		return chunk, err
	}
	f := r.frame
	result, err := r.vm.Call(fn, chunk, &f.ctx, f.conf, lua.LBool(last))
	if err != nil {
		return chunk, err
	}
	switch v := result.(type) {
	case *lua.LNilType:
		if f.reply == nil {
			return chunk, nil
		}
	case lua.LString:
		if t.filter.script.leaves && v != chunk {
			return chunk, wrongResult(fn, functionNames[function]+" returned another text, and the script says leaves_bodies = true: it returns nothing")
		}
		if f.reply == nil {
			return v, nil
		}
	case *lua.LUserData:
		if f.reply != nil && v == replyMark {
			return chunk, nil
		}
	}
	if f.reply != nil {
		return chunk, wrongResult(fn, notReturned)
	}
	return chunk, wrongResult(fn, functionNames[function]+" returned "+describe(result)+`: it returns a string, "" to swallow the chunk, or nothing to leave it`)
}

// checkHeld bounds what functions keep in ctx from one piece to the next: as much as the route lets scripts hold of a body.
func (p *passage) checkHeld(r *runner) error {
	held := p.weigh()
	limit := r.frame.bodyBuffer()
	if int64(held-p.kept) <= limit {
		return nil
	}
	return core.Fail(500, "internal error", errors.New("functions of stage "+p.stage.name+" hold more of a body in ctx than the route's body_buffer, "+
		strconv.FormatInt(limit, 10)+" bytes"))
}

// weigh is about how many bytes ctx holds.
func (p *passage) weigh() (n int) {
	vars := &p.x.Vars
	for i := range vars.Len() {
		_, v := vars.At(i)
		switch v := v.(type) {
		case lua.LString:
			n += len(v)
		case *lua.LTable:
			n += p.weighTable(v)
		}
	}
	return n
}

// weighTable weighs a table once: it is a read-only copy.
func (p *passage) weighTable(t *lua.LTable) int {
	if n, ok := p.weighs[t]; ok {
		return n
	}
	n := 0
	real := vm.Thaw(t)
	for key, v := real.Next(lua.LNil); key != lua.LNil; key, v = real.Next(key) {
		n += 32
		for _, part := range [...]lua.LValue{key, v} {
			switch part := part.(type) {
			case lua.LString:
				n += len(part)
			case *lua.LTable:
				n += p.weighTable(part)
			}
		}
	}
	if p.weighs == nil {
		p.weighs = map[*lua.LTable]int{}
	}
	p.weighs[t] = n
	return n
}
