package chaos

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintlimit/stint"
)

// The bound of a bucket, checked in one pass, is that of every interval.
func TestTheRefillBoundIsThatOfEveryInterval(t *testing.T) {
	terms := stint.Terms{Algorithm: stint.AlgorithmTokenBucket, Quota: 10, Period: 7, Refill: 3}
	broken := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var list []admission
		for range 1 + rng.IntN(12) {
			list = append(list, admission{at: 1000 + rng.Int64N(40), cost: 1 + rng.Int64N(4)})
		}
		list = byInstant(list)
		eras := 1 + rng.Int64N(2)
		c := &check{}
		c.refillBound("counter", "limit", list, terms, eras)
		got, want := len(c.report.Violations) > 0, overflows(list, terms, eras)
		if got != want {
			t.Fatalf("seed %d: broken %v, want %v: %v", seed, got, want, list)
		}
		if want {
			broken++
		}
	}
	if broken < 300 || broken > 2700 {
		t.Errorf("%d of 3000 lists are over the bound: that tests little", broken)
	}
}

// overflows tries every interval that begins and ends with an admission.
func overflows(list []admission, t stint.Terms, eras int64) bool {
	for i := range list {
		sum := int64(0)
		for j := i; j < len(list); j++ {
			sum += list[j].cost
			periods := (list[j].at - list[i].at + t.Period - 1) / t.Period
			if sum > eras*(t.Quota+t.Refill*periods) {
				return true
			}
		}
	}
	return false
}

func TestErasOfWhatMayHaveBeenOnEitherSideOfALoss(t *testing.T) {
	e := eras{{From: 100, To: 110}, {From: 200, To: 210}}
	for _, c := range []struct {
		from, to int64
		want     span
	}{
		{0, 99, span{0, 0}}, {0, 100, span{0, 1}}, {105, 106, span{0, 1}}, {109, 120, span{0, 1}}, {110, 199, span{1, 1}},
		{50, 250, span{0, 2}}, {210, 220, span{2, 2}},
	} {
		if got := e.of(c.from, c.to); got != c.want {
			t.Errorf("%d to %d: got %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// within finds an excess exactly if no assignment of items to their eras is
// without one: here each era has room for one item.
func TestWithinIsExactForOneEach(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var items []span
		for range 1 + rng.IntN(4) {
			first := rng.IntN(4)
			items = append(items, span{first, first + rng.IntN(3)})
		}
		excess := false
		within(items, func(s span) span { return s }, func(inside []span, eras int64) {
			excess = excess || int64(len(inside)) > eras
		})
		if want := !assignable(items, nil); excess != want {
			t.Fatalf("%v: excess %v, want %v", items, excess, want)
		}
	}
}

func assignable(items []span, taken []int) bool {
	if len(items) == 0 {
		return true
	}
	for era := items[0].first; era <= items[0].last; era++ {
		if !slices.Contains(taken, era) && assignable(items[1:], append(taken, era)) {
			return true
		}
	}
	return false
}
