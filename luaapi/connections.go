package luaapi

import (
	"errors"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/redis"
)

// declareRedis makes the clients of [redis.NAME]. They connect when the pipeline goes live.
func (b *builder) declareRedis() {
	for i := range b.o.Config.Redises {
		r := &b.o.Config.Redises[i]
		if _, err := b.world.redis.Declare(r.Name, redisOptions(r)); err != nil {
			b.redisFault(r, err)
		}
	}
}

func redisOptions(r *conf.Redis) redis.Options {
	return redis.Options{
		Addresses: r.Addresses, Sentinel: r.Sentinel, Cluster: r.Cluster, User: r.User, Password: string(r.Password), SentinelUser: r.SentinelUser,
		SentinelPassword: string(r.SentinelPassword), Database: r.Database, Timeout: r.Timeout, Connections: r.Connections,
		TLS: redis.TLSOptions{On: r.TLS.On, CA: string(r.TLS.CA.Text), Cert: string(r.TLS.Cert.Text), Key: string(r.TLS.Key.Text),
			ServerName: r.TLS.ServerName, Insecure: r.TLS.Insecure},
	}
}

// redisFault notes what is wrong with a client, at the file that says so.
func (b *builder) redisFault(r *conf.Redis, err error) {
	key := "redis." + r.Name
	fault, ok := errors.AsType[*redis.OptionError](err)
	if !ok {
		b.errs.Add(r.Pos, key, "%s", err)
		return
	}
	files := map[string]conf.File{"tls.ca": r.TLS.CA, "tls.cert": r.TLS.Cert}
	if f := files[fault.Option]; f.Path != "" {
		b.errs.Add(f.Pos, key+"."+fault.Option, "%s: %s", f.Path, fault.Err)
		return
	}
	b.errs.Add(r.Pos, key+"."+fault.Option, "%s", fault.Err)
}
