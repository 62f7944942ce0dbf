package luaapi

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/vm"
)

var uuidFuncs = []vm.Func{
	{Name: "gw.uuid.v4",
		Doc:     "Makes a random UUID (RFC 9562 section 5.4).",
		Returns: list(p("uuid", "string", "")),
		Do: func(a vm.Args) int {
			var b [16]byte
			rand.Read(b[:])
			a.L.Push(uuidText(b, 4))
			return 1
		}},
	{Name: "gw.uuid.v7",
		Doc:     "Makes a UUID that sorts by time (RFC 9562 section 5.7).",
		Returns: list(p("uuid", "string", "")),
		Do: func(a vm.Args) int {
			var b [16]byte
			rand.Read(b[:])
			var ms [8]byte
			binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
			copy(b[:6], ms[2:])
			a.L.Push(uuidText(b, 7))
			return 1
		}},
}

func uuidText(b [16]byte, version byte) lua.LValue {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	at := 0
	for _, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if at > 0 {
			out[at] = '-'
			at++
		}
		at += hex.Encode(out[at:], part)
	}
	return str(out[:])
}
