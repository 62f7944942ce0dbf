package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/bits"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Options say where Redis is and how it is asked. Equal options mean the same connection.
type Options struct {
	// Addresses are host:port or unix:/path: one server, some servers of a Cluster, or the Sentinels.
	Addresses []string
	// Sentinel is the name of the master that the Sentinels at Addresses watch; "" for none.
	Sentinel string
	// Cluster says that Addresses are of a Redis Cluster.
	Cluster bool

	User, Password                 string // of an ACL user, or a password alone
	SentinelUser, SentinelPassword string
	Database                       int // not in a Cluster

	// Timeout bounds one call, connecting included; 0 means DefaultTimeout.
	Timeout time.Duration
	// Connections to one server, rounded down to a power of two, at most 256; 0 means DefaultConnections.
	Connections int

	TLS TLSOptions
}

// Defaults of Options.
const (
	DefaultTimeout     = 100 * time.Millisecond
	DefaultConnections = 1
)

// TLSOptions say how TLS is spoken. The zero value is none.
type TLSOptions struct {
	On         bool
	CA         string // authorities that vouch for the servers, PEM; "": the system's
	Cert, Key  string // the gateway's own certificate with its key, PEM; "": none
	ServerName string // name that a certificate must have; "": the host of the address
	Insecure   bool   // certificates are not verified
}

// Equal tells whether both mean the same connection.
func (o Options) Equal(other Options) bool { return reflect.DeepEqual(o.complete(), other.complete()) }

func (o Options) complete() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	o.Connections = min(o.Connections, 1<<rueidis.MaxPipelineMultiplex)
	o.Addresses = slices.Clone(o.Addresses)
	return o
}

// gather is how long a connection gathers commands once it writes more often than that; whoever is alone is sent at once. It is what makes a
// write carry several takes when there are more than 10,000 a second (BenchmarkE2ETakeInRedis).
const gather = 100 * time.Microsecond

// buffer is the size of each connection's two buffers.
const buffer = 32 << 10

// driver turns complete options into the driver's.
func (o *Options) driver() (rueidis.ClientOption, error) {
	if len(o.Addresses) == 0 {
		return rueidis.ClientOption{}, &OptionError{"address", errors.New("there is none")}
	}
	secure, err := o.TLS.config()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	wait := max(patience, o.Timeout)
	multiplex := bits.Len(uint(o.Connections)) - 1
	if multiplex == 0 {
		multiplex = -1 // 0 is the driver's default
	}
	d := rueidis.ClientOption{
		InitAddress: o.Addresses, Username: o.User, Password: o.Password, SelectDB: o.Database, ClientName: "moongate", ClientSetInfo: rueidis.DisableClientSetInfo,
		TLSConfig: secure, DialCtxFn: dial, ForceSingleClient: !o.Cluster && o.Sentinel == "",
		// The driver asks a silent connection for a sign of life after KeepAlive and gives it ConnWriteTimeout.
		Dialer: net.Dialer{Timeout: wait, KeepAlive: time.Second}, ConnWriteTimeout: wait,
		PipelineMultiplex: multiplex, BlockingPoolSize: o.Connections, ReadBufferEachConn: buffer, WriteBufferEachConn: buffer,
		// Without AlwaysPipelining a connection that has always had one call at a time lets the first of a burst have its answer before the
		// others are sent, and ends with that call when its time is up.
		DisableCache: true, DisableRetry: true, AlwaysPipelining: true, MaxFlushDelay: gather,
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: 15 * time.Second, MaxMovedRedirections: 5},
	}
	if o.Sentinel != "" {
		d.Sentinel = rueidis.SentinelOption{MasterSet: o.Sentinel, Username: o.SentinelUser, Password: o.SentinelPassword, Dialer: d.Dialer, TLSConfig: secure,
			TopologyRefreshInterval: 5 * time.Second}
	}
	return d, nil
}

// dial connects to host:port or unix:/path.
func dial(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	if secure != nil {
		return (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, network, address)
	}
	return d.DialContext(ctx, network, address)
}

func (o *TLSOptions) config() (*tls.Config, error) {
	if !o.On {
		return nil, nil
	}
	c := &tls.Config{ServerName: o.ServerName, InsecureSkipVerify: o.Insecure}
	if o.CA != "" {
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, &OptionError{"tls.ca", errors.New("holds no certificate in PEM")}
		}
	}
	if o.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
		if err != nil {
			return nil, &OptionError{"tls.cert", err}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
