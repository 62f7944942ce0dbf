package luaapi

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/luaapi/vm"
)

// gw.crypto: digests, signatures with a shared key, and the texts that carry bytes.

var hashes = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New, "md5": md5.New}

var cryptoFuncs = append([]vm.Func{
	hashFunc("sha256", sha256.New, ""),
	hashFunc("sha384", sha512.New384, ""),
	hashFunc("sha512", sha512.New, ""),
	hashFunc("sha1", sha1.New, " For old protocols only."),
	hashFunc("md5", md5.New, " For old protocols only."),
	{Name: "gw.crypto.hmac",
		Doc:     "Signs data with a shared key (RFC 2104) and gives the bytes; compare them with gw.crypto.equal.",
		Params:  list(p("hash", `"sha1"|"sha256"|"sha384"|"sha512"|"md5"`, ""), p("key", "string", ""), p("data", "string", "")),
		Returns: list(p("mac", "string", "bytes, not text")),
		Do: func(a vm.Args) int {
			newHash := hashes[argText(a, 1)]
			if newHash == nil {
				a.Bad(1, "%s is no hash: sha256, sha384, sha512, sha1 or md5", describe(a.Get(1)))
			}
			mac := hmac.New(newHash, core.Bytes(argText(a, 2)))
			return pushDigest(a, mac, argText(a, 3))
		}},
	{Name: "gw.crypto.equal",
		Doc:     "Compares two texts in a time that tells nothing about where they differ.",
		Params:  list(p("x", "string", ""), p("y", "string", "")),
		Returns: list(p("equal", "boolean", "")),
		Do: func(a vm.Args) int {
			x, y := argText(a, 1), argText(a, 2)
			a.VM.Charge((len(x) + len(y)) / 16)
			a.L.Push(lua.LBool(subtle.ConstantTimeCompare(core.Bytes(x), core.Bytes(y)) == 1))
			return 1
		}},
	{Name: "gw.crypto.random",
		Doc:     "Gives bytes that nobody can guess.",
		Params:  list(p("n", "integer", "how many, up to 65536")),
		Returns: list(p("bytes", "string", "")),
		Do: func(a vm.Args) int {
			n := a.Int(1)
			if n < 0 || n > 65536 {
				a.Bad(1, "from 0 to 65536 bytes, not %d", n)
			}
			a.VM.Charge(n / 4)
			b := make([]byte, n)
			rand.Read(b)
			a.L.Push(str(b))
			return 1
		}},
	encodeFunc("hex_encode", "Writes bytes as hexadecimal digits.", func(s string) string { return hex.EncodeToString(core.Bytes(s)) }, 2),
	decodeFunc("hex_decode", "Reads hexadecimal digits.", hex.DecodeString),
	encodeFunc("base64_encode", "Writes bytes as base64 (RFC 4648 section 4).", func(s string) string {
		return base64.StdEncoding.EncodeToString(core.Bytes(s))
	}, 2),
	decodeFunc("base64_decode", "Reads base64, strictly.", base64.StdEncoding.Strict().DecodeString),
	encodeFunc("base64url_encode", "Writes bytes as base64url without padding (RFC 4648 section 5).", func(s string) string {
		return base64.RawURLEncoding.EncodeToString(core.Bytes(s))
	}, 2),
	decodeFunc("base64url_decode", "Reads base64url without padding, strictly.", base64.RawURLEncoding.Strict().DecodeString),
}, cryptoKeyFuncs...)

func hashFunc(name string, newHash func() hash.Hash, remark string) vm.Func {
	return vm.Func{Name: "gw.crypto." + name,
		Doc:     "Gives the digest of data as bytes; gw.crypto.hex_encode makes text of them." + remark,
		Params:  list(p("data", "string", "")),
		Returns: list(p("digest", "string", "bytes, not text")),
		Do:      func(a vm.Args) int { return pushDigest(a, newHash(), argText(a, 1)) }}
}

func pushDigest(a vm.Args, h hash.Hash, data string) int {
	a.VM.Charge(8 + len(data)/4)
	h.Write(core.Bytes(data))
	var buf [sha512.Size]byte
	a.L.Push(str(h.Sum(buf[:0])))
	return 1
}

func encodeFunc(name, doc string, encode func(string) string, growth int) vm.Func {
	return vm.Func{Name: "gw.crypto." + name, Doc: doc,
		Params:  list(p("bytes", "string", "")),
		Returns: list(p("text", "string", "")),
		Do: func(a vm.Args) int {
			s := argText(a, 1)
			a.CheckString(growth * len(s))
			a.L.Push(lua.LString(encode(s)))
			return 1
		}}
}

func decodeFunc(name, doc string, decode func(string) ([]byte, error)) vm.Func {
	return vm.Func{Name: "gw.crypto." + name, Doc: doc,
		Params:  list(p("text", "string", "")),
		Returns: list(p("bytes", "string?", ""), errParam),
		Do: func(a vm.Args) int {
			s := argText(a, 1)
			a.CheckString(len(s))
			if strings.ContainsAny(s, "\r\n") { // package base64 passes over them
				return a.Fail("a line break is no digit")
			}
			b, err := decode(s)
			if err != nil {
				return pushFailure(a, err)
			}
			a.L.Push(str(b))
			return 1
		}}
}
