package luaapi_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

// pair is a key pair as PEM texts.
type pair struct {
	signer          crypto.Signer
	private, public string
}

func pemPair(signer crypto.Signer, err error) pair {
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		panic(err)
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		panic(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return pair{signer, text("PRIVATE KEY", private), text("PUBLIC KEY", public)}
}

// keyPairs are made once: RSA keys take a while.
var keyPairs = sync.OnceValue(func() map[string]pair {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	made := map[string]pair{"EdDSA": pemPair(edwards, err)}
	for name, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		made[name] = pemPair(key, err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	for _, name := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		made[name] = pemPair(key, err)
	}
	return made
})

// quoted is a text as Lua writes it.
func quoted(s string) string { return "[==[" + s + "]==]" }

func TestSignaturesHoldForTheirKeyDataAndAlgorithmAlone(t *testing.T) {
	other := keyPairs()["ES256"]
	for algorithm, key := range keyPairs() {
		holds(t, `
			local algorithm, private, public = "`+algorithm+`", `+quoted(key.private)+`, `+quoted(key.public)+`
			local signature = gw.crypto.sign(algorithm, private, "data")
			assert(gw.crypto.verify(algorithm, public, "data", signature))
			assert(not gw.crypto.verify(algorithm, public, "Data", signature))
			assert(not gw.crypto.verify(algorithm, public, "data", signature .. "x") and not gw.crypto.verify(algorithm, public, "data", ""))
			assert(not pcall(gw.crypto.sign, algorithm, public, "data") and not pcall(gw.crypto.verify, algorithm, private, "data", signature))
			assert(not pcall(gw.crypto.sign, "none", private, "data") and not pcall(gw.crypto.sign, "HS256", private, "data") and not pcall(gw.crypto.sign, "", private, "data"))
			local ok, holds = pcall(gw.crypto.verify, "ES256", `+quoted(other.public)+`, "data", signature)
			assert(ok and (algorithm == "ES256") == holds)
		`, luatest.Request{})
	}
}

func TestSignaturesOfOtherToolsHold(t *testing.T) {
	data := []byte("data")
	sum := sha256.Sum256(data)
	long := sha512.Sum512(data)
	for algorithm, sign := range map[string]func(crypto.Signer) ([]byte, error){
		"RS256": func(s crypto.Signer) ([]byte, error) { return s.Sign(rand.Reader, sum[:], crypto.SHA256) },
		"PS512": func(s crypto.Signer) ([]byte, error) {
			return s.Sign(rand.Reader, long[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA512})
		},
		"ES256": func(s crypto.Signer) ([]byte, error) { return s.Sign(rand.Reader, sum[:], crypto.SHA256) }, // ASN.1
		"EdDSA": func(s crypto.Signer) ([]byte, error) { return s.Sign(rand.Reader, data, crypto.Hash(0)) },
	} {
		key := keyPairs()[algorithm]
		signature, err := sign(key.signer)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, `assert(gw.crypto.verify("`+algorithm+`", `+quoted(key.public)+`, "data", req:body()))`, luatest.Request{Method: "POST", Body: string(signature)})
	}
}

func TestWeakAndBrokenKeysAreRefused(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	weak := pemPair(short, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	odd := pemPair(p224, err)
	locked := "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----"
	for call, want := range map[string]string{
		`gw.crypto.sign("RS256", ` + quoted(weak.private) + `, "")`:                   "RSA with 1024 bits, want at least 2048",
		`gw.crypto.verify("RS256", ` + quoted(weak.public) + `, "", "")`:              "RSA with 1024 bits, want at least 2048",
		`gw.crypto.sign("ES256", ` + quoted(odd.private) + `, "")`:                    "P-224",
		`gw.crypto.sign("ES256", ` + quoted(locked) + `, "")`:                         "passphrase",
		`gw.crypto.sign("ES384", ` + quoted(keyPairs()["ES256"].private) + `, "")`:    `algorithm "ES384" does not go with a key on P-256: want ES256`,
		`gw.crypto.sign("ES256", "", "")`:                                             "no PEM block",
		`gw.crypto.sign("ES256", ("x"):rep(70000), "")`:                               "longer than 64 KiB",
		`gw.crypto.sign("ES256", ` + quoted(strings.Repeat(odd.private, 2)) + `, "")`: "more than one PEM block",
		`gw.jwt.sign({}, { private_key = ` + quoted(weak.private) + ` })`:             "RSA with 1024 bits",
		`gw.jwt.sign({}, { secret = "short" })`:                                       "secret has 5 bytes: HS256 wants at least 32",
		`gw.jwt.sign({}, { secret = ("k"):rep(40), algorithm = "HS512" })`:            "HS512 wants at least 64",
		`gw.jwt.sign({}, {})`: "HS256 wants at least 32",
		`gw.jwt.sign({}, { secret = ("k"):rep(40), private_key = "x" })`:   "want one of them",
		`gw.jwt.sign({}, { secret = ("k"):rep(40), algorithm = "none" })`:  `algorithm "none" does not go with a secret`,
		`gw.jwt.sign({ exp = "soon" }, { secret = ("k"):rep(40) })`:        "exp is a number of seconds since 1970, not a string",
		`gw.jwt.sign({ 1, 2 }, { secret = ("k"):rep(40) })`:                "claims have names, got a list",
		`gw.jwt.sign({ exp = 1 }, { secret = ("k"):rep(40) }, 60)`:         "the claims have exp already",
		`gw.jwt.sign({}, { secret = ("k"):rep(40) }, -1)`:                  "good for some seconds, not for -1",
		`gw.jwt.sign({ a = ("x"):rep(9000) }, { secret = ("k"):rep(40) })`: "longer than the limit of 8192",
		`gw.jwt.sign({ a = ("x"):rep(7000) }, { secret = ("k"):rep(40) })`: "no verifier reads more than 8192",
		`gw.crypto.encrypt("short", "data")`:                               "a key of 5 bytes: it has 16, 24 or 32",
	} {
		if a, _ := run(t, call, luatest.Request{}); a.Err == nil || !strings.Contains(a.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", call, a.Err, want)
		}
	}
}

func TestSealedDataOpensUnchangedAndWithItsKeyAlone(t *testing.T) {
	holds(t, `
		for _, size in ipairs({ 16, 24, 32 }) do
			local key = gw.crypto.random(size)
			for _, data in ipairs({ "", "x", "\0\255", ("y"):rep(100000) }) do
				local sealed = gw.crypto.encrypt(key, data, "beside")
				assert(#sealed == #data + 28 and gw.crypto.encrypt(key, data, "beside") ~= sealed)
				assert(gw.crypto.decrypt(key, sealed, "beside") == data)
				assert(gw.crypto.decrypt(key, sealed) == nil and gw.crypto.decrypt(gw.crypto.random(size), sealed, "beside") == nil)
				local changed = sealed:sub(1, -2) .. string.char((sealed:byte(-1) + 1) % 256)
				local none, err = gw.crypto.decrypt(key, changed, "beside")
				assert(none == nil and err == "not sealed with this key, or changed")
			end
			assert(gw.crypto.decrypt(key, "") == nil and gw.crypto.decrypt(key, ("z"):rep(27)) == nil)
		end
	`, luatest.Request{})
}

func TestDigestsAreThoseOfTheStandards(t *testing.T) {
	holds(t, `
		local hex = gw.crypto.hex_encode
		assert(hex(gw.crypto.md5("abc")) == "900150983cd24fb0d6963f7d28e17f72")
		assert(hex(gw.crypto.sha1("abc")) == "a9993e364706816aba3e25717850c26c9cd0d89d")
		assert(hex(gw.crypto.sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
		assert(hex(gw.crypto.sha384("abc")):sub(1, 16) == "cb00753f45a35e8b" and hex(gw.crypto.sha512("abc")):sub(1, 16) == "ddaf35a193617aba")
		-- RFC 4231, test case 2
		assert(hex(gw.crypto.hmac("sha256", "Jefe", "what do ya want for nothing?")) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
		assert(hex(gw.crypto.hmac("sha384", "Jefe", "what do ya want for nothing?")):sub(1, 16) == "af45d2e376484031")
		for _, bytes in ipairs({ "", "a", "ab", "abc", "\0\255\254" }) do
			assert(gw.crypto.base64_decode(gw.crypto.base64_encode(bytes)) == bytes and gw.crypto.base64url_decode(gw.crypto.base64url_encode(bytes)) == bytes)
			assert(gw.crypto.hex_decode(hex(bytes)) == bytes)
		end
		for _, text in ipairs({ "YQ", "YR==", "YQ==\n", "Y Q==", "*" }) do
			local bytes, err = gw.crypto.base64_decode(text)
			assert(bytes == nil and err, text)
		end
		assert(gw.crypto.base64url_decode("YQ==") == nil and gw.crypto.base64url_decode("+w") == nil and gw.crypto.hex_decode("0") == nil)
	`, luatest.Request{})
}

func TestSignedTokensAreVerified(t *testing.T) {
	for algorithm, key := range keyPairs() {
		holds(t, `
			local private = { private_key = `+quoted(key.private)+`, algorithm = "`+algorithm+`", kid = "k 1" }
			local public = { public_key = `+quoted(key.public)+`, algorithm = "`+algorithm+`" }
			local token = gw.jwt.sign({ sub = "tom", n = gw.json.decode("12345678901234567890"), list = { "a" } }, private, 60)
			local claims = assert(gw.jwt.verify(token, public))
			assert(claims.sub == "tom" and tostring(claims.n) == "12345678901234567890" and claims.list[1] == "a" and claims.exp - claims.iat == 60)
			local head = gw.json.decode(gw.crypto.base64url_decode(token:match("^[^.]+")))
			assert(head.alg == "`+algorithm+`" and head.typ == "JWT" and head.kid == "k 1")
		`, luatest.Request{})
	}
	holds(t, `
		for algorithm, n in pairs({ HS256 = 32, HS384 = 48, HS512 = 64 }) do
			local conf = { secret = ("k"):rep(n), algorithm = algorithm }
			assert(gw.jwt.verify(gw.jwt.sign({ sub = "tom" }, conf), conf).sub == "tom")
			local none, err = gw.jwt.verify(gw.jwt.sign({ exp = 1 }, conf), conf)
			assert(none == nil and err == "token expired")
		end
	`, luatest.Request{})
}
