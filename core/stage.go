package core

import "time"

// Stage is one named step of the pipeline with the filters that a route has there. Stages are shared by all exchanges and safe for
// concurrent use; an exchange visits them one at a time.
//
// Request runs the stage's request functions. A Reply answers the client and ends the way to the upstream; an error means that a
// filter is broken, and the exchange fails. (nil, nil) lets it go on. Each filter whose turn comes is counted in Exchange.Turn
// before it runs. Response runs the response functions of the filters whose turn had come, in reverse order. Log runs all log functions.
type Stage interface {
	Name() string
	Request(x *Exchange) (*Reply, error)
	Response(x *Exchange) error
	Log(x *Exchange)
}

// BodyStage is a Stage whose filters may also work on bodies piece by piece, as they pass.
//
// StreamRequest puts the filters between x.Request.Body and whoever reads it next. It is called when the request stages are done and before
// an upstream is asked; the first stage of the pipeline comes first, so that its filters see the body first. StreamResponse does so for
// x.Response.Body, with the filters whose turn had come (Exchange.Reached), when the response functions are done and before the head is
// sent; the last stage comes first. Both see to it that the head stays true. An error is what the exchange fails with.
//
// The filters then run in whichever goroutine reads the body. A read fails with an *Error when a filter does, and with one around an *Answered when a
// filter of the request has answered the client.
type BodyStage interface {
	Stage
	// Streams tells whether the route has such filters in the stage; a nil route is what it is for Pipeline.Stages.
	Streams(route *Route) bool
	StreamRequest(x *Exchange) error
	StreamResponse(x *Exchange) error
}

// Pipeline tells which stages have work on a route. It is the door through which a scripting layer is joined to the gateway.
type Pipeline interface {
	// Stages are those that have filters on the route, in pipeline order. A nil route asks for the filters that run on every
	// route: they see answers to requests that matched none.
	Stages(route *Route) []Stage
}

// Upstream is what filters may ask of one.
type Upstream interface {
	Name() string
	// Pick chooses an endpoint that is ready; key is for balancers that hash, "" for none.
	Pick(x *Exchange, key string) (*Endpoint, error)
	// Endpoints is the list as configured; Ready tells how many of them take requests now.
	Endpoints() []*Endpoint
	Ready() int
	// State is what is known now about one of its endpoints.
	State(e *Endpoint) EndpointState
}

// EndpointState is an endpoint's at one moment.
type EndpointState struct {
	Ready    bool   // it takes requests
	Health   string // "ready", "out", "unhealthy" or "drained"
	InFlight int    // connections in use, or being opened
}

// Services are the parts of a generation that filters reach by name.
type Services interface {
	// Upstream finds an upstream by its configured name, nil when there is none.
	Upstream(name string) Upstream
	// Upstreams are the names of all configured upstreams, sorted.
	Upstreams() []string
	Caller
	Delayer
	// Patience is how long the filters of an exchange may wait for others, all waits together: the route's total.
	Patience(route *Route) time.Duration
	// AccessLine renders and writes the access line of an exchange. extra is either empty or JSON members with a leading
	// comma. It never blocks.
	AccessLine(x *Exchange, extra []byte)
}
