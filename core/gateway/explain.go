package gateway

import (
	"errors"
	"net/http"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/http1"
	"github.com/moongate/moongate/core/route"
)

// Explanation is what would become of a request before any filter has a say. Nobody is asked, and nothing is counted.
type Explanation struct {
	RawPath  string         // as it came
	Refused  *core.Error    // the answer when no route was looked for, or none took it; nil: one did
	Route    *conf.Route    // that takes it; nil: none
	Upstream *conf.Upstream // of the route
	Target   string         // path and query as they go out
	Others   []Other        // all other routes, in the order of the configuration; none when no route was looked for
}

// Looked tells whether a route was looked for.
func (e *Explanation) Looked() bool {
	return e.Refused == nil || e.Refused.Status == http.StatusNotFound
}

// Other is a route that does not take a request.
type Other struct {
	Route  *conf.Route
	Missed []string // keys of the predicates that do not hold; none: another route comes first
}

// Explain says what would become of a request: x as it stands when its head has been read. It settles what the gateway settles when a
// request arrives (client, path, parameters), in x.
func (g *Generation) Explain(x *core.Exchange) (*Explanation, error) {
	e := &Explanation{RawPath: string(x.Request.RawPath)}
	err := headLimits(g.config).Fit(appendHead(nil, &x.Request))
	g.arrive(x)
	if err == nil {
		err = g.match(x, nil)
	}
	if err != nil {
		var ok bool
		if e.Refused, ok = errors.AsType[*core.Error](err); !ok {
			return nil, err
		}
		if !e.Looked() {
			return e, nil
		}
	} else {
		rt := x.Route
		e.Route = g.config.Route(rt.Name)
		e.Upstream = g.config.Upstream(rt.Upstream)
		e.Target = string(route.Target(rt, x.Request.RawPath, x.Request.Path, nil))
		if x.Request.HasQuery {
			e.Target += "?" + string(x.Request.RawQuery)
		}
	}
	for i := range g.config.Routes {
		r := &g.config.Routes[i]
		if e.Route != nil && r.Name == e.Route.Name {
			continue
		}
		rule := newRule(r)
		rule.Route = &core.Route{Name: r.Name, BodyBuffer: r.HTTP.BodyBuffer}
		missed, err := rule.Misses(x)
		if err != nil {
			return nil, err
		}
		e.Others = append(e.Others, Other{r, missed})
	}
	return e, nil
}

// appendHead appends the head of a request as it comes over HTTP/1.1.
func appendHead(out []byte, r *core.Request) []byte {
	out = append(append(append(out, r.Method...), ' '), r.RawPath...)
	if r.HasQuery {
		out = append(append(out, '?'), r.RawQuery...)
	}
	out = append(out, " HTTP/1.1\r\n"...)
	for _, f := range r.Header.Fields() {
		out = http1.AppendField(out, f.Name, f.Value)
	}
	return append(out, "\r\n"...)
}
