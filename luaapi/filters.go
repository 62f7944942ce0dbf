package luaapi

import (
	"cmp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/luaapi/vm"
)

// makeFilters joins the configured filters with their scripts, in the order of the pipeline.
func (b *builder) makeFilters() {
	order := b.o.Config.Pipeline.Stages
	for i := range b.o.Config.Filters {
		cf := &b.o.Config.Filters[i]
		s := b.scripts[cf.Script]
		if s == nil {
			if _, there := b.o.Config.Scripts.Live[cf.Script]; !there {
				b.errs.Add(cf.Pos, "filter."+cf.Name, "there is no script %s.lua", cf.Script)
			}
			continue
		}
		f := &filter{name: cf.Name, stage: s.stage, script: s, order: s.order}
		if cf.Stage != "" {
			f.stage = cf.Stage
		}
		if cf.HasOrder {
			f.order = float64(cf.Order)
		}
		onError := cmp.Or(cf.OnError, s.onError)
		f.goesOn = onError == conf.ContinueOnError
		f.goesOnLate = cmp.Or(cf.OnTimeout, s.onTimeout, onError) == conf.ContinueOnError
		if !slices.Contains(order, f.stage) {
			if cf.Stage != "" {
				b.errs.Add(cf.Pos, "filter."+cf.Name+".stage", "%q is no stage: the stages are %s", f.stage, strings.Join(order, ", "))
			} else {
				b.scriptFault(s, lineOf(s.source, "stage"), "%q is no stage: the stages are %s", f.stage, strings.Join(order, ", "))
			}
			continue
		}
		b.filters = append(b.filters, f)
	}
	slices.SortFunc(b.filters, func(x, y *filter) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.stage), slices.Index(order, y.stage)), cmp.Compare(x.order, y.order),
			strings.Compare(x.name, y.name))
	})
}

// claimHeaders collects the identity headers of the scripts that are in use: those that they list, and those that settings name.
func (b *builder) claimHeaders() {
	for _, st := range b.stages {
		for _, s := range st.scripts {
			for _, name := range s.identity {
				b.world.identity.add(name, s)
			}
		}
		for _, set := range st.settings {
			b.claimSettings(set)
		}
	}
}

func (b *builder) claimSettings(set *settings) {
	s := set.filter.script
	for _, key := range s.schema.keys {
		if !s.schema.fields[key].identity {
			continue
		}
		for _, name := range headerNames(set.real.RawGetString(key)) {
			if !validHeaderName(name) {
				b.errs.Add(placeOf(set, key), set.key+"."+key, "no header can be named %s", describe(lua.LString(visible(name))))
				continue
			}
			b.world.identity.add(name, s)
		}
	}
}

// headerNames gives the names of headers that a setting has: a text, the items of a list, or the names of a map.
func headerNames(v lua.LValue) (names []string) {
	switch v := v.(type) {
	case lua.LString:
		if v != "" {
			names = append(names, string(v))
		}
	case *lua.LTable:
		v = vm.Thaw(v)
		for key, item := v.Next(lua.LNil); key != lua.LNil; key, item = v.Next(key) {
			if _, listed := key.(lua.LNumber); listed {
				key = item
			}
			names = append(names, key.String())
		}
	}
	return names
}
