package conf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// What happens when a filter's function fails.
const (
	FailOnError     = "fail"     // the request is answered 500
	ContinueOnError = "continue" // the request goes on
)

// Filter is one instance of a script: its settings for all routes. Every live script is one under its own name; a
// [filter.NAME] table gives it settings or makes a further instance of another script.
type Filter struct {
	Pos      Pos
	Name     string
	Written  bool   `key:"-"` // has a [filter.NAME] table; else Pos is the script's first line
	Enabled  bool   // false: only on the routes that have a [route.filter.NAME] table
	Script   string // the script's name; Name unless it was written
	Stage    string // empty: the script's own
	Order    int    // place inside the stage, when HasOrder is true
	HasOrder bool   `key:"-"`
	OnError  string // FailOnError or ContinueOnError; empty: the script's own choice, or else FailOnError
	// OnTimeout is likewise what a function that spends its time budget does; empty: the script's own choice, or else as any other error.
	OnTimeout string
	Settings  *Table // what the script's schema checks; without the keys above
}

// RouteFilter is what one route says about a filter.
type RouteFilter struct {
	Pos      Pos
	Name     string
	Enabled  bool   // false turns the filter off on this route
	Settings *Table // without enabled
}

// Equal tells whether two filters say the same, wherever they stand.
func (f Filter) Equal(other Filter) bool { return same(f, other) }

// Equal tells whether two say the same, wherever they stand.
func (f RouteFilter) Equal(other RouteFilter) bool { return same(f, other) }

// On tells whether the filter runs on a route, and with which settings: the route's laid over its own.
func (f *Filter) On(r *Route) (settings *Table, runs bool) {
	for i := range r.Filters {
		if over := &r.Filters[i]; over.Name == f.Name {
			return over.Settings.Over(f.Settings), over.Enabled
		}
	}
	return f.Settings, f.Enabled
}

var filterSection = section[Filter]{
	boolean("enabled", func(f *Filter) *bool { return &f.Enabled }),
	text("script", func(f *Filter) *string { return &f.Script }, filterName("script")),
	text("stage", func(f *Filter) *string { return &f.Stage }),
	custom("order", func(b *binder, key string, v Value, f *Filter) {
		if n, ok := b.integer(key, v, -maxOrder, maxOrder); ok {
			f.Order, f.HasOrder = int(n), true
		}
	}),
	oneOf("on_error", func(f *Filter) *string { return &f.OnError }, FailOnError, ContinueOnError),
	oneOf("on_timeout", func(f *Filter) *string { return &f.OnTimeout }, FailOnError, ContinueOnError),
}

const maxOrder = 1_000_000

// ReservedSettings are the keys of [filter.NAME] that are the gateway's; a script's schema cannot have them.
func ReservedSettings() []string { return filterSection.names() }

// bindFilters reads [filter.NAME] and adds every live script that has no table.
func (b *binder) bindFilters(key string, v Value, c *Config) {
	all, _ := b.table(key, v)
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		if t, ok := b.table(path, v); ok {
			c.Filters = append(c.Filters, b.filter(path, name, t))
		}
	}
}

func (b *binder) filter(path, name string, t *Table) Filter {
	f := Filter{Pos: t.Pos, Name: name, Written: true, Enabled: true, Script: name}
	if wrong := filterName("filter")(name); wrong != "" {
		b.errs.Add(t.Pos, path, "%s", wrong)
	}
	reserved := filterSection.names()
	own := &Table{Pos: t.Pos}
	for key, v := range t.All() {
		if slices.Contains(reserved, key) {
			own.set(key, v)
			continue
		}
		b.noteAll(join(path, key), v)
	}
	filterSection.bind(b, path, own, &f)
	f.Settings = t.without(reserved)
	return f
}

// noteAll remembers the places of a value and all that is in it.
func (b *binder) noteAll(path string, v Value) {
	b.note(path, v.Pos)
	switch x := v.V.(type) {
	case *Table:
		for key, v := range x.All() {
			b.noteAll(join(path, key), v)
		}
	case []Value:
		for i, v := range x {
			b.noteAll(fmt.Sprintf("%s[%d]", path, i), v)
		}
	}
}

// completeFilters adds the live scripts that have no table, checks that each filter has its script, and sorts by name.
func (b *binder) completeFilters(c *Config) {
	for i := range c.Filters {
		f := &c.Filters[i]
		path := "filter." + f.Name
		b.checkScript(c, b.where(path+".script", f.Pos), path, f.Script)
		if f.Stage != "" && !slices.Contains(c.Pipeline.Stages, f.Stage) {
			b.errs.Add(b.where(path+".stage", f.Pos), path+".stage", "%q is no stage%s: the stages are %s",
				f.Stage, nearHint(f.Stage, c.Pipeline.Stages), quotedList(c.Pipeline.Stages))
		}
	}
	for name, script := range c.Scripts.Live {
		if !slices.ContainsFunc(c.Filters, func(f Filter) bool { return f.Name == name }) {
			c.Filters = append(c.Filters, Filter{
				Pos: Pos{File: script.Path, Line: 1}, Name: name, Enabled: true, Script: name, Settings: &Table{},
			})
		}
	}
	slices.SortFunc(c.Filters, func(a, b Filter) int { return strings.Compare(a.Name, b.Name) })
}

// checkScript refuses a filter whose file is missing: a deleted auth script never leaves an open door.
func (b *binder) checkScript(c *Config, pos Pos, path, script string) {
	if _, ok := c.Scripts.Live[script]; ok || filterName("")(script) != "" {
		return
	}
	var names []string
	for name := range c.Scripts.Live {
		names = append(names, name)
	}
	slices.Sort(names)
	b.errs.Add(pos, path, "there is no script %s%s: add the file or take the table away",
		filepath.Join(c.Scripts.Dir, script+".lua"), nearHint(script, names))
}

// bindRouteFilters reads [route.filter.NAME].
func (b *binder) bindRouteFilters(key string, v Value, r *Route) {
	all, _ := b.table(key, v)
	for name, v := range all.All() {
		path := join(key, name)
		b.note(path, v.Pos)
		t, ok := b.table(path, v)
		if !ok {
			continue
		}
		f := RouteFilter{Pos: t.Pos, Name: name, Enabled: true}
		for key, v := range t.All() {
			full := join(path, key)
			b.noteAll(full, v)
			switch key {
			case "enabled":
				f.Enabled, _ = b.boolean(full, v)
			case "script", "stage", "order", "on_error", "on_timeout":
				b.errs.Add(v.Pos, full, "is the same on all routes: it belongs to [filter.%s]", name)
			}
		}
		f.Settings = t.without(filterSection.names())
		r.Filters = append(r.Filters, f)
	}
}

// checkRouteFilters refuses settings for a filter that does not exist.
func (b *binder) checkRouteFilters(c *Config) {
	names := make([]string, len(c.Filters))
	for i := range c.Filters {
		names[i] = c.Filters[i].Name
	}
	for _, r := range c.Routes {
		for _, f := range r.Filters {
			if !slices.Contains(names, f.Name) {
				b.errs.Add(f.Pos, "route."+r.Name+".filter."+f.Name, "there is no filter of this name%s: add %s or a [filter.%s] table with its script",
					nearHint(f.Name, names), filepath.Join(c.Scripts.Dir, f.Name+".lua"), f.Name)
			}
		}
	}
}
