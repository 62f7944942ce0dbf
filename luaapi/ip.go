package luaapi

import (
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

// gw.ip: addresses and networks.

// overUnix stands for the address of who has none.
const overUnix = "unix"

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return overUnix
	}
	return a.String()
}

var ipFuncs = []vm.Func{
	{Name: "gw.ip.match",
		Doc:     "Tells whether an address lies in a network or one of a list; an address alone is a network of one. What is no network raises.",
		Params:  list(p("networks", "string|string[]", "such as `10.0.0.0/8`"), p("address", "string", "such as req.client_ip")),
		Returns: list(p("lies", "boolean", "false too for what is no address")),
		Do: func(a vm.Args) int {
			nets := networksArg(a)
			address, err := netip.ParseAddr(argText(a, 2))
			address = address.Unmap().WithZone("")
			for _, n := range nets {
				if err == nil && n.Contains(address) {
					a.L.Push(lua.LTrue)
					return 1
				}
			}
			a.L.Push(lua.LFalse)
			return 1
		}},
	{Name: "gw.ip.valid",
		Doc:     "Tells whether a text is an address, of version 4 or 6.",
		Params:  list(p("text", "string", "")),
		Returns: list(p("valid", "boolean", "")),
		Do: func(a vm.Args) int {
			_, err := netip.ParseAddr(argText(a, 1))
			a.L.Push(lua.LBool(err == nil))
			return 1
		}},
}

const maxNetworks = 256

// networksArg reads argument 1, and remembers what cannot change: texts and read-only lists.
func networksArg(a vm.Args) []netip.Prefix {
	c := cachesOf(a.VM)
	if nets, ok := c.networks[a.Get(1)]; ok {
		return nets
	}
	texts, fixed := textsArg(a, "a network or a list of them")
	nets := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		a.VM.Charge(8)
		var err error
		if nets[i], err = parseNetwork(text); err != nil {
			a.Bad(1, "%s is no network: write 10.0.0.0/8, fd00::/8 or an address", describe(lua.LString(visible(text))))
		}
	}
	if fixed {
		if c.networks == nil || len(c.networks) >= maxNetworks {
			c.networks = map[lua.LValue][]netip.Prefix{}
		}
		c.networks[a.Get(1)] = nets
	}
	return nets
}

func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap().WithZone("")
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	n, err := netip.ParsePrefix(text)
	return n.Masked(), err
}

// textsArg gives argument 1, a text or a list of texts, and whether it is fixed: what is made of it may be kept.
func textsArg(a vm.Args, what string) (texts []string, fixed bool) {
	switch v := a.Get(1).(type) {
	case lua.LString:
		return []string{string(v)}, true
	case *lua.LTable:
		if texts = stringsOf(v); len(texts) != vm.Thaw(v).MaxN() {
			a.Bad(1, "%s expected", what)
		}
		return texts, vm.IsFrozen(v)
	}
	a.Bad(1, "%s expected, got %s", what, a.Get(1).Type())
	return nil, false
}
