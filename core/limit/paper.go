package limit

import (
	"slices"
	"strconv"
	"sync"
)

// paper is one run of the script: the questions of several callers, written down as the script reads them.
type paper struct {
	asked   []*question
	keys    []string
	numbers map[string]int // of keys, counted from 1
	of      []int          // for each key the number of its terms
	terms   []*operation
	said    []string // the questions' part of the arguments
	args    []string
}

var papers = sync.Pool{New: func() any { return &paper{numbers: map[string]int{}} }}

func newPaper() *paper { return papers.Get().(*paper) }

// free gives back a paper that nobody reads any more.
func (p *paper) free() {
	clear(p.asked)
	clear(p.keys)
	clear(p.numbers)
	clear(p.terms)
	clear(p.said)
	clear(p.args)
	p.asked, p.keys, p.of, p.terms, p.said, p.args = p.asked[:0], p.keys[:0], p.of[:0], p.terms[:0], p.said[:0], p.args[:0]
	papers.Put(p)
}

// write writes down what is asked. Questions about a key that stands there under other terms already go on another paper, which it gives;
// nil: there are none.
func (p *paper) write() (later *paper) {
	asked := p.asked
	p.asked = p.asked[:0]
	for _, q := range asked {
		if p.fits(q) {
			p.add(q)
			continue
		}
		if later == nil {
			later = newPaper()
		}
		later.asked = append(later.asked, q)
	}
	return later
}

func (p *paper) fits(q *question) bool {
	for i, key := range q.keys {
		if n, ok := p.numbers[key]; ok && p.terms[p.of[n-1]-1] != q.ops[i] {
			return false
		}
	}
	return true
}

func (p *paper) add(q *question) {
	cost := itoa(q.cost)
	p.said = append(p.said, q.mode, strconv.Itoa(len(q.keys)))
	for i, key := range q.keys {
		p.said = append(p.said, strconv.Itoa(p.number(key, q.ops[i])), cost)
	}
	p.said = append(p.said, itoa(q.need))
	p.asked = append(p.asked, q)
}

// number gives the number of a key.
func (p *paper) number(key string, op *operation) int {
	if n, ok := p.numbers[key]; ok {
		return n
	}
	terms := slices.Index(p.terms, op) + 1
	if terms == 0 {
		p.terms = append(p.terms, op)
		terms = len(p.terms)
	}
	p.keys, p.of = append(p.keys, key), append(p.of, terms)
	p.numbers[key] = len(p.keys)
	return len(p.keys)
}

// arguments are what the script is told beside the keys.
func (p *paper) arguments() []string {
	p.args = append(p.args, strconv.Itoa(len(p.terms)))
	for _, op := range p.terms {
		p.args = op.arguments(p.args)
	}
	for _, n := range p.of {
		p.args = append(p.args, strconv.Itoa(n))
	}
	p.args = append(p.args, p.said...)
	return p.args
}

// answer gives each question its part of the script's numbers.
func (p *paper) answer(numbers []int64) error {
	want := 0
	for _, q := range p.asked {
		want += 4 * len(q.ops)
	}
	if len(numbers) != want {
		return errAnswer
	}
	for _, q := range p.asked {
		q.answer(numbers)
		numbers = numbers[4*len(q.ops):]
	}
	return nil
}
