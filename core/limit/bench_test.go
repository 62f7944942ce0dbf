package limit_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/moongate/moongate/core/limit"
)

func BenchmarkTakeHotKey(b *testing.B) {
	l := bucket(b, limit.Options{Rate: rate(1000000, time.Second), Burst: 1 << 30})
	b.ReportAllocs()
	for b.Loop() {
		l.Take("203.0.113.7", 1)
	}
}

func BenchmarkTakeHotKeyRefused(b *testing.B) {
	l := bucket(b, limit.Options{Rate: rate(1, time.Hour), Burst: 1})
	b.ReportAllocs()
	for b.Loop() {
		l.Take("203.0.113.7", 1)
	}
}

func BenchmarkTakeHotKeyParallel(b *testing.B) {
	l := bucket(b, limit.Options{Rate: rate(1000000, time.Second), Burst: 1 << 30})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			l.Take("203.0.113.7", 1)
		}
	})
}

func BenchmarkTakeMillionKeys(b *testing.B) {
	const n = 1 << 20
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	l := bucket(b, limit.Options{Rate: rate(1, time.Hour), Burst: 1000, Ceiling: 2 * n})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, key := range keys {
		l.Take(key, 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ { // in order: a request's key has just been read, its bucket lies anywhere
		l.Take(keys[i%n], 1)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/key")
}

// BenchmarkReadMillionLines is what memory itself takes: one number out of 32 MiB, anywhere, each read after the one before.
func BenchmarkReadMillionLines(b *testing.B) {
	memory := make([]uint64, 4<<20)
	for i := range memory {
		memory[i] = uint64(i) &^ 1
	}
	at, sum := uint64(1), uint64(0)
	for b.Loop() {
		at = at*6364136223846793005 + 1442695040888963407 + sum&1 // sum is even: it is only waited for
		sum += memory[at>>42]
	}
}
