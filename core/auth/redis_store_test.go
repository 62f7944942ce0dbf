package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// redisOf is a client of a server that knows GET of what is in the map, and SET with NX.
func redisOf(t *testing.T, keys map[string]string) (*redis.Client, *redistest.Fake) {
	t.Helper()
	f := redistest.NewFake(t)
	var mu sync.Mutex
	f.Answer(func(args []string) string {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case args[0] == "GET" && keys[args[1]] != "":
			return "+" + keys[args[1]] + "\r\n"
		case args[0] == "GET":
			return "$-1\r\n"
		case strings.Join(append(args[:1:1], args[2:5]...), " ") == "SET 1 NX PX" && keys[args[1]] == "":
			keys[args[1]] = args[5]
			return "+OK\r\n"
		case args[0] == "SET":
			return "$-1\r\n"
		}
		return ""
	})
	c := must(redis.New("main", redis.Options{Addresses: []string{f.Address}, Timeout: 10 * time.Second}, quiet))
	c.Start()
	t.Cleanup(c.Close)
	return c, f
}

func TestAPIKeysOfRedis(t *testing.T) {
	digest := strings.TrimPrefix(auth.HashAPIKey("k1"), "sha256:")
	client, server := redisOf(t, map[string]string{"api_key:" + digest: `{"user":"acme","tier":"gold"}`})
	v := must(auth.NewAPIKeys(auth.APIKeysOptions{Store: auth.RedisAPIKeys(client, "api_key:"), Keep: time.Minute}))
	for key, want := range map[string]string{"k1": "api_key acme", "k2": "401 API key invalid"} {
		if got := outcome(v, request("/", "X-Api-Key: "+key)); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
	server.Down()
	if got := outcome(v, request("/", "X-Api-Key: k1")); got != "api_key acme" {
		t.Errorf("a key that is remembered: %s", got)
	}
	if got := outcome(v, request("/", "X-Api-Key: k3")); got != "503 temporarily unavailable" {
		t.Errorf("Redis is gone: %s", got)
	}
}

func TestNoncesOfRedisAreSharedByGateways(t *testing.T) {
	kept := map[string]string{}
	client, server := redisOf(t, kept)
	key := []byte(strings.Repeat("k", 32))
	gateway := func() auth.Verifier {
		return must(auth.NewHMAC(auth.HMACOptions{Apps: []auth.HMACApp{{ID: "a", Secret: key}}, Nonces: auth.RedisNonces(client, "nonce:"), Clock: at(now)}))
	}
	send := func(v auth.Verifier, nonce string) string {
		x := request("/")
		x.Request.Header.Add("Authorization", sign(x, "a", key, now, nonce, ""))
		return outcome(v, x)
	}
	one, two := gateway(), gateway()
	for _, step := range []struct {
		v           auth.Verifier
		nonce, want string
	}{{one, "nonce-001", "hmac a"}, {two, "nonce-001", "401 signature invalid"}, {two, "nonce-002", "hmac a"}, {one, "nonce-002", "401 signature invalid"}} {
		if got := send(step.v, step.nonce); got != step.want {
			t.Errorf("%s: %s", step.nonce, got)
		}
	}
	if ttl := kept["nonce:1:a:nonce-001"]; ttl != "601000" {
		t.Errorf("kept for %s ms", ttl)
	}
	server.Down()
	if got := send(one, "nonce-003"); got != "503 temporarily unavailable" {
		t.Errorf("Redis is gone: %s", got)
	}
}
