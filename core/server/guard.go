package server

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/moongate/moongate/core"
)

// guard watches the frames that a client sends (RFC 9113 section 10.5). Frames that move no request forward cost credit, which requests,
// bodies and time bring back; who has none left is kept no longer. It reads frame heads alone.
type guard struct {
	preface int     // bytes of the preface that are still to come
	head    [9]byte // of the frame under way
	have    int     // bytes of head
	left    int     // bytes of its payload

	opened  atomic.Int64 // streams that the client has begun
	highest uint32       // of them

	block   bool // a header block has begun and not ended
	padded  bool // the length of the padding comes next
	frames  int  // in this block
	credit  int
	since   core.Instant // of the last refill
	resets  int          // in the minute under way
	minute  core.Instant // when it began
	windows int64        // how often the client may open one yet

	replies replies // what goes out to the client
}

const (
	prefaceSize = 24

	maxCredit    = 1000 // and what a connection begins with
	creditASec   = 20
	creditGained = 10 // by a request or a piece of a body
	creditSent   = 2  // by a piece of an answer: clients of gRPC send a ping for as good as each, to measure the connection
	settingsCost = 20 // they are rare, and each is answered
	maxWindows   = 1000

	maxResets      = 200 // a minute
	refusedAReset  = 5   // streams beyond the limit that count as one: clients that have not heard of the limit yet open some
	maxBlockFrames = 64  // HEADERS with its CONTINUATIONs
)

// Frame types and flags of RFC 9113 section 6.
const (
	frameData = iota
	frameHeaders
	framePriority
	frameReset
	frameSettings
	framePush
	framePing
	frameGoAway
	frameWindowUpdate
	frameContinuation

	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
)

var (
	errFlood      = errors.New("too many frames that ask for nothing")
	errResets     = errors.New("too many streams reset within a minute")
	errManyFrames = errors.New("header block in too many frames")
)

func (g *guard) begin(now core.Instant) {
	g.preface, g.credit, g.since, g.minute, g.windows = prefaceSize, maxCredit, now, now, maxWindows
}

// inBlock tells whether a header block has begun and not ended.
func (g *guard) inBlock() bool { return g.block || g.have > 0 && g.have < len(g.head) }

// atSettings tells whether the payload of a SETTINGS frame comes next.
func (g *guard) atSettings() bool {
	return g.have == len(g.head) && g.head[3] == frameSettings && g.left > 0 && g.left == int(g.head[0])<<16|int(g.head[1])<<8|int(g.head[2])
}

// see takes the next bytes of the connection.
func (g *guard) see(b []byte) error {
	if g.preface > 0 {
		n := min(g.preface, len(b))
		g.preface -= n
		b = b[n:]
	}
	for len(b) > 0 {
		if g.have < len(g.head) {
			n := copy(g.head[g.have:], b)
			g.have += n
			if b = b[n:]; g.have < len(g.head) {
				return nil
			}
			g.left = int(g.head[0])<<16 | int(g.head[1])<<8 | int(g.head[2])
			if err := g.judge(g.head[3], g.head[4], g.left); err != nil {
				return err
			}
		}
		if g.padded && len(b) > 0 {
			g.padded = false
			if err := g.judgeData(g.head[4], g.left-1-int(b[0])); err != nil {
				return err
			}
		}
		n := min(g.left, len(b))
		g.left -= n
		b = b[n:]
		if g.left == 0 {
			g.have = 0
		}
	}
	return nil
}

func (g *guard) judge(kind, flags byte, size int) error {
	switch kind {
	case frameHeaders:
		if id := binary.BigEndian.Uint32(g.head[5:]) & 0x7fffffff; id > g.highest {
			g.highest = id
			g.opened.Add(1)
		}
		g.frames, g.block = 1, flags&flagEndHeaders == 0
		g.gain(creditGained)
		return g.judgeReplies()
	case frameContinuation:
		if g.frames++; g.frames > maxBlockFrames {
			return errManyFrames
		}
		g.block = g.block && flags&flagEndHeaders == 0
		return g.spend(1)
	case frameData:
		if g.padded = flags&flagPadded != 0 && size > 0; g.padded {
			return nil
		}
		return g.judgeData(flags, size)
	case frameReset:
		return g.reset(1)
	case frameWindowUpdate:
		return g.widen()
	case frameSettings:
		return g.spend(settingsCost)
	}
	return g.spend(1)
}

// judgeData takes a frame with so much of a body, its padding not counted.
func (g *guard) judgeData(flags byte, size int) error {
	if size > 0 {
		g.gain(creditGained)
		return nil
	}
	if flags&flagEndStream != 0 {
		return nil
	}
	return g.spend(1)
}

// judgeReplies takes what had to be said to the client since the last request: a stream that it had us reset counts as if it had done so itself.
func (g *guard) judgeReplies() error {
	caused, refused := g.replies.caused.Load(), g.replies.refused.Load()
	if caused == 0 && refused < refusedAReset {
		return nil
	}
	g.replies.caused.Add(-caused)
	g.replies.refused.Add(-refused / refusedAReset * refusedAReset)
	return g.reset(int(caused + refused/refusedAReset))
}

// widen takes a window update. What has gone out to the client lets it open its windows as often as anybody could want to.
func (g *guard) widen() error {
	if g.windows--; g.windows > 0 {
		return nil
	}
	n := g.replies.moved.Load()
	g.replies.moved.Add(-n)
	if g.windows += n; g.windows > 0 {
		return nil
	}
	return g.spend(1)
}

func (g *guard) gain(n int) { g.credit = min(g.credit+n, maxCredit) }

func (g *guard) spend(n int) error {
	if g.credit -= n; g.credit > 0 {
		return nil
	}
	if g.gain(int(min(g.replies.sent.Swap(0), maxCredit)) * creditSent); g.credit > 0 {
		return nil
	}
	now := core.Now()
	g.gain(int(now.Sub(g.since).Seconds() * creditASec))
	if g.since = now; g.credit > 0 {
		return nil
	}
	return errFlood
}

func (g *guard) reset(n int) error {
	if g.resets += n; g.resets <= maxResets {
		return nil
	}
	if now := core.Now(); now.Sub(g.minute) >= time.Minute {
		g.minute, g.resets = now, n
		return nil
	}
	return errResets
}
