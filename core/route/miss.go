package route

import "github.com/moongate/moongate/core"

// Misses are the predicates of the rule that do not hold for a request, by their keys in the configuration ("host", "path",
// "header.X-Version"), cheapest first; none when the rule would take it. "weight" is a share of 0. It is for telling people, not for
// serving: each predicate becomes a table of its own. It looks at what Match looks at, and leaves the request's Params as they are.
func (r *Rule) Misses(x *core.Exchange) ([]string, error) {
	params := x.Request.Params
	defer func() { x.Request.Params = params }()
	x.Request.Params = nil
	var missed []string
	ask := func(key string, asked bool, part Rule) error {
		if !asked {
			return nil
		}
		part.Route = r.Route
		t, err := New([]Rule{part})
		if err != nil {
			return err
		}
		taken, err := t.Match(x, nil)
		if err == nil && taken == nil {
			missed = append(missed, key)
		}
		return err
	}
	type question struct {
		key   string
		asked bool
		part  Rule
	}
	list := []question{
		{"weight", r.Weight != nil && *r.Weight == 0, Rule{Weight: r.Weight}},
		{"host", len(r.Hosts) > 0, Rule{Hosts: r.Hosts}},
		{"path", r.Path != "", Rule{Path: r.Path}},
		{"path_prefix", r.PathPrefix != "", Rule{PathPrefix: r.PathPrefix}},
		{"path_regex", r.PathRegex != "", Rule{PathRegex: r.PathRegex}},
		{"method", len(r.Methods) > 0, Rule{Methods: r.Methods}},
		{"listener", len(r.Listeners) > 0, Rule{Listeners: r.Listeners}},
		{"client", len(r.Clients) > 0, Rule{Clients: r.Clients}},
		{"time", !r.Time.empty(), Rule{Time: r.Time}},
	}
	for i := range r.Headers {
		list = append(list, question{"header." + r.Headers[i].Key, true, Rule{Headers: r.Headers[i : i+1]}})
	}
	for i := range r.Query {
		list = append(list, question{"query." + r.Query[i].Key, true, Rule{Query: r.Query[i : i+1]}})
	}
	for i := range r.Cookies {
		list = append(list, question{"cookie." + r.Cookies[i].Key, true, Rule{Cookies: r.Cookies[i : i+1]}})
	}
	for i := range r.Body {
		list = append(list, question{"body." + r.Body[i].Key, true, Rule{Body: r.Body[i : i+1]}})
	}
	for _, q := range list {
		if err := ask(q.key, q.asked, q.part); err != nil {
			return nil, err
		}
	}
	return missed, nil
}
