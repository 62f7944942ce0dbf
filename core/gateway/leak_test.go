package gateway_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestReloadsLeaveNothingBehind reloads the same file a hundred times, then a changed one a hundred times, with requests between.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	url, heads := recorder(t, ok)
	text := func(n int) string { return route(url) + fmt.Sprintf("priority = %d\n", n) }
	h := open(t, text(0))
	use := func() {
		h.raw("GET / HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n")
		<-heads
	}
	round := func(changed bool) {
		for i := range 100 {
			if changed {
				h.write(text(i))
			}
			if _, err := h.Reload(); err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				use()
			}
		}
	}
	round(true)
	goroutines, files, heap := held(t)
	round(false)
	round(true)
	var g, f int
	var b uint64
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // what the last reload replaced goes a moment later
		if g, f, b = held(t); g <= goroutines+2 && f <= files+2 && b <= heap+heap/10+1<<20 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("before: %d goroutines, %d descriptors, %d bytes; after 200 reloads: %d, %d, %d", goroutines, files, heap, g, f, b)
		}
	}
}

// held tells what the process holds once nothing is under way.
func held(t *testing.T) (goroutines, files int, heap uint64) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		files = len(list)
	}
	return runtime.NumGoroutine(), files, m.HeapAlloc
}
