package redis_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

// soon bounds what happens at once on a machine that is not busy.
const soon = 30 * time.Second

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "\n")
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func client(t testing.TB, o redis.Options) (*redis.Client, *lines) {
	t.Helper()
	log := &lines{}
	c, err := redis.New("main", o, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	return c, log
}

func of(f *redistest.Fake) redis.Options {
	return redis.Options{Addresses: []string{f.Address}, Timeout: soon, Connections: 1}
}

func unavailable(err error) bool {
	_, is := errors.AsType[*redis.Unavailable](err)
	return is
}

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	redistest.Until(t, what, done, func() string { return "" })
}

func TestAnswersKeepTheirKind(t *testing.T) {
	f := redistest.NewFake(t)
	answers := map[string]string{"INT": ":42\r\n", "NIL": "$-1\r\n", "OK": "+OK\r\n", "LIST": "*3\r\n:1\r\n$1\r\na\r\n$-1\r\n", "WRONG": "-WRONGTYPE no\r\n"}
	f.Answer(func(args []string) string { return answers[args[0]] })
	c, _ := client(t, of(f))
	tests := []struct {
		command string
		want    redis.Value
	}{
		{"INT", redis.Value{Kind: redis.Int, Int: 42}},
		{"NIL", redis.Value{}},
		{"OK", redis.Value{Kind: redis.Text, Text: "OK"}},
	}
	for _, test := range tests {
		got, err := c.Do(test.command)
		if err != nil || got.Kind != test.want.Kind || got.Int != test.want.Int || got.Text != test.want.Text {
			t.Errorf("%s: %+v, %v", test.command, got, err)
		}
	}
	got, err := c.Do("LIST")
	if err != nil || got.Kind != redis.List || len(got.List) != 3 || got.List[0].Int != 1 || got.List[1].Text != "a" || got.List[2].Kind != redis.Nil {
		t.Errorf("LIST: %+v, %v", got, err)
	}
	_, err = c.Do("WRONG")
	if said, ok := errors.AsType[*redis.ServerError](err); !ok || said.Message != "WRONGTYPE no" {
		t.Errorf("WRONG: %v", err)
	}
	results, err := c.Pipeline([]string{"INT"}, []string{"WRONG"}, []string{"OK"})
	if err != nil || len(results) != 3 || results[0].Value.Int != 42 || results[1].Err == nil || results[2].Value.Text != "OK" {
		t.Errorf("pipeline: %+v, %v", results, err)
	}
}

func TestLateAnswerNeverReachesAnotherCaller(t *testing.T) {
	f := redistest.NewFake(t)
	f.Slow("A", 300*time.Millisecond)
	o := of(f)
	o.Timeout = 50 * time.Millisecond
	c, _ := client(t, o)
	until(t, "B is there", func() bool { _, err := c.Do("GET", "B"); return err == nil })
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			key := "B"
			if i%5 == 0 {
				key = "A"
			}
			if v, err := c.Do("GET", key); err == nil && v.Text != "value of "+key {
				t.Errorf("asked for %s, got %q", key, v.Text)
			}
		})
	}
	callers.Wait()
	until(t, "B is answered again", func() bool {
		v, err := c.Do("GET", "B")
		if err == nil && v.Text != "value of B" {
			t.Fatalf("asked for B, got %q", v.Text)
		}
		return err == nil
	})
	until(t, "one connection is left", func() bool { return f.Conns() == 1 })
}

func TestUnavailableRedisFailsFastAndComesBack(t *testing.T) {
	tests := []struct {
		name        string
		fail, serve func(*redistest.Fake)
	}{
		{"refused", (*redistest.Fake).Down, func(f *redistest.Fake) {
			if err := f.Up(); err != nil {
				panic(err)
			}
		}},
		{"swallowing everything", func(f *redistest.Fake) { f.Silence(true) }, func(f *redistest.Fake) { f.Silence(false) }},
		{"too slow", func(f *redistest.Fake) { f.Delay(soon) }, func(f *redistest.Fake) { f.Delay(0); f.Down(); _ = f.Up() }},
		{"loading", func(f *redistest.Fake) {
			f.Answer(func([]string) string { return "-LOADING Redis is loading the dataset in memory\r\n" })
		}, func(f *redistest.Fake) { f.Answer(nil) }},
		{"a replica", func(f *redistest.Fake) {
			f.Answer(func([]string) string { return "-READONLY You can't write against a read only replica.\r\n" })
		}, func(f *redistest.Fake) { f.Answer(nil) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := redistest.NewFake(t)
			o := of(f)
			o.Timeout = 100 * time.Millisecond
			c, log := client(t, o)
			until(t, "it is there", func() bool { _, err := c.Do("GET", "a"); return err == nil && c.Stats().Up })
			episodes, before := c.Stats().Episodes, log.count()
			test.fail(f)
			var callers sync.WaitGroup
			for range 100 {
				callers.Go(func() {
					for range 5 {
						if _, err := c.Do("GET", "a"); err != nil && !unavailable(err) {
							t.Errorf("got %v", err)
						}
					}
				})
			}
			callers.Wait()
			if c.Stats().Up {
				t.Error("it still counts as available")
			}
			seen := f.Seen()
			for range 1000 {
				if _, err := c.Do("GET", "a"); !unavailable(err) {
					t.Fatalf("got %v", err)
				}
			}
			if now := f.Seen(); now > seen+500 {
				t.Errorf("%d calls were sent to it meanwhile", now-seen)
			}
			test.serve(f)
			until(t, "it is back", func() bool { return c.Stats().Up })
			if v, err := c.Do("GET", "a"); err != nil || v.Text != "value of a" {
				t.Errorf("back, it says %+v, %v", v, err)
			}
			if n := c.Stats().Episodes - episodes; n != uint64(log.count()-before) {
				t.Errorf("%d episodes, and the log says\n%s", n, log)
			}
		})
	}
}

func TestClientStartsWithoutItsRedis(t *testing.T) {
	f := redistest.NewFake(t)
	f.Down()
	c, log := client(t, of(f))
	if _, err := c.Do("GET", "a"); !unavailable(err) {
		t.Errorf("got %v", err)
	}
	if n := log.count(); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, log)
	}
	if err := f.Up(); err != nil {
		t.Fatal(err)
	}
	until(t, "it is there", func() bool { _, err := c.Do("GET", "a"); return err == nil })
}

func TestFirstCallWaitsForTheConnection(t *testing.T) {
	f := redistest.NewFake(t)
	c, _ := client(t, of(f))
	if v, err := c.Do("GET", "a"); err != nil || v.Text != "value of a" {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestManyCallersShareFewConnections(t *testing.T) {
	f := redistest.NewFake(t)
	o := of(f)
	o.Connections = 4
	c, _ := client(t, o)
	var callers sync.WaitGroup
	for range 2000 {
		callers.Go(func() {
			if v, err := c.Do("GET", "k"); err != nil || v.Text != "value of k" {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
	callers.Wait()
	if n := f.Conns(); n > 4 {
		t.Errorf("%d connections, want at most 4", n)
	}
	if n := c.Stats().Pending; n != 0 {
		t.Errorf("%d calls pend", n)
	}
}

func TestCommandsThatOccupyAConnectionAreRefused(t *testing.T) {
	f := redistest.NewFake(t)
	c, _ := client(t, of(f))
	for _, command := range []string{"SUBSCRIBE x", "subscribe x", "MULTI", "BLPOP x 0", "SELECT 3", "XREAD BLOCK 0 STREAMS s 0", "EVAL return", "EVAL s 2 k", "EVAL s -1", ""} {
		_, err := c.Do(strings.Fields(command)...)
		if _, ok := errors.AsType[*redis.CommandError](err); !ok {
			t.Errorf("%q: got %v", command, err)
		}
	}
	if _, err := c.Do(""); err == nil {
		t.Error("an empty name was sent")
	}
	if n := f.Seen(); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

func TestCloseEndsCalls(t *testing.T) {
	f := redistest.NewFake(t)
	c, _ := client(t, of(f))
	if _, err := c.Do("GET", "a"); err != nil {
		t.Fatal(err)
	}
	f.Silence(true)
	failed := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := c.Do("GET", "a")
			failed <- err
		}()
	}
	until(t, "they pend", func() bool { return c.Stats().Pending == 8 })
	c.Close()
	for range 8 {
		if err := <-failed; !unavailable(err) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.Do("GET", "a"); !unavailable(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, test := range []struct {
		o    redis.Options
		want string
	}{
		{redis.Options{}, "address: there is none"},
		{redis.Options{Addresses: []string{"a:1"}, TLS: redis.TLSOptions{On: true, CA: "nothing"}}, "tls.ca: holds no certificate in PEM"},
		{redis.Options{Addresses: []string{"a:1"}, TLS: redis.TLSOptions{On: true, Cert: "nothing"}}, "tls.cert: tls: failed to find any PEM data in certificate input"},
	} {
		if _, err := redis.New("x", test.o, nil); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// TestABurstGoesOutTogether: also on a connection that has had one call at a time until then.
func TestABurstGoesOutTogether(t *testing.T) {
	f := redistest.NewFake(t)
	c, _ := client(t, of(f))
	if _, err := c.Do("GET", "a"); err != nil {
		t.Fatal(err)
	}
	before := f.Seen()
	f.Silence(true)
	var burst sync.WaitGroup
	for range 8 {
		burst.Go(func() { _, _ = c.Do("GET", "b") })
	}
	until(t, "all are sent with no answer there", func() bool { return f.Seen() == before+8 })
	c.Close()
	burst.Wait()
}
