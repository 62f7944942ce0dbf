package luaapi

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/luaapi/vm"
)

// The part of gw.crypto that works with keys: encryption with a shared one, signatures with a pair.

var (
	algorithmParam = p("algorithm", `"RS256"|"RS384"|"RS512"|"PS256"|"PS384"|"PS512"|"ES256"|"ES384"|"ES512"|"EdDSA"`,
		"of RFC 7518: RS is RSA PKCS #1 v1.5, PS is RSA-PSS, ES is ECDSA, EdDSA is Ed25519; the number is the SHA-2 digest")
	gcmKey    = p("key", "string", "16, 24 or 32 bytes, not text: AES-128, -192 or -256")
	gcmBeside = opt("beside", "string", "what is not encrypted but must be the same on both sides")
)

var cryptoKeyFuncs = []vm.Func{
	{Name: "gw.crypto.encrypt",
		Doc: "Encrypts and authenticates data with AES-GCM (NIST SP 800-38D) under a new random nonce, which is the first 12 bytes of what it gives. " +
			"One key is good for four thousand million messages.",
		Params:  list(gcmKey, p("data", "string", ""), gcmBeside),
		Returns: list(p("sealed", "string", "bytes, 28 more than data")),
		Do: func(a vm.Args) int {
			sealer := gcmArg(a)
			data, beside := argText(a, 2), a.OptString(3, "")
			a.CheckString(len(data) + sealer.Overhead())
			a.VM.Charge(64 + (len(data)+len(beside))/16)
			a.L.Push(str(sealer.Seal(nil, nil, core.Bytes(data), core.Bytes(beside))))
			return 1
		}},
	{Name: "gw.crypto.decrypt",
		Doc:     "Gives back what gw.crypto.encrypt was given; nil when the key is another one or anything was changed.",
		Params:  list(gcmKey, p("sealed", "string", "bytes: nonce, encrypted data, tag"), gcmBeside),
		Returns: list(p("data", "string?", ""), errParam),
		Do: func(a vm.Args) int {
			sealer := gcmArg(a)
			sealed, beside := argText(a, 2), a.OptString(3, "")
			a.CheckString(len(sealed))
			a.VM.Charge(64 + (len(sealed)+len(beside))/16)
			data, err := sealer.Open(nil, nil, core.Bytes(sealed), core.Bytes(beside))
			if err != nil {
				return a.Fail("not sealed with this key, or changed")
			}
			a.L.Push(str(data))
			return 1
		}},
	{Name: "gw.crypto.sign",
		Doc: "Signs data with a private key and gives the bytes. What ES gives is the pair of numbers of RFC 7518 section 3.4, not ASN.1. " +
			"For a shared key there is gw.crypto.hmac.",
		Params: list(algorithmParam, p("private_key", "string", "PEM: PRIVATE KEY, RSA PRIVATE KEY (2048 bits and more) or EC PRIVATE KEY, without a passphrase; "+
			"a wrong one raises"), p("data", "string", "")),
		Returns: list(p("signature", "string", "bytes, not text")),
		Do: func(a vm.Args) int {
			key := privateKeyArg(a)
			a.VM.Charge(1024 + len(argText(a, 3))/4)
			signature, err := key.Sign(argText(a, 3))
			if err != nil {
				a.Raise("%s: %s", a.Func.Name, err)
			}
			a.L.Push(str(signature))
			return 1
		}},
	{Name: "gw.crypto.verify",
		Doc: "Tells whether a signature was made with the private key that belongs to a public one. One of ES may be the pair of numbers of RFC 7518 " +
			"section 3.4 or ASN.1, as openssl writes it.",
		Params: list(algorithmParam, p("public_key", "string", "PEM: PUBLIC KEY, RSA PUBLIC KEY (2048 bits and more) or CERTIFICATE; a wrong one raises"),
			p("data", "string", ""), p("signature", "string", "bytes, not text")),
		Returns: list(p("holds", "boolean", "")),
		Do: func(a vm.Args) int {
			key := publicKeyArg(a)
			data, signature := argText(a, 3), argText(a, 4)
			a.VM.Charge(512 + len(data)/4)
			a.L.Push(lua.LBool(key.Verify(data, core.Bytes(signature))))
			return 1
		}},
}

func gcmArg(a vm.Args) cipher.AEAD {
	key := argText(a, 1)
	block, err := aes.NewCipher(core.Bytes(key))
	if err != nil {
		a.Bad(1, "a key of %d bytes: it has 16, 24 or 32", len(key))
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		a.Raise("%s: %s", a.Func.Name, err)
	}
	return sealer
}

// keyID finds a parsed key in a VM's cache.
type keyID struct {
	private         bool
	algorithm, text string
}

// keys are what a VM has parsed: few, since keys are written in settings and files.
type keys map[keyID]any

const (
	maxKeys    = 64
	maxKeyText = 64 << 10
)

func privateKeyArg(a vm.Args) *auth.PrivateKey {
	return pemArg(a, true, func(algorithm string, text []byte) (any, error) { return auth.ParsePrivateKey(algorithm, text) }).(*auth.PrivateKey)
}

func publicKeyArg(a vm.Args) *auth.PublicKey {
	return pemArg(a, false, func(algorithm string, text []byte) (any, error) { return auth.ParsePublicKey(algorithm, text) }).(*auth.PublicKey)
}

// pemArg gives the key of arguments 1 and 2, parsed once by each VM.
func pemArg(a vm.Args, private bool, parse func(algorithm string, text []byte) (any, error)) any {
	id := keyID{private, argText(a, 1), argText(a, 2)}
	c := cachesOf(a.VM)
	if key := c.keys[id]; key != nil {
		return key
	}
	a.VM.Charge(4096)
	key, err := any(nil), errors.New("longer than 64 KiB")
	if len(id.text) <= maxKeyText {
		key, err = parse(id.algorithm, []byte(id.text))
	}
	if id.algorithm == "" {
		err = errors.New(`which algorithm? write "RS256", "ES256" or "EdDSA"`)
	}
	if err != nil {
		a.Raise("%s: %s", a.Func.Name, err)
	}
	if c.keys == nil || len(c.keys) >= maxKeys {
		c.keys = keys{}
	}
	c.keys[id] = key
	return key
}
