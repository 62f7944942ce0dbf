package redis_test

import (
	"testing"

	"github.com/moongate/moongate/core/redis"
	"github.com/moongate/moongate/core/redis/redistest"
)

func TestReloadKeepsEqualClientsAndClosesOthers(t *testing.T) {
	f := redistest.NewFake(t)
	r := new(redis.Registry)
	defer r.Close()
	plan := func(options map[string]redis.Options) *redis.Plan {
		t.Helper()
		p := r.Plan(nil)
		for name, o := range options {
			if _, err := p.Declare(name, o); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	first := plan(map[string]redis.Options{"kept": of(f), "changed": of(f), "gone": of(f)})
	if n := f.Conns(); n != 0 {
		t.Errorf("%d connections before the commit", n)
	}
	first.Commit()
	for _, name := range first.Names() {
		if _, err := first.Get(name).Do("PING"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := of(f)
	other.Database = 3
	plan(map[string]redis.Options{"kept": other, "new": other}) // never committed
	second := plan(map[string]redis.Options{"kept": of(f), "changed": other})
	second.Commit()
	if second.Get("kept") != first.Get("kept") || second.Get("changed") == first.Get("changed") {
		t.Error("want the same client for equal options, and another for others")
	}
	until(t, "two connections are left", func() bool {
		_, _ = second.Get("kept").Do("PING")
		_, _ = second.Get("changed").Do("PING")
		return f.Conns() == 2
	})
	if _, err := first.Get("gone").Do("PING"); !unavailable(err) {
		t.Errorf("a client that went: %v", err)
	}
	var names []string
	r.Each(func(c *redis.Client) { names = append(names, c.Name()) })
	if len(names) != 2 || names[0] != "changed" || names[1] != "kept" {
		t.Errorf("running: %v", names)
	}
}
