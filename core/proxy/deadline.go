package proxy

import (
	"time"

	"github.com/moongate/moongate/core"
)

// deadline is when a call of gRPC is over by what the client says, 0 when it does not say. It bounds the whole answer and lengthens nothing.
func deadline(x *core.Exchange) core.Instant {
	if !x.Request.IsGRPC() {
		return 0
	}
	d, ok := grpcTimeout(x.Request.Header.Get("grpc-timeout"))
	if !ok {
		return 0
	}
	return x.Times.Start.Add(d)
}

// longest is a time that no exchange takes; what is beyond it is no limit.
const longest = 365 * 24 * time.Hour

// grpcTimeout reads at most eight digits and a unit, as gRPC's protocol over HTTP/2 writes them.
func grpcTimeout(b []byte) (time.Duration, bool) {
	if len(b) < 2 || len(b) > 9 {
		return 0, false
	}
	n := time.Duration(0)
	for _, c := range b[:len(b)-1] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + time.Duration(c-'0')
	}
	unit := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond,
		'n': time.Nanosecond}[b[len(b)-1]]
	if unit == 0 || n > longest/unit {
		return 0, false
	}
	return n * unit, true
}
