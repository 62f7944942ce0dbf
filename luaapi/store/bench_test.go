package store_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/moongate/moongate/luaapi/store"
)

func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = "user:" + strconv.Itoa(i)
	}
	return list
}

func benchmarkKeys(b *testing.B, n int, do func(s *store.Store, key string)) {
	s := store.New(store.Options{Capacity: 1 << 30})
	all := keys(n)
	for _, key := range all {
		set(b, s, key, lua.LNumber(1), time.Hour)
	}
	var seed atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := int(seed.Add(1)) * 7919
		for pb.Next() {
			i++
			do(s, all[i%n])
		}
	})
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			benchmarkKeys(b, n, func(s *store.Store, key string) { _, _ = s.Get(key) })
		})
	}
}

func BenchmarkIncr(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			benchmarkKeys(b, n, func(s *store.Store, key string) { _, _ = s.Incr(key, 1, 0) })
		})
	}
}

func BenchmarkSet(b *testing.B) {
	value := lua.LValue(lua.LString("0123456789abcdef"))
	benchmarkKeys(b, 1000, func(s *store.Store, key string) { _ = s.Set(key, value, time.Minute) })
}

func BenchmarkSetInAFullStore(b *testing.B) {
	s := store.New(store.Options{Capacity: store.MinCapacity})
	all := keys(100_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = s.Set(all[i%len(all)], lua.LTrue, time.Minute)
	}
}

func BenchmarkPushAndPop(b *testing.B) {
	benchmarkKeys(b, 1000, func(s *store.Store, key string) {
		_, _ = s.Push("list:"+key[5:], lua.LTrue, store.Back)
		_, _ = s.Pop("list:"+key[5:], store.Front)
	})
}
