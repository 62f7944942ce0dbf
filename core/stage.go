package core

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
}

// Services are the parts of a generation that filters reach by name.
type Services interface {
	// Upstream finds an upstream by its configured name, nil when there is none.
	Upstream(name string) Upstream
	// Upstreams are the names of all configured upstreams, sorted.
	Upstreams() []string
	// AccessLine renders and writes the access line of an exchange. extra is either empty or JSON members with a leading
	// comma. It never blocks.
	AccessLine(x *Exchange, extra []byte)
}
