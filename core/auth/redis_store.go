package auth

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moongate/moongate/core/redis"
)

// RedisAPIKeys finds API keys in a Redis: under the prefix and the hexadecimal digits of the key's SHA-256 stands a line that ParseAPIKeys
// reads.
func RedisAPIKeys(client *redis.Client, prefix string) APIKeyStore {
	return func(_ context.Context, hash string) (text string, found bool, err error) {
		v, err := client.Do("GET", prefix+strings.TrimPrefix(hash, "sha256:"))
		switch {
		case err != nil:
			return "", false, err
		case v.Kind == redis.Nil:
			return "", false, nil
		case v.Kind != redis.Text:
			return "", false, fmt.Errorf("redis %s holds no text there", client.Name())
		}
		return v.Text, true, nil
	}
}

// RedisNonces remembers nonces in a Redis, so that several gateways accept each of them once. While Redis cannot be asked nobody can tell,
// and signed requests are not let in.
func RedisNonces(client *redis.Client, prefix string) NonceStore { return redisNonces{client, prefix} }

type redisNonces struct {
	client *redis.Client
	prefix string
}

// Use implements NonceStore. Setting and forgetting are one command (SET with NX and PX).
func (n redisNonces) Use(w Waiter, app, nonce string, ttl time.Duration) (fresh bool, err error) {
	key := n.prefix + strconv.Itoa(len(app)) + ":" + app + ":" + nonce
	milliseconds := strconv.FormatInt(max(ttl.Milliseconds(), 0)+1000, 10)
	var v redis.Value
	if waiting := w.Wait(func(context.Context) { v, err = n.client.Do("SET", key, "1", "NX", "PX", milliseconds) }); waiting != nil {
		return false, unavailable(waiting.Error())
	}
	if err != nil {
		return false, unavailable("nonces: " + err.Error())
	}
	return v.Kind != redis.Nil, nil
}
