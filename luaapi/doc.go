// Package luaapi is what scripts see: it answers how a request, its answer and the gateway's native parts look from Lua, and makes a
// core.Pipeline whose filters are scripts.
//
//	p, err := luaapi.Build(luaapi.Options{Config: cfg, Routes: routes, Services: services, Limits: limits, Shared: shared})
//	// err is a conf.Errors with every fault at its file and line
//	p.Commit()                        // when the generation goes live
//	for _, stage := range p.Stages(route) {
//		reply, err := stage.Request(exchange)
//	}
//
// One file, one namespace: request.go, headers.go, query.go ... are the handles, json.go, jwt.go, limit.go ... the modules of gw.
// Every function stands in a binding table (vm.Func), which registers it, checks its phase, and makes docs/lua and the editor stubs.
// build.go and its neighbours turn configuration and scripts into stages; stage.go runs them.
//
// A request costs one VM taken and one allocation for handles in each stage and phase, and strings only where a script asks for
// them. The package never opens a socket and never starts a goroutine; nothing of one request is seen by the next.
package luaapi
