package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/moongate/moongate/core"
)

// exchange is one that has come to its end.
func exchange(path string) *core.Exchange {
	x := new(core.Exchange)
	x.NewIDs()
	x.Request.Method, x.Request.Path = "GET", []byte(path)
	x.Response.Status, x.Response.Source = 200, core.FromUpstream
	x.Times.Start = core.Now()
	x.Times.Done = x.Times.Start.Add(1500 * time.Microsecond)
	return x
}

func TestTheAccessLineHasWhatIsKnown(t *testing.T) {
	x := exchange("/a")
	x.Route = &core.Route{Name: "r"}
	x.Upstream, x.User = "up", "alice"
	x.Endpoint = &core.Endpoint{Scheme: "http", Authority: "h:1"}
	x.Request.ClientIP = netip.MustParseAddr("10.0.0.1")
	x.Times.Filtered, x.Times.Connected, x.Times.Sent, x.Times.FirstByte = x.Times.Start.Add(time.Microsecond), x.Times.Start.Add(10*time.Microsecond), x.Times.Start.Add(100*time.Microsecond), x.Times.Start.Add(time.Millisecond)
	x.Response.BodySent = 7
	var line map[string]any
	if err := json.Unmarshal(appendLine(nil, new(second), x, []byte(`,"extra":[1]`)), &line); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339, line["time"].(string)); err != nil {
		t.Error(err)
	}
	delete(line, "time")
	want := map[string]any{"request_id": string(x.RequestID), "trace_id": string(x.TraceID), "method": "GET", "path": "/a", "protocol": "HTTP/1.1", "route": "r", "upstream": "up", "endpoint": "h:1",
		"status": 200.0, "source": "upstream", "bytes_in": 0.0, "bytes_out": 7.0, "client_ip": "10.0.0.1", "user": "alice", "extra": []any{1.0},
		"ms": map[string]any{"filters": 0.001, "connected": 0.01, "sent": 0.1, "first_byte": 1.0, "last_byte": 1.5}}
	if fmt.Sprint(line) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", line, want)
	}
}

func TestAccessLinesHaveTheMillisecondThatTheyBeganIn(t *testing.T) {
	var s second
	at := time.Date(2026, 2, 28, 23, 59, 58, 999_999_999, time.UTC)
	for range 400 {
		if got, want := string(s.append(nil, at)), at.Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		at = at.Add(7 * time.Millisecond)
	}
	if got := string(s.append(nil, at.Add(-2*time.Second))); got != at.Add(-2*time.Second).Format("2006-01-02T15:04:05.000Z") {
		t.Error("a time before the last one:", got)
	}
}

func BenchmarkAccessLine(b *testing.B) {
	x := exchange("/api/user/123")
	var s second
	var line []byte
	for b.Loop() {
		line = appendLine(line[:0], &s, x, nil)
	}
}

func FuzzAccessLinesAreJSON(f *testing.F) {
	for _, seed := range []string{"/", "", "\x00\x1f\x7f\"\\\u2028", "/\xff\xfe", "é\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, path, user, fault string) {
		x := exchange(path)
		x.User, x.Request.Method = user, fault
		x.Err = fmt.Errorf("%s", fault)
		line := appendLine(nil, new(second), x, nil)
		var got struct{ Path, User, Error string }
		if err := json.Unmarshal(line, &got); err != nil || !utf8.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%v: %q", err, line)
		}
		for said, is := range map[string]string{path: got.Path, user: got.User, fault: got.Error} {
			if utf8.ValidString(said) && said != is && path != user && user != fault && path != fault {
				t.Fatalf("%q became %q", said, is)
			}
		}
	})
}

// lines reads a log that is complete.
func lines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("%s has %q", file, line)
		}
		list = append(list, line)
	}
	return list
}

func openLogAt(t *testing.T, where string) *AccessLog {
	t.Helper()
	l, err := OpenAccessLog(where, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestNoLineIsLostOverReopening(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "access.log")
	l := openLogAt(t, file)
	const writers, each = 4, 500
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				l.Write(exchange(fmt.Sprintf("/%d/%d", w, i)), nil)
			}
		})
	}
	moved := 0
	for range 10 {
		if err := os.Rename(file, filepath.Join(dir, fmt.Sprintf("access.log.%d", moved))); err != nil {
			t.Fatal(err)
		}
		moved++
		if err := l.Reopen(file); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Write(exchange("/late"), nil) // after Close: nowhere
	seen := len(lines(t, file))
	for i := range moved {
		seen += len(lines(t, filepath.Join(dir, fmt.Sprintf("access.log.%d", i))))
	}
	if seen+int(l.Dropped()) != writers*each || l.Dropped() != 0 {
		t.Errorf("%d lines and %d dropped of %d", seen, l.Dropped(), writers*each)
	}
}

func TestAFileThatCannotBeOpenedLeavesTheOldOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	l := openLogAt(t, file)
	if err := l.Reopen(filepath.Join(file, "no", "such")); err == nil {
		t.Error("it was opened")
	}
	l.Write(exchange("/"), nil)
	if err := l.Close(); err != nil || len(lines(t, file)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestTheLogIsTurnedOffAndOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.log")
	l := openLogAt(t, "off")
	l.Write(exchange("/off"), nil)
	if err := l.Reopen(file); err != nil {
		t.Fatal(err)
	}
	l.Write(exchange("/on"), nil)
	if err := l.Reopen("off"); err != nil {
		t.Fatal(err)
	}
	l.Write(exchange("/off again"), nil)
	if err := l.Close(); err != nil || l.Close() != nil {
		t.Error(err)
	}
	if got := lines(t, file); len(got) != 1 || !strings.Contains(got[0], `"/on"`) {
		t.Errorf("got %v", got)
	}
}

// stuck is a writer that nobody empties until it is let go.
type stuck struct {
	begun, release chan struct{}
	once           sync.Once
	mu             sync.Mutex
	lines          int
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.release
	s.mu.Lock()
	s.lines += bytes.Count(p, []byte("\n"))
	s.mu.Unlock()
	return len(p), nil
}

func TestAFullLogDropsAndNeverBlocks(t *testing.T) {
	l := openLogAt(t, "off")
	s := &stuck{begun: make(chan struct{}), release: make(chan struct{})}
	l.mu.Lock()
	l.out = s
	l.mu.Unlock()
	l.Write(exchange("/"), nil)
	<-s.begun
	path := "/" + strings.Repeat("x", 10_000)
	const n = 1000
	for range n { // ten million bytes for a buffer of four
		l.Write(exchange(path), nil)
	}
	dropped := int(l.Dropped())
	if dropped == 0 || dropped > n-300 {
		t.Errorf("%d of %d lines were dropped", dropped, n)
	}
	close(s.release)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s.lines != n+1-dropped {
		t.Errorf("%d lines were written, want %d", s.lines, n+1-dropped)
	}
}

// full is a disk with room for so many bytes.
type full struct{ room, wrote int }

func (f *full) Write(p []byte) (int, error) {
	n := min(f.room-f.wrote, len(p))
	f.wrote += n
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func TestLinesThatCannotBeWrittenAreCountedAndTold(t *testing.T) {
	var told bytes.Buffer
	l := &AccessLog{log: slog.New(slog.NewTextHandler(&told, nil))}
	disk := &full{room: 12}
	var written bytes.Buffer
	l.put(disk, []byte("line 1\nline 2\nline 3\n")) // the second is torn
	l.put(disk, []byte("line 4\n"))
	if got := l.Dropped(); got != 3 {
		t.Errorf("%d lines were dropped, want 3", got)
	}
	if got := told.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="access log cannot be written" error="no space left on device"`) {
		t.Errorf("it said\n%s", got)
	}
	told.Reset()
	l.put(&written, []byte("line 5\n")) // there is room again
	l.put(&written, []byte("line 6\n"))
	if written.String() != "\nline 5\nline 6\n" {
		t.Errorf("behind the torn line stands %q", written.String())
	}
	if got := told.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="access log is written again" lost_lines=3`) {
		t.Errorf("it said\n%s", got)
	}
}
