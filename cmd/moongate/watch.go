package main

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"time"
)

// watchEvery is how often --watch looks. A change is asked for once two looks in a row see the same, so that a file is not read
// while it is being written; it is live within a second.
const watchEvery = 200 * time.Millisecond

// watch asks for a reload whenever one of the sources has changed, until ctx ends.
func watch(ctx context.Context, sources func() []string, again chan<- struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	loaded := look(sources())
	last := loaded
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := look(sources())
		if !now.same(loaded) && now.same(last) {
			loaded = now
			ask(again)
		}
		last = now
	}
}

// sight is what a look at the sources sees.
type sight []seen

// seen is one file or folder. A folder's own time changes with the names in it.
type seen struct {
	name string
	info fs.FileInfo // nil: it is not there
}

func look(names []string) sight {
	s := make(sight, 0, len(names))
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			info = nil
		}
		s = append(s, seen{name, info})
	}
	return s
}

func (s sight) same(o sight) bool {
	return slices.EqualFunc(s, o, func(a, b seen) bool {
		if a.info == nil || b.info == nil {
			return a.name == b.name && a.info == nil && b.info == nil
		}
		return a.name == b.name && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime()) && os.SameFile(a.info, b.info)
	})
}
