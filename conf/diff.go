package conf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Diff says what changes from old to new, one line each, sorted within their kind:
//
//   - route.user-v2                                        a part that is new
//   - upstream.legacy                                      one that goes
//     ~ upstream.user.pool.connections: 256 -> 512           one that changes
//     ~ filter.jwt.secret: changed                           what is secret is never shown
//     ~ script.jwt: changed
//
// Where something stands and in which order routes are written does not count. No lines means that a reload changes
// nothing. Either may be nil: nothing.
func Diff(old, new *Config) []string {
	was, is := partsOf(old), partsOf(new)
	var lines []string
	for _, name := range sortedKeys(was, is) {
		before, had := was[name]
		after, has := is[name]
		switch {
		case !had:
			lines = append(lines, "+ "+name)
		case !has:
			lines = append(lines, "- "+name)
		default:
			lines = append(lines, diffPart(name, before, after)...)
		}
	}
	return lines
}

// fact is one thing that a part says: what it is and what of it may be shown.
type fact struct {
	is, show string
}

// part is everything that one part says, by key.
type part map[string]fact

func diffPart(name string, was, is part) []string {
	var lines []string
	for _, key := range sortedKeys(was, is) {
		before, after := was[key], is[key]
		if before.is == after.is {
			continue
		}
		full := join(name, key)
		if key == "" {
			full = name
		}
		if before.show == masked || after.show == masked {
			lines = append(lines, fmt.Sprintf("~ %s: changed", full))
			continue
		}
		lines = append(lines, fmt.Sprintf("~ %s: %s -> %s", full, orNone(before.show), orNone(after.show)))
	}
	return lines
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// partsOf takes a configuration apart.
func partsOf(c *Config) map[string]part {
	parts := make(map[string]part)
	if c == nil {
		return parts
	}
	for name, settings := range map[string]any{
		"admin": c.Admin, "http": c.HTTP, "pipeline": c.Pipeline, "scripts": c.Scripts, "log": c.Log, "metrics": c.Metrics,
	} {
		parts[name] = partOf(settings)
	}
	for _, l := range c.Listeners {
		parts["listener."+l.Address] = partOf(l)
	}
	for _, u := range c.Upstreams {
		parts["upstream."+u.Name] = partOf(u)
	}
	for _, r := range c.Redises {
		parts["redis."+r.Name] = partOf(r)
	}
	for _, l := range c.Limiters {
		parts["limiter."+l.Name] = partOf(l)
	}
	for _, s := range c.Shared {
		parts["shared."+s.Name] = partOf(s)
	}
	for _, f := range c.Filters {
		if f.Written {
			parts["filter."+f.Name] = partOf(f)
		}
	}
	for i := range c.Routes {
		parts["route."+c.Routes[i].Name] = routePart(c, &c.Routes[i])
	}
	for name, s := range c.Scripts.Live {
		parts["script."+name] = part{"": {s.Source, masked}}
	}
	for name, s := range c.Scripts.Lib {
		parts["script.lib."+name] = part{"": {s.Source, masked}}
	}
	return parts
}

// routePart leaves away what the route takes from its upstream and from [http]: those say it themselves.
func routePart(c *Config, r *Route) part {
	facts := partOf(*r)
	inherited := part{}
	if u := c.Upstream(r.Upstream); u != nil {
		gather(inherited, "timeouts", reflect.ValueOf(u.Timeouts), "")
	}
	gather(inherited, "http", reflect.ValueOf(c.HTTP), "")
	maps.DeleteFunc(facts, func(key string, f fact) bool {
		outer, ok := inherited[key]
		return ok && outer.is == f.is
	})
	return facts
}

func partOf(settings any) part {
	facts := part{}
	gather(facts, "", reflect.ValueOf(settings), "")
	return facts
}

// gather notes everything that v says under key.
func gather(facts part, key string, v reflect.Value, unit string) {
	switch x := v.Interface().(type) {
	case Pos:
		return
	case Secret:
		if x != "" {
			facts[key] = fact{string(x), masked}
		}
		return
	case *Table:
		gatherTable(facts, key, x)
		return
	case time.Duration:
		facts.note(key, formatDuration(x))
		return
	case fmt.Stringer:
		facts.note(key, x.String())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		gatherFields(facts, key, v)
	case reflect.Slice:
		gatherList(facts, key, v)
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			gather(facts, join(key, entries.Key().String()), entries.Value(), "")
		}
	case reflect.String:
		facts.note(key, v.String())
	case reflect.Int64:
		switch unit {
		case "bytes":
			facts.note(key, formatSize(v.Int()))
			return
		case "speed":
			facts.note(key, formatSpeed(v.Int()))
			return
		}
		facts.note(key, strconv.FormatInt(v.Int(), 10))
	default:
		facts.note(key, fmt.Sprint(v.Interface()))
	}
}

func (p part) note(key, text string) {
	if text != "" {
		p[key] = fact{text, text}
	}
}

func gatherFields(facts part, key string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := f.Tag.Get("key")
		if name == "" {
			name = snake(f.Name)
		}
		if f.IsExported() && name != "-" && name != "name" {
			gather(facts, join(key, name), v.Field(i), f.Tag.Get("unit"))
		}
	}
}

// gatherList notes filters by their names and everything else as one list.
func gatherList(facts part, key string, v reflect.Value) {
	if filters, ok := v.Interface().([]RouteFilter); ok {
		for _, f := range filters {
			gather(facts, join(key, f.Name), reflect.ValueOf(f), "")
		}
		return
	}
	texts := make([]string, v.Len())
	for i := range texts {
		texts[i] = fmt.Sprint(v.Index(i).Interface())
	}
	if len(texts) > 0 {
		facts.note(key, "["+strings.Join(texts, ", ")+"]")
	}
}

// gatherTable notes a filter's settings under the filter itself, as they are written.
func gatherTable(facts part, key string, t *Table) {
	key = strings.TrimSuffix(strings.TrimSuffix(key, "settings"), ".")
	for name, v := range t.All() {
		show := v.Text()
		if v.hides() {
			show = masked
		}
		facts[join(key, name)] = fact{v.bare(), show}
	}
}

// snake turns a field's name into the key's.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		lower := strings.ToLower(string(r))
		if i > 0 && lower != string(r) && strings.ToLower(name[i-1:i]) == name[i-1:i] {
			out.WriteByte('_')
		}
		out.WriteString(lower)
	}
	return out.String()
}

func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
