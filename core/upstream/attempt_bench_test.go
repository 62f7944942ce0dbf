package upstream_test

import (
	"testing"

	"github.com/moongate/moongate/core/upstream"
)

// BenchmarkTry is what the choice of an endpoint and the verdict on it cost a request.
func BenchmarkTry(b *testing.B) {
	for _, kind := range []string{"round_robin", "smooth_weighted"} {
		b.Run(kind, func(b *testing.B) {
			o := options(urlA, urlB, urlC)
			o.Balance = kind
			u, err := upstream.New(o, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				a, err := u.Begin("", nil)
				if err != nil {
					b.Fatal(err)
				}
				a.Succeeded()
			}
		})
	}
}
