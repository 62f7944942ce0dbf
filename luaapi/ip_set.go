package luaapi

import (
	"net/netip"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// ipSets are the sets of a pipeline by what they were made of, so that its VMs share them.
type ipSets struct {
	mu   sync.Mutex
	made map[string]*core.Networks
}

const maxIPSets = 256

func (c *ipSets) get(texts []string) (*core.Networks, error) {
	id := strings.Join(texts, "\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.made[id]; set != nil {
		return set, nil
	}
	networks, err := core.ParseNetworks(id)
	if err != nil {
		return nil, err
	}
	if c.made == nil || len(c.made) >= maxIPSets {
		c.made = map[string]*core.Networks{}
	}
	set := core.NewNetworks(networks)
	c.made[id] = set
	return set, nil
}

func makeIPSet(a vm.Args) int {
	texts, _ := textsArg(a, "a text or a list of networks")
	for _, text := range texts {
		a.VM.Charge(8 + len(text))
	}
	set, err := worldOf(a.VM).ipSets.get(texts)
	if err != nil {
		a.Bad(1, "%s", err)
	}
	a.L.Push(&lua.LUserData{Value: set, Metatable: ipSetMeta})
	return 1
}

var ipSetMethods = []vm.Func{
	{Name: "set:has",
		Doc:     "Tells whether an address lies in one of the networks.",
		Params:  list(p("address", "string", "such as req.client_ip")),
		Returns: list(p("lies", "boolean", "false too for what is no address")),
		Do: func(a vm.Args) int {
			set := ipSetOf(a.Get(1))
			if set == nil {
				a.Raise("call it with a colon: %s(...)", a.Func.Name)
			}
			a.L.Push(lua.LBool(lies(set, argText(a, 2))))
			return 1
		}},
}

// lies tells whether a text is an address in the set.
func lies(set *core.Networks, text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && set.Contains(address)
}

func ipSetOf(v lua.LValue) *core.Networks {
	if ud, ok := v.(*lua.LUserData); ok {
		set, _ := ud.Value.(*core.Networks)
		return set
	}
	return nil
}

var ipSetMeta = handleMeta("a set of networks", ipSetMethods, "__len", goFunction(func(L *lua.LState) int {
	L.Push(lua.LNumber(ipSetOf(L.Get(1)).Len()))
	return 1
}))
