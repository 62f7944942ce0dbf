package luaapi

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// req.tls: what the client's connection told.

var tlsFields = []vm.Param{
	p("version", "string", "such as `TLS 1.3`"),
	p("cipher", "string", "name of the cipher suite"),
	p("server_name", "string?", "that the client asked for (SNI)"),
	p("subject", "string?", "distinguished name of the client's certificate; nil without one"),
	p("common_name", "string?", "of that subject"),
	p("organizations", "string[]", "of that subject"),
	p("sans", "string[]", "names, e-mail addresses, IP addresses and URIs of the client's certificate"),
	p("uris", "string[]", "those of sans that are URIs, such as SPIFFE ids"),
	p("fingerprint", "string?", "SHA-256 of the client's certificate in hexadecimal digits"),
}

func getTLS(f *frame) lua.LValue {
	info := f.x.Request.TLS
	if info == nil {
		return lua.LNil
	}
	return &lua.LUserData{Value: info, Metatable: tlsMeta}
}

var tlsMeta = metatable("__index", goFunction(func(L *lua.LState) int {
	info := L.Get(1).(*lua.LUserData).Value.(*core.TLSInfo)
	switch key, _ := L.Get(2).(lua.LString); key {
	case "version":
		L.Push(lua.LString(info.Version))
	case "cipher":
		L.Push(lua.LString(info.Cipher))
	case "server_name":
		L.Push(optional(info.ServerName))
	case "subject":
		L.Push(optional(info.ClientSubject))
	case "common_name":
		L.Push(optional(info.ClientName))
	case "organizations":
		L.Push(stringList(info.ClientOrgs))
	case "sans":
		L.Push(stringList(info.ClientSANs))
	case "uris":
		L.Push(stringList(info.ClientURIs))
	case "fingerprint":
		L.Push(optional(info.ClientFingerprint))
	default:
		raise(L, "req.tls has no "+describe(L.Get(2))+": it has version, cipher, server_name, subject, common_name, organizations, sans, uris, fingerprint")
	}
	return 1
}))

func stringList(texts []string) *lua.LTable {
	list := newTable()
	for _, text := range texts {
		list.Append(lua.LString(text))
	}
	return list
}
