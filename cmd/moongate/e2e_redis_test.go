package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moongate/moongate/core/redis/redistest"
)

// fakeRedisCommand starts a Redis that knows sets, says what is in them, and lets it fail.
func fakeRedisCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fakeredis start, fakeredis set NAME [MEMBER...], fakeredis silent|answers|down|up")
	}
	w := worldOf(ts)
	if args[0] == "start" {
		w.redis = &sets{Fake: redistest.NewFake(w.t), members: map[string][]string{}}
		w.redis.Answer(w.redis.answer)
		ts.Setenv("REDIS", w.redis.Address)
		return
	}
	switch {
	case args[0] == "set" && len(args) > 1:
		w.redis.set(args[1], args[2:])
	case args[0] == "silent":
		w.redis.Silence(true)
	case args[0] == "answers":
		w.redis.Silence(false)
	case args[0] == "down":
		w.redis.Down()
	case args[0] == "up":
		ts.Check(w.redis.Up())
	default:
		ts.Fatalf("fakeredis %s: unknown", args[0])
	}
}

// sets is a Redis with sets.
type sets struct {
	*redistest.Fake
	mu      sync.Mutex
	members map[string][]string
}

func (s *sets) set(name string, members []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[name] = members
}

func (s *sets) answer(args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch strings.ToUpper(args[0]) {
	case "SISMEMBER":
		if slices.Contains(s.members[args[1]], args[2]) {
			return ":1\r\n"
		}
		return ":0\r\n"
	case "SMEMBERS":
		all := s.members[args[1]]
		text := fmt.Sprintf("*%d\r\n", len(all))
		for _, m := range all {
			text += redistest.Bulk(m)
		}
		return text
	}
	return ""
}
