package route_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moongate/moongate/core/route"
)

// TestARuleMissesNothingExactlyWhereItTakesTheRequest holds Misses against a table of the one rule.
func TestARuleMissesNothingExactlyWhereItTakesTheRequest(t *testing.T) {
	taken := 0
	for seed := range uint64(1000) {
		g := generator{rand.New(rand.NewPCG(seed, 11))}
		rule := g.rule()
		rule.Route.Name = "rule"
		table, err := route.New([]route.Rule{rule})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			q := g.request()
			x := q.exchange()
			rt, err := table.Match(x, nil)
			if err != nil {
				t.Fatal(err)
			}
			params := slices.Clone(x.Request.Params)
			missed, err := rule.Misses(x)
			if err != nil {
				t.Fatal(err)
			}
			if (rt != nil) != (len(missed) == 0) {
				t.Fatalf("seed %d, request %+v: %s takes it: %v; it misses %q", seed, *q, spell(&rule), rt != nil, missed)
			}
			if len(params) != len(x.Request.Params) {
				t.Fatalf("seed %d: the parameters are others now", seed)
			}
			if rt != nil {
				taken++
			}
		}
	}
	if taken < 500 {
		t.Errorf("only %d requests were taken: the test shows little", taken)
	}
}
