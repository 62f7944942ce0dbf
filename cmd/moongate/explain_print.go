package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/gateway"
	"github.com/moongate/moongate/luaapi"
)

// explained is what explain tells.
type explained struct {
	Method   string            `json:"method"`
	Host     string            `json:"host"`
	Path     string            `json:"path"` // as routes and filters see it; as it came when none is looked for
	Client   string            `json:"client_ip"`
	Status   int               `json:"status,omitempty"`  // of the answer, when no upstream would be asked
	Message  string            `json:"message,omitempty"` // of that answer
	Route    string            `json:"route,omitempty"`
	At       string            `json:"at,omitempty"` // where the route stands
	Params   map[string]string `json:"params,omitempty"`
	Upstream string            `json:"upstream,omitempty"`
	Balance  string            `json:"balance,omitempty"`
	Ends     []string          `json:"endpoints,omitempty"`
	Target   string            `json:"target,omitempty"` // path and query that go out
	Filters  []explainedFilter `json:"filters"`
	Others   []explainedRoute  `json:"other_routes"`
}

type explainedFilter struct {
	Stage     string   `json:"stage"`
	Filter    string   `json:"filter"`
	Script    string   `json:"script"`
	Functions []string `json:"functions"`
}

type explainedRoute struct {
	Route  string   `json:"route"`
	At     string   `json:"at"`
	Misses []string `json:"misses"` // predicates that do not hold; none: another route comes first, or shares with it by weight
	shares bool
}

func newExplained(x *core.Exchange, found *gateway.Explanation, filters *luaapi.Pipeline) *explained {
	r := &x.Request
	e := &explained{Method: r.Method, Host: string(r.Host), Path: string(r.Path), Client: r.ClientIP.String(), Filters: []explainedFilter{}, Others: []explainedRoute{}}
	if !found.Looked() {
		e.Path = found.RawPath
	}
	if found.Refused != nil {
		e.Status, e.Message = found.Refused.Status, found.Refused.Public
	}
	if rt := found.Route; rt != nil {
		e.Route, e.At, e.Target = rt.Name, rt.Pos.String(), found.Target
		for _, p := range r.Params {
			if e.Params == nil {
				e.Params = map[string]string{}
			}
			e.Params[p.Name] = string(p.Value)
		}
		if u := found.Upstream; u != nil {
			e.Upstream, e.Balance = u.Name, u.Balance
			for _, end := range u.Endpoints {
				e.Ends = append(e.Ends, end.URL)
			}
		}
	}
	for _, t := range filters.Turns(x.Route) {
		e.Filters = append(e.Filters, explainedFilter(t))
	}
	slices.SortStableFunc(found.Others, func(a, b gateway.Other) int { return len(a.Missed) - len(b.Missed) })
	for _, o := range found.Others {
		e.Others = append(e.Others, explainedRoute{o.Route.Name, o.Route.Pos.String(), append([]string{}, o.Missed...), o.Route.HasWeight})
	}
	return e
}

// nearest is how many other routes are told of.
const nearest = 20

// print prints for people.
func (e *explained) print(out io.Writer, all bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(w, "request", fmt.Sprintf("%s %s, host %s, client %s", e.Method, e.Path, e.Host, e.Client))
	if e.Route == "" {
		row(w, "answer", fmt.Sprintf("%d %s", e.Status, e.Message))
	} else {
		row(w, "route", fmt.Sprintf("%s (%s)", e.Route, e.At))
		for _, name := range slices.Sorted(maps.Keys(e.Params)) {
			row(w, "", fmt.Sprintf("{%s} is %s", name, e.Params[name]))
		}
		row(w, "upstream", fmt.Sprintf("%s, %s over %s", e.Upstream, e.Balance, strings.Join(e.Ends, ", ")))
		row(w, "goes out", e.Method+" "+e.Target)
	}
	if len(e.Filters) > 0 {
		fmt.Fprint(w, "\nSTAGE\tFILTER\tFUNCTIONS\tSCRIPT\n")
	}
	for _, f := range e.Filters {
		row(w, f.Stage, f.Filter, strings.Join(f.Functions, " "), f.Script)
	}
	if len(e.Others) > 0 {
		fmt.Fprint(w, "\nOTHER ROUTE\tWHY NOT\tAT\n")
	}
	others := e.Others
	if !all && len(others) > nearest {
		others = others[:nearest]
	}
	for _, o := range others {
		row(w, o.Route, o.why(), o.At)
	}
	if n := len(e.Others) - len(others); n > 0 {
		fmt.Fprintf(w, "and %d more: --all\n", n)
	}
	return w.Flush()
}

func (o *explainedRoute) why() string {
	switch {
	case len(o.Misses) > 0:
		return "misses " + strings.Join(o.Misses, ", ")
	case o.shares:
		return "another comes first, or shares with it by weight"
	}
	return "another comes first"
}
