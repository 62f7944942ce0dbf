package balance

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moongate/moongate/core"
)

func endpoints(weights ...int) []*core.Endpoint {
	list := make([]*core.Endpoint, len(weights))
	for i, w := range weights {
		list[i] = &core.Endpoint{Address: string(rune('a' + i)), Weight: w, Index: i}
	}
	return list
}

func loads(n int) []*Load {
	list := make([]*Load, n)
	for i := range list {
		list[i] = new(Load)
	}
	return list
}

func picks(t *testing.T, kind string, list []*core.Endpoint, n int) string {
	t.Helper()
	b, err := New(kind, loads(len(list)))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for range n {
		got.WriteString(b.Pick(list, "").Address)
	}
	return got.String()
}

func TestPicksFollowTheAlgorithm(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		weights    []int
		want       string
	}{
		{"round robin takes turns", "round_robin", []int{1, 1, 1}, "abcabca"},
		{"nothing named is round robin", "", []int{1, 1}, "abab"},
		{"3:1 is smooth", "smooth_weighted", []int{3, 1}, "aabaaaba"},
		{"5:1:1 is nginx's order", "smooth_weighted", []int{5, 1, 1}, "aabacaaaabacaa"},
		{"equal weights take turns", "smooth_weighted", []int{1, 1, 1}, "abcabcabcabc"},
		{"without a key hashing takes turns", "consistent_hash", []int{1, 1, 1}, "abcabcabc"},
		{"by weight", "consistent_hash", []int{3, 1}, "aabaaaba"},
		{"one endpoint takes all", "smooth_weighted", []int{7}, "aaa"},
		{"as few requests everywhere take turns", "least_conn", []int{1, 1, 1}, "abcabc"},
		{"and by weight", "least_conn", []int{5, 1, 1}, "aabacaaaabacaa"},
		{"one endpoint has no better", "p2c_ewma", []int{7}, "aaa"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := picks(t, c.kind, endpoints(c.weights...), len(c.want)); got != c.want {
				t.Errorf("picked %s, want %s", got, c.want)
			}
		})
	}
}

func TestSmoothWeightedLeavesOutWhatIsNotReady(t *testing.T) {
	all := endpoints(5, 1, 1)
	b := NewSmoothWeighted(3)
	for range 3 {
		b.Pick(all, "")
	}
	for range 10 {
		if e := b.Pick(all[1:], ""); e == all[0] {
			t.Fatal("picked an endpoint that was not offered")
		}
	}
	count := map[*core.Endpoint]int{}
	for range 70 {
		count[b.Pick(all, "")]++
	}
	if count[all[0]] != 50 || count[all[1]] != 10 || count[all[2]] != 10 {
		t.Errorf("after its return the split was %d %d %d of 70, want 50 10 10", count[all[0]], count[all[1]], count[all[2]])
	}
}

func TestAKeyGoesToOneEndpointAndMovesOnlyWithIt(t *testing.T) {
	all := endpoints(1, 1, 2)
	b := NewConsistentHash(3)
	first := map[string]*core.Endpoint{}
	count := map[*core.Endpoint]int{}
	for i := range 4000 {
		key := "session-" + strconv.Itoa(i)
		first[key] = b.Pick(all, key)
		count[first[key]]++
	}
	for i, want := range []int{1000, 1000, 2000} {
		if n := count[all[i]]; n < want-150 || n > want+150 { // five standard deviations
			t.Errorf("endpoint %d of weight %d has %d keys of 4000", i, all[i].Weight, n)
		}
	}
	other := NewConsistentHash(3) // another gateway, whose list is in another order
	moved := []*core.Endpoint{{Address: "c", Weight: 2}, {Address: "a", Weight: 1, Index: 1}, {Address: "b", Weight: 1, Index: 2}}
	for key, e := range first {
		if again := b.Pick(all, key); again != e {
			t.Fatalf("%s went to %s and then to %s", key, e.Address, again.Address)
		}
		if there := other.Pick(moved, key); there.Address != e.Address {
			t.Fatalf("%s goes to %s here and to %s there", key, e.Address, there.Address)
		}
		without := b.Pick(all[1:], key)
		if e != all[0] && without != e {
			t.Fatalf("%s moved from %s to %s though its endpoint stayed", key, e.Address, without.Address)
		}
	}
}

func TestRandomReachesEveryEndpoint(t *testing.T) {
	got := picks(t, "random", endpoints(1, 1, 1), 300)
	for _, e := range "abc" {
		if n := strings.Count(got, string(e)); n < 50 {
			t.Errorf("%c was picked %d times of 300", e, n)
		}
	}
}

func TestPicksAreExactUnderConcurrency(t *testing.T) {
	for _, kind := range []string{"round_robin", "smooth_weighted"} {
		list := endpoints(1, 1, 1, 1)
		b, _ := New(kind, loads(len(list)))
		counts := make([][4]int, 8)
		var wg sync.WaitGroup
		for g := range counts {
			wg.Go(func() {
				for range 1000 {
					counts[g][b.Pick(list, "").Index]++
				}
			})
		}
		wg.Wait()
		for i := range 4 {
			sum := 0
			for g := range counts {
				sum += counts[g][i]
			}
			if sum != 2000 {
				t.Errorf("%s gave endpoint %d %d of 8000", kind, i, sum)
			}
		}
	}
}

func TestAnUnknownBalancerIsNamedWithThoseThatExist(t *testing.T) {
	_, err := New("least_wrong", loads(1))
	if err == nil || !strings.Contains(err.Error(), "least_wrong") || !strings.Contains(err.Error(), "smooth_weighted") {
		t.Errorf("error is %v", err)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, kind := range []string{"least_conn", "p2c_ewma"} {
		for _, n := range []int{3, 30} {
			b.Run(kind+"/"+strconv.Itoa(n), func(b *testing.B) {
				list, carried := endpoints(make([]int, n)...), loads(n)
				for i, e := range list {
					e.Weight = 1
					carried[i].Answered(time.Duration(i+1)*time.Millisecond, core.Now())
				}
				bal, _ := New(kind, carried)
				b.ReportAllocs()
				for b.Loop() {
					l := carried[bal.(Metered).Take(list, "").Index]
					l.Answered(time.Millisecond, core.Now())
					l.Leave()
				}
			})
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, kind := range Names() {
		b.Run(kind, func(b *testing.B) {
			list := endpoints(3, 1, 1)
			bal, _ := New(kind, loads(3))
			for b.Loop() {
				bal.Pick(list, "")
			}
		})
	}
}
