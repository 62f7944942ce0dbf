// Package vm is the Lua machine: it answers how a script is compiled, sandboxed, called within a budget and isolated from
// every other call. It knows nothing of HTTP or of the gateway.
//
// A Base holds what nobody writes (libraries, constants, their frozen tables) and is shared by all machines of a
// generation. A Script is compiled once. A VM is one Lua state with the scripts it has loaded; a Pool lends VMs. What Go
// offers to scripts is a table of Func, which also says where each function may be called and how it is documented:
//
//	base, err := vm.NewBase(vm.Options{Funcs: append(stdlib.Funcs(), mine...), Values: stdlib.Values()})
//	script, err := vm.Compile("auth.lua", source)
//	pool := vm.NewPool(base, vm.PoolOptions{Max: 64, Wait: 100 * time.Millisecond})
//	v, err := pool.Take(nil)
//	table, err := v.Load(script)
//	v.Phase, v.Slot = phase, exchange
//	result, err := v.Call(table.(*lua.LTable).RawGetString("on_request").(*lua.LFunction), arguments...)
//	pool.Give(v)
//
// It never starts a goroutine, never ends the process, and lets no error or panic of a script or a binding escape a Call.
package vm
