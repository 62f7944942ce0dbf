package conf

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Route says which requests it takes and where they go. Predicates that are not written take every request.
type Route struct {
	Pos       Pos
	Name      string // its path when no name was written
	Path      Path
	Hosts     []string `key:"host"`   // lower case, "api.example.com" or "*.example.com"; one must match
	Methods   []string `key:"method"` // one must match
	Headers   []Match  `key:"header"` // all must match; so below
	Query     []Match
	Cookies   []Match        `key:"cookie"`
	Body      []Match        // names are gjson paths
	Listeners []string       `key:"listener"` // names of listeners
	Clients   []netip.Prefix `key:"client"`
	Weight    int            // share of the requests among routes that differ only in it, when HasWeight is true; 0: none
	Time      Window
	Priority  int

	HasWeight bool `key:"-"`

	Upstream string // a name in Config.Upstreams
	Strip    Strip  `key:"strip_prefix"`
	Rewrite  Rewrite
	Timeouts Timeouts // complete
	HTTP     RouteHTTP
	Upgrades []string `key:"upgrade"` // protocols that connections may switch to: UpgradeWebSocket

	Compression Compression   // nothing is compressed unless On
	Filters     []RouteFilter `key:"filter"`
}

// UpgradeWebSocket is the protocol of RFC 6455.
const UpgradeWebSocket = "websocket"

// RouteHTTP is what a route may say apart from [http]; it is complete, with [http]'s values where the route is silent.
type RouteHTTP struct {
	Pos        Pos
	Path       string
	MaxBody    int64 `unit:"bytes"`
	BodyBuffer int64 `unit:"bytes"`
}

// Strip is what is taken off the front of the path before it goes upstream. The zero value takes nothing.
type Strip struct {
	Pos      Pos
	Matched  bool   // the prefix that the path predicate matched
	Prefix   string // or this one
	Segments int    // or so many segments
}

// String gives the value as it is written; empty when nothing is taken.
func (s Strip) String() string {
	switch {
	case s.Matched:
		return "true"
	case s.Prefix != "":
		return strconv.Quote(s.Prefix)
	case s.Segments > 0:
		return strconv.Itoa(s.Segments)
	}
	return ""
}

// Rewrite changes the path by a regular expression before it goes upstream, after Strip. An empty Pattern changes nothing.
type Rewrite struct {
	Pos     Pos
	Pattern string // Go's regexp (RE2)
	To      string // with $1 or ${name} for the groups
}

// Equal tells whether two routes say the same, wherever they stand.
func (r *Route) Equal(other *Route) bool { return same(r, other) }

var routeSection = section[Route]{
	text("name", func(r *Route) *string { return &r.Name }, displayName),
	path("path", PathSegments, pathPattern),
	path("path_prefix", PathPrefix, pathPrefix),
	path("path_regex", PathRegex, regex),
	words("host", func(r *Route) *[]string { return &r.Hosts }, hostPattern),
	words("method", func(r *Route) *[]string { return &r.Methods }, method),
	matches("header", func(r *Route) *[]Match { return &r.Headers }, headerName),
	matches("query", func(r *Route) *[]Match { return &r.Query }),
	matches("cookie", func(r *Route) *[]Match { return &r.Cookies }, headerName),
	matches("body", func(r *Route) *[]Match { return &r.Body }),
	words("listener", func(r *Route) *[]string { return &r.Listeners }, displayName),
	prefixes("client", func(r *Route) *[]netip.Prefix { return &r.Clients }),
	custom("weight", func(b *binder, key string, v Value, r *Route) {
		if n, ok := b.integer(key, v, 0, maxWeight); ok {
			r.Weight, r.HasWeight = int(n), true
		}
	}),
	sub("time", windowSection, func(r *Route, p Pos) *Window { r.Time.Pos = p; return &r.Time }),
	integer("priority", func(r *Route) *int { return &r.Priority }, -1<<31, 1<<31-1),
	custom("upstream", func(b *binder, key string, v Value, r *Route) {
		if s, ok := b.text(key, v); ok {
			r.Upstream = s
		}
	}),
	custom("strip_prefix", (*binder).bindStrip),
	sub("rewrite", rewriteSection, func(r *Route, p Pos) *Rewrite { r.Rewrite.Pos = p; return &r.Rewrite }),
	sub("timeouts", timeoutsSection, func(r *Route, p Pos) *Timeouts { r.Timeouts.Pos = p; return &r.Timeouts }),
	sub("http", routeHTTPSection, func(r *Route, p Pos) *RouteHTTP { r.HTTP.Pos = p; return &r.HTTP }),
	words("upgrade", func(r *Route) *[]string { return &r.Upgrades }, amongst(UpgradeWebSocket)),
	sub("compression", compressionSection, bindCompression),
	custom("filter", (*binder).bindRouteFilters, "NAME", "NAME.enabled"),
}

var routeHTTPSection = section[RouteHTTP]{
	oneOf("path", func(h *RouteHTTP) *string { return &h.Path }, PathStrict, PathNormalise, PathRaw),
	size("max_body", func(h *RouteHTTP) *int64 { return &h.MaxBody }, 1, largestBody),
	size("body_buffer", func(h *RouteHTTP) *int64 { return &h.BodyBuffer }, 1, largestBuffer),
}

var rewriteSection = section[Rewrite]{
	text("pattern", func(w *Rewrite) *string { return &w.Pattern }, notEmpty, regex),
	text("to", func(w *Rewrite) *string { return &w.To }),
}

// bindRoutes reads [[route]]; the upstreams and [http] are complete by then.
func (b *binder) bindRoutes(key string, v Value, c *Config) {
	upstreams := make(map[string]int, len(c.Upstreams))
	for i := range c.Upstreams {
		upstreams[c.Upstreams[i].Name] = i
	}
	first := map[string]Pos{}
	for i, t := range b.tables(key, v) {
		r := Route{Pos: t.Pos, Timeouts: defaultTimeouts()}
		r.HTTP = RouteHTTP{Path: c.HTTP.Path, MaxBody: c.HTTP.MaxBody, BodyBuffer: c.HTTP.BodyBuffer}
		path := b.label(key, i, t, "name", "path", "path_prefix", "path_regex")
		b.resolveUpstream(path, t, c, upstreams, &r)
		target := r.Upstream
		routeSection.bind(b, path, t, &r)
		r.Upstream = target
		b.checkRoute(path, t, &r)
		named := !b.faulty(path+".name") && !b.faulty(path+".path") // what is made of them says nothing
		if pos, twice := first[r.Name]; twice {
			if named {
				b.errs.Add(b.where(path+".name", t.Pos), key, "the name %q is taken by the route in %s: give this one another", r.Name, pos)
			}
			continue
		}
		if named {
			first[r.Name] = t.Pos
		}
		c.Routes = append(c.Routes, r)
	}
}

// resolveUpstream finds what the route names, makes an anonymous upstream of a URL, and begins with its time limits.
func (b *binder) resolveUpstream(path string, t *Table, c *Config, upstreams map[string]int, r *Route) {
	v, ok := t.Get("upstream")
	if !ok {
		b.errs.Add(t.Pos, path, `has no upstream: write upstream = "NAME" or a URL`)
		return
	}
	target, ok := v.V.(string)
	if !ok || v.broken {
		return
	}
	key := path + ".upstream"
	if strings.Contains(target, "://") || isUnix(target) {
		e, err := parseEndpoint(target)
		if err != nil {
			b.errs.Add(v.Pos, key, "%s", err)
			return
		}
		target = e.URL
		if _, ok := upstreams[target]; !ok {
			u := defaultUpstream()
			e.Pos, e.Weight = v.Pos, 1
			u.Pos, u.Name, u.Anonymous, u.Endpoints = v.Pos, target, true, []Endpoint{e}
			upstreams[target] = len(c.Upstreams)
			c.Upstreams = append(c.Upstreams, u)
		}
	}
	i, ok := upstreams[target]
	if !ok {
		b.unknownUpstream(key, v.Pos, target, c)
		return
	}
	r.Upstream, r.Timeouts = target, c.Upstreams[i].Timeouts
	r.Timeouts.Pos = t.Pos
}

func (b *binder) unknownUpstream(key string, pos Pos, target string, c *Config) {
	if slices.Contains(b.misnamed, target) || slices.Contains(b.misnamed, "") {
		return
	}
	var names []string
	for _, u := range c.Upstreams {
		if !u.Anonymous {
			names = append(names, u.Name)
		}
	}
	if len(names) == 0 {
		b.errs.Add(pos, key, "there is no upstream %q: add an [[upstream]] of that name or write a URL", target)
		return
	}
	hint := nearHint(target, names)
	if len(names) > 12 {
		names = append(names[:12:12], "...")
	}
	b.errs.Add(pos, key, "there is no upstream %q%s: there are %s", target, hint, strings.Join(names, ", "))
}

func (b *binder) checkRoute(path string, t *Table, r *Route) {
	if r.Name == "" {
		if r.Name = r.Path.Text; r.Name == "" {
			r.Name = "/**"
		}
	}
	for i, host := range r.Hosts {
		r.Hosts[i] = strings.ToLower(host)
	}
	b.checkTimeouts(path+".timeouts", &r.Timeouts)
	b.checkStrip(path, r)
	b.checkRewrite(path, t, r)
	b.checkWindow(path+".time", &r.Time)
	b.checkCompression(path+".compression", &r.Compression)
	var paths []string
	for _, key := range []string{"path", "path_prefix", "path_regex"} {
		if b.written(join(path, key)) {
			paths = append(paths, key)
		}
	}
	if len(paths) > 1 {
		b.errs.Add(b.pos[join(path, paths[1])], join(path, paths[1]), "%s are written both: a route has one of path, path_prefix and path_regex",
			strings.Join(paths, " and "))
	}
}

// bindStrip reads true, a prefix, or a number of segments.
func (b *binder) bindStrip(key string, v Value, r *Route) {
	r.Strip.Pos = v.Pos
	switch x := v.V.(type) {
	case bool:
		r.Strip.Matched = x
	case int64, float64:
		if n, ok := b.integer(key, v, 1, 64); ok {
			r.Strip.Segments = int(n)
		}
	case string:
		if wrong := pathPrefix(x); wrong != "" {
			b.errs.Add(v.Pos, key, "%s", wrong)
			return
		}
		r.Strip.Prefix = strings.TrimSuffix(x, "/")
	default:
		b.wants(key, v, `true, a prefix such as "/api", or a number of segments`)
	}
}

// checkStrip refuses what never takes anything off.
func (b *binder) checkStrip(path string, r *Route) {
	key := path + ".strip_prefix"
	prefixed := r.Path.Kind == PathPrefix || r.Path.Kind == PathSegments && strings.Contains(r.Path.Text, "**")
	if r.Strip.Matched && !prefixed {
		b.errs.Add(r.Strip.Pos, key, `true needs a path with ** or a path_prefix: write the prefix itself, such as "/api"`)
	}
	if r.Strip.Prefix == "" || r.Path.Kind == PathAny || r.Path.Kind == PathRegex {
		return
	}
	want, have := strings.Split(r.Strip.Prefix, "/"), strings.Split(r.Path.Text, "/")
	for i, segment := range want {
		open := r.Path.Kind == PathPrefix && i >= len(have)
		if !open && i < len(have) {
			open = have[i] == segment || r.Path.Kind == PathSegments && isWildcard(have[i])
		}
		if !open {
			b.errs.Add(r.Strip.Pos, key, "%q is no prefix of %q, so it is never taken off", r.Strip.Prefix, r.Path.Text)
			return
		}
		if i < len(have) && have[i] == "**" {
			return
		}
	}
}

func (b *binder) checkRewrite(path string, t *Table, r *Route) {
	v, ok := t.Get("rewrite")
	if !ok {
		return
	}
	key := path + ".rewrite"
	for _, part := range []string{"pattern", "to"} {
		if !b.written(join(key, part)) {
			b.errs.Add(v.Pos, key, `has no %s: write { pattern = "^/old/(.*)$", to = "/new/$1" }`, part)
		}
	}
	if re, err := regexp.Compile(r.Rewrite.Pattern); err == nil && r.Rewrite.Pattern != "" {
		if group := unknownGroup(re, r.Rewrite.To); group != "" {
			b.errs.Add(b.where(key+".to", v.Pos), key+".to", "the pattern has no group %q: it has %d; text right behind a group needs braces, ${1}x", group, re.NumSubexp())
		}
	}
}

// groupRef finds the groups that a template of regexp.Expand names.
var groupRef = regexp.MustCompile(`\$\$|\$(\w+)|\$\{(\w+)\}`)

// unknownGroup returns the first group of the template that the pattern does not have; regexp would drop it silently.
func unknownGroup(re *regexp.Regexp, template string) string {
	for _, ref := range groupRef.FindAllStringSubmatch(template, -1) {
		name := ref[1] + ref[2]
		if name == "" || slices.Contains(re.SubexpNames()[1:], name) {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(name, "%d", &n); err != nil || !isDigits(name) || n > re.NumSubexp() {
			return name
		}
	}
	return ""
}

func method(text string) string {
	switch {
	case !isToken(text):
		return fmt.Sprintf(`%q is no method: write "GET"`, shorten(text))
	case text != strings.ToUpper(text):
		return fmt.Sprintf("methods are case-sensitive: write %q", strings.ToUpper(text))
	}
	return ""
}

// hostPattern checks a name, an address, or "*." and a name.
func hostPattern(text string) string {
	name := strings.TrimPrefix(text, "*.")
	if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return ""
	}
	switch {
	case text == "*" || text == "**":
		return "takes every host: leave the key away"
	case isHostName(name):
		return ""
	case strings.Contains(text, ":"):
		return fmt.Sprintf("%q has a port, which is not looked at: write the name alone", shorten(text))
	}
	return fmt.Sprintf(`%q is no host: write "api.example.com" or "*.example.com"`, shorten(text))
}
