package stdlib

import (
	"strings"

	"github.com/moongate/moongate/luaapi/vm"
)

// The pattern matcher of Lua 5.1 (lstrlib.c), byte by byte. Two things differ: it counts its steps, so that a pattern that
// would run for hours ends with the budget of its call, and the depth of its recursion is limited.

const (
	maxCaptures = 32
	// maxDepth limits the recursion; it is the number of items of a pattern more than the length of the text.
	maxDepth = 200
	// chargeEvery is how many steps are counted before the VM is charged.
	chargeEvery = 64

	unclosed = -1 // length of a capture whose end is not reached yet
	position = -2 // length of a position capture
)

type capture struct{ start, length int }

// matcher matches one pattern against one text. It lives on the stack of its caller.
type matcher struct {
	a             vm.Args
	text, pattern string
	steps, depth  int
	level         int
	captures      [maxCaptures]capture
}

// matchAt tries to match the pattern from byte p on at byte s of the text and returns the end of the match, or -1.
func (m *matcher) matchAt(s, p int) int {
	m.level, m.depth = 0, 0
	return m.match(s, p)
}

func (m *matcher) step() {
	if m.steps++; m.steps >= chargeEvery {
		m.charge()
	}
}

// charge charges the VM for the steps so far.
func (m *matcher) charge() {
	m.a.VM.Charge(m.steps)
	m.steps = 0
}

// fail raises. It does not return.
func (m *matcher) fail(message string) { m.a.Raise("%s", message) }

func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		m.fail("pattern too complex")
	}
	e := m.items(s, p)
	m.depth--
	return e
}

// items matches the rest of the pattern, item by item; it recurses where there is more than one way to go on.
func (m *matcher) items(s, p int) int {
	for {
		m.step()
		if p == len(m.pattern) {
			return s
		}
		switch m.pattern[p] {
		case '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.open(s, p+2, position)
			}
			return m.open(s, p+1, unclosed)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pattern) {
				if s == len(m.text) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pattern) {
				switch c := m.pattern[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					set, end := p+2, 0
					if set >= len(m.pattern) || m.pattern[set] != '[' {
						m.fail("missing '[' after '%f' in pattern")
					}
					end = m.classEnd(set)
					if m.inSet(m.before(s), set, end-1) || !m.inSet(m.at(s), set, end-1) {
						return -1
					}
					p = end
					continue
				case isDigit(c):
					if s = m.backReference(s, c); s < 0 {
						return -1
					}
					p += 2
					continue
				}
			}
		}
		end := m.classEnd(p)
		suffix := byte(0)
		if end < len(m.pattern) {
			suffix = m.pattern[end]
		}
		switch suffix {
		case '?':
			if s < len(m.text) && m.single(s, p, end) {
				if e := m.match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.expandMost(s, p, end)
		case '+':
			if s < len(m.text) && m.single(s, p, end) {
				return m.expandMost(s+1, p, end)
			}
			return -1
		case '-':
			return m.expandLeast(s, p, end)
		default:
			if s >= len(m.text) || !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
}

// expandMost matches as many of the item at p as possible, then fewer.
func (m *matcher) expandMost(s, p, end int) int {
	n := 0
	for s+n < len(m.text) && m.single(s+n, p, end) {
		m.step()
		n++
	}
	for ; n >= 0; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

// expandLeast matches as few of the item at p as possible.
func (m *matcher) expandLeast(s, p, end int) int {
	for {
		if e := m.match(s, end+1); e >= 0 {
			return e
		}
		if s >= len(m.text) || !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, length int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, length}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *matcher) close(s, p int) int {
	l := m.level - 1
	for ; l >= 0; l-- {
		if m.captures[l].length == unclosed {
			break
		}
	}
	if l < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[l].length = s - m.captures[l].start
	e := m.match(s, p)
	if e < 0 {
		m.captures[l].length = unclosed
	}
	return e
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.text) || m.text[s] != m.pattern[p] {
		return -1
	}
	open, end := m.pattern[p], m.pattern[p+1]
	depth := 1
	for i := s + 1; i < len(m.text); i++ {
		m.step()
		switch m.text[i] {
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *matcher) backReference(s int, c byte) int {
	l := int(c) - '1'
	if l < 0 || l >= m.level || m.captures[l].length == unclosed {
		m.fail("invalid capture index")
	}
	had := m.captures[l]
	if had.length == position {
		had.length = 0
	}
	m.steps += had.length >> 4
	if strings.HasPrefix(m.text[s:], m.text[had.start:had.start+had.length]) {
		return s + had.length
	}
	return -1
}

// before and at give the bytes around a frontier; the ends of the text are NUL.
func (m *matcher) before(s int) byte {
	if s == 0 {
		return 0
	}
	return m.text[s-1]
}

func (m *matcher) at(s int) byte {
	if s == len(m.text) {
		return 0
	}
	return m.text[s]
}
