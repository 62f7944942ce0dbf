package luaapi

import (
	"net/netip"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
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
		Doc: "Tells whether an address lies in a network or one of a list; an address alone is a network of one. What is no network raises. For long " +
			"lists make a gw.ip.set.",
		Params:  list(p("networks", "string|string[]|gw.IPSet", "such as `10.0.0.0/8`"), p("address", "string", "such as req.client_ip")),
		Returns: list(p("lies", "boolean", "false too for what is no address")),
		Do: func(a vm.Args) int {
			if set := ipSetOf(a.Get(1)); set != nil {
				a.L.Push(lua.LBool(lies(set, argText(a, 2))))
				return 1
			}
			nets := networksArg(a)
			address, err := netip.ParseAddr(argText(a, 2))
			address = address.Unmap().WithZone("")
			a.VM.Charge(len(nets) / 2)
			for _, n := range nets {
				if err == nil && n.Contains(address) {
					a.L.Push(lua.LTrue)
					return 1
				}
			}
			a.L.Push(lua.LFalse)
			return 1
		}},
	{Name: "gw.ip.set", Phases: phaseLoad | phaseInit,
		Doc: "Makes a set of networks, whose `:has(address)` costs the same for ten and for ten thousand. Of a text, such as gw.file.read gives, each line is " +
			"a network, and what follows a `#` is not read. What is no network raises. `#set` is the number of ranges it came to.",
		Params:  list(p("networks", "string|string[]", "such as `10.0.0.0/8`; an address alone is a network of one")),
		Returns: list(p("set", "gw.IPSet", "read-only; it may be kept")),
		Do:      makeIPSet},
	{Name: "gw.ip.parse",
		Doc: "Reads an address and gives its canonical text (RFC 5952), its version and what kind of address it is. One of version 4 within version 6 is " +
			"one of version 4.",
		Params: list(p("text", "string", "")),
		Returns: list(p("address", "string?", "without a zone"), p("version", "4|6|string", "or why it is no address"),
			p("kind", `"public"|"private"|"loopback"|"link_local"|"multicast"|"unspecified"`, "")),
		Do: func(a vm.Args) int {
			address, err := netip.ParseAddr(argText(a, 1))
			if err != nil {
				return a.Fail("%s is no address", describe(lua.LString(visible(argText(a, 1)))))
			}
			address = address.Unmap().WithZone("")
			a.L.Push(lua.LString(address.String()))
			a.L.Push(lua.LNumber(map[bool]int{true: 4, false: 6}[address.Is4()]))
			a.L.Push(lua.LString(kindOfAddress(address)))
			return 3
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

func kindOfAddress(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsPrivate():
		return "private"
	case a.IsLinkLocalUnicast():
		return "link_local"
	case a.IsMulticast():
		return "multicast"
	}
	return "public"
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
		if nets[i], err = core.ParseNetwork(text); err != nil {
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
