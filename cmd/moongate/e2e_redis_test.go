package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moongate/moongate/core/redis/redistest"
)

// redisCommand starts a Redis that knows sets, says what is in them, and lets it fail.
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: redis start, redis set NAME [MEMBER...], redis silent|answers|down|up")
	}
	w := worldOf(ts)
	if args[0] == "start" {
		w.redis = &sets{Fake: redistest.NewFake(lender{ts: ts}), members: map[string][]string{}}
		w.redis.Answer(w.redis.answer)
		ts.Setenv("REDIS", w.redis.Address)
		return
	}
	switch {
	case args[0] == "set" && len(args) > 1:
		// Answer takes the fake's lock, under which answer reads
		w.redis.Answer(func([]string) string { return "" })
		w.redis.members[args[1]] = args[2:]
		w.redis.Answer(w.redis.answer)
	case args[0] == "silent":
		w.redis.Silence(true)
	case args[0] == "answers":
		w.redis.Silence(false)
	case args[0] == "down":
		w.redis.Down()
	case args[0] == "up":
		ts.Check(w.redis.Up())
	default:
		ts.Fatalf("redis %s: unknown", args[0])
	}
}

// sets is a Redis with sets.
type sets struct {
	*redistest.Fake
	members map[string][]string
}

func (s *sets) answer(args []string) string {
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

// lender lends a script what helpers of tests ask for.
type lender struct {
	testing.TB
	ts *testscript.TestScript
}

func (l lender) Helper()            {}
func (l lender) Fatal(args ...any)  { l.ts.Fatalf("%s", fmt.Sprint(args...)) }
func (l lender) Cleanup(end func()) { l.ts.Defer(end) }
