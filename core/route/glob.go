package route

import (
	"bytes"

	"github.com/moongate/moongate/core"
)

// match tells whether the pattern matches a path in the matcher's view. Where params is not nil, the values of names are appended to
// it, from seen, the canonical path, whose segments are those of view one by one. ** takes as few segments as it can.
func (p pattern) match(view, seen []byte, params *[]core.Param) bool {
	type mark struct {
		element, names int
		view, seen     []byte
	}
	var retry mark // after the last **, and where to start over
	kept := 0
	if params != nil {
		kept = len(*params)
	}
	view, seen = view[1:], seen[1:]
	for i := 0; ; {
		switch {
		case i < len(p) && p[i].part == rest:
			if i == len(p)-1 {
				return true
			}
			i++
			retry = mark{element: i, view: view, seen: seen}
			if params != nil {
				retry.names = len(*params)
			}
			continue
		case i == len(p) && view == nil:
			return true
		case i < len(p) && view != nil:
			segment, restView := cutSegment(view)
			own, restSeen := cutSegment(seen)
			if p[i].takes(segment) {
				if params != nil && p[i].part == named {
					*params = append(*params, core.Param{Name: p[i].text, Value: cutParams(own)})
				}
				view, seen = restView, restSeen
				i++
				continue
			}
		}
		if retry.element == 0 || retry.view == nil {
			if params != nil {
				*params = (*params)[:kept]
			}
			return false
		}
		_, retry.view = cutSegment(retry.view)
		_, retry.seen = cutSegment(retry.seen)
		i, view, seen = retry.element, retry.view, retry.seen
		if params != nil {
			*params = (*params)[:retry.names]
		}
	}
}

// takes tells whether an element that stands for one segment accepts it.
func (e *element) takes(segment []byte) bool {
	if e.part == literal {
		return string(segment) == e.text
	}
	return len(segment) > 0 && e.part < below
}

// cutSegment gives the first segment of what follows a slash, and what follows the next; nil when there is none.
func cutSegment(path []byte) (segment, tail []byte) {
	if i := bytes.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return path, nil
}
