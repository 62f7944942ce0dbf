package conf

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// Redis is a named Redis that limiters and scripts use by its name.
type Redis struct {
	Pos       Pos
	Name      string
	Addresses []string `key:"address"` // host:port or unix:/path: one server, servers of a Cluster, or Sentinels
	Cluster   bool
	Sentinel  string // name of the master that the Sentinels watch; "": none

	User             string
	Password         Secret
	SentinelUser     string
	SentinelPassword Secret
	Database         int

	Timeout     time.Duration // of one call, connecting included
	Connections int           // to one server
	TLS         RedisTLS      `key:"tls"`
}

// RedisTLS says how TLS is spoken to a Redis.
type RedisTLS struct {
	Pos        Pos
	On         bool   `key:"enabled"` // there is a [redis.NAME.tls] that does not say otherwise
	CA         File   `key:"ca"`      // who signs the servers' certificates; none: the system's list
	Cert       File   // the gateway's own
	Key        File   // its private key
	ServerName string // the name that the certificates must have; "": the address's host
	Insecure   bool   // certificates are not verified
}

// Equal tells whether two say the same, wherever they stand, and the files hold the same.
func (r *Redis) Equal(other *Redis) bool { return same(r, other) }

func (r *Redis) name() string { return r.Name }

// Redis returns the Redis of a name; nil when there is none.
func (c *Config) Redis(name string) *Redis { return find(c.Redises, name, (*Redis).name) }

func defaultRedis() Redis { return Redis{Timeout: 100 * time.Millisecond, Connections: 1} }

// maxRedisConnections is what can be held to one server.
const maxRedisConnections = 256

var redisSection = section[Redis]{
	words("address", func(r *Redis) *[]string { return &r.Addresses }, redisAddress),
	boolean("cluster", func(r *Redis) *bool { return &r.Cluster }),
	text("sentinel", func(r *Redis) *string { return &r.Sentinel }, notEmpty),
	text("user", func(r *Redis) *string { return &r.User }),
	secret("password", func(r *Redis) *Secret { return &r.Password }),
	text("sentinel_user", func(r *Redis) *string { return &r.SentinelUser }),
	secret("sentinel_password", func(r *Redis) *Secret { return &r.SentinelPassword }),
	integer("database", func(r *Redis) *int { return &r.Database }, 0, 65535),
	duration("timeout", func(r *Redis) *time.Duration { return &r.Timeout }, shortest, time.Minute),
	integer("connections", func(r *Redis) *int { return &r.Connections }, 1, maxRedisConnections),
	sub("tls", redisTLSSection, func(r *Redis, p Pos) *RedisTLS { r.TLS.Pos, r.TLS.On = p, true; return &r.TLS }),
}

var redisTLSSection = section[RedisTLS]{
	boolean("enabled", func(t *RedisTLS) *bool { return &t.On }),
	file("ca", func(t *RedisTLS) *File { return &t.CA }),
	file("cert", func(t *RedisTLS) *File { return &t.Cert }),
	file("key", func(t *RedisTLS) *File { return &t.Key }),
	text("server_name", func(t *RedisTLS) *string { return &t.ServerName }, certificateName),
	boolean("insecure", func(t *RedisTLS) *bool { return &t.Insecure }),
}

// bindRedis reads [redis.NAME].
func (b *binder) bindRedis(key string, v Value, c *Config) {
	b.named(key, v, func(path, name string, t *Table) {
		r := defaultRedis()
		r.Pos, r.Name = t.Pos, name
		redisSection.bind(b, path, t, &r)
		b.checkRedis(path, &r)
		c.Redises = append(c.Redises, r)
	})
}

// checkRedis holds the settings of one Redis against each other.
func (b *binder) checkRedis(path string, r *Redis) {
	at := func(key string) Pos { return b.where(path+"."+key, r.Pos) }
	switch {
	case !b.written(path + ".address"):
		b.errs.Add(r.Pos, path, `has no address: write address = "127.0.0.1:6379"`)
	case len(r.Addresses) == 0 && !b.faulty(path+".address"):
		b.errs.Add(at("address"), path+".address", `is empty: write at least one, such as "127.0.0.1:6379"`)
	case len(r.Addresses) > 1 && !r.Cluster && r.Sentinel == "":
		b.errs.Add(at("address"), path+".address", `several addresses are for cluster = true or for sentinel = "NAME OF THE MASTER"`)
	}
	if r.Cluster && r.Sentinel != "" {
		b.errs.Add(at("sentinel"), path+".sentinel", "stands beside cluster = true: take one of the two away")
	}
	if r.Cluster && r.Database != 0 {
		b.errs.Add(at("database"), path+".database", "a Cluster has no databases but 0")
	}
	if r.User != "" && r.Password == "" {
		b.errs.Add(at("user"), path+".user", "needs its password")
	}
	for _, key := range []string{"sentinel_user", "sentinel_password"} {
		if b.written(path+"."+key) && r.Sentinel == "" {
			b.errs.Add(at(key), path+"."+key, `counts for nothing without sentinel = "NAME OF THE MASTER"`)
		}
	}
	tls := path + ".tls"
	switch {
	case b.written(tls+".cert") && !b.written(tls+".key"):
		b.errs.Add(b.pos[tls+".cert"], tls+".cert", `needs its private key: write key = "client.key"`)
	case b.written(tls+".key") && !b.written(tls+".cert"):
		b.errs.Add(b.pos[tls+".key"], tls+".key", `needs its certificate: write cert = "client.crt"`)
	}
	if r.TLS.On && r.TLS.Insecure {
		b.warn.Add(b.pos[tls+".insecure"], tls+".insecure", "anybody between here and Redis can read and change everything")
	}
}

// redisAddress checks "host:port" or "unix:/path".
func redisAddress(text string) string {
	if isUnix(text) {
		return unixSocket(text)
	}
	if _, port, err := net.SplitHostPort(text); err != nil || port == "" || authority(strings.ToLower(text)) == "" {
		return fmt.Sprintf(`%q is no address: write "host:port", such as "127.0.0.1:6379", or "unix:/path"`, hideUser(text))
	}
	return ""
}
