package gateway

import (
	"regexp"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/upstream"
)

// checkOptions are those of active health.
func checkOptions(a *conf.Active) upstream.CheckOptions {
	if !a.On {
		return upstream.CheckOptions{}
	}
	o := upstream.CheckOptions{Kind: a.Check, Method: a.Method, Path: a.Path, Host: a.Host, Service: a.Service, Interval: a.Interval, Timeout: a.Timeout,
		Healthy: a.Healthy, Unhealthy: a.Unhealthy}
	for _, s := range a.Status {
		o.Status = append(o.Status, upstream.StatusRange(s))
	}
	if a.Body != "" {
		o.Body = regexp.MustCompile(a.Body) // conf has compiled it
	}
	return o
}

// watch begins the checks of a generation that serves from now on, and goes on with those that it took over.
func (g *Gateway) watch(gen *Generation) {
	gen.EachUpstream(func(u *upstream.Upstream) { u.Watch(g.opts.Log) })
}
