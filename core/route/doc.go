// Package route answers one question: which route takes a request, and under which path does it go on?
//
// A [Table] is built once from a list of [Rule] and never changes; one belongs to each generation. On the way of a request,
// [Canonical] reads the raw path, [Table.Match] chooses the route, [Path.Under] applies the route's path policy and [Target] gives
// the path for the upstream:
//
//	p, err := route.Canonical(r.RawPath, scratch)
//	r.Path = p.Seen
//	rt, err := table.Match(x, continue100)
//	r.RawPath, err = p.Under(rt.Path)
//	target := route.Target(rt, r.RawPath, r.Path, scratch)
//
// # Order
//
// Among the routes whose predicates all hold, the first by this order takes the request:
//
//  1. Host: an exact name, then the longest suffix ("*.example.com"), then routes without a host. A route for the host whose
//     other predicates fail leaves the request to less specific hosts.
//  2. Path: an exact path; then patterns of a fixed number of segments, compared segment by segment, a literal before {name}
//     before *; then prefixes, the longest first; then regular expressions; then ** alone and routes without a path.
//     "/api/user/**" is the prefix "/api/user" in another spelling. A pattern such as "/{team}/docs/**" stands among the prefixes,
//     compared segment by segment with ** last.
//  3. The number of other predicates, each header, query parameter, cookie and body field being one; weight is none.
//  4. Priority, the highest first.
//  5. A method before more headers before more query parameters, and then the order of the rules.
//
// Routes that differ only in weight are one group, and each request takes one of them at random. Two routes that nothing but step
// 5's order of rules could tell apart because they ask for the same are refused.
//
// The package never redirects, never changes a request but for its Params, and imports nothing of the gateway but core.
package route
