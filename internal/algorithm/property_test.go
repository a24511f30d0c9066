package algorithm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// limits draws any valid limit: small ones, where edges are dense, and the
// largest, where numbers are.
func limits(t *rapid.T) *stint.Terms {
	period := rapid.SampledFrom([]int64{1, 2, 7, 10, 999, 1000, 60_000, 3_600_000, 86_400_000, stint.MaxDuration.Milliseconds()}).Draw(t, "period")
	every := time.Duration(period) * time.Millisecond
	quantity := func(name string, most int64) int64 {
		return rapid.OneOf(rapid.Int64Range(1, min(most, 12)), rapid.Int64Range(1, most), rapid.Just(most)).Draw(t, name)
	}
	var l stint.Limit
	switch rapid.IntRange(0, 2).Draw(t, "algorithm") {
	case 0:
		l = stint.FixedWindow{Limit: quantity("limit", stint.MaxInteger), Window: every}
	case 1:
		l = stint.SlidingCounter{Limit: quantity("limit", max(1, stint.MaxInteger/period-1)), Window: every}
	default:
		refill := quantity("refill", stint.MaxInteger)
		most := int64(stint.MaxInteger)
		if periods := stint.MaxDuration.Milliseconds() / period; refill <= stint.MaxInteger/periods {
			most = refill * periods
		}
		l = stint.TokenBucket{Capacity: quantity("capacity", most), Refill: refill, Every: every}
	}
	p, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: []stint.Limit{l}})
	if err != nil {
		t.Fatal(err)
	}
	return &p.Terms()[0]
}

// worn draws a counter after some admissions, and an instant not behind them.
func worn(t *rapid.T) (k counter, now int64) {
	k = counter{terms: limits(t)}
	now = rapid.Int64Range(0, day).Draw(t, "start")
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 20), rapid.Int64Range(0, 2*k.terms.Period)).Draw(t, "wait")
		left := algorithm.Remaining(k.terms, k.advanced(t, now), now)
		if left > 0 {
			k.take(t, now, rapid.OneOf(rapid.Int64Range(1, left), rapid.Just(left)).Draw(t, "cost"))
		}
	}
	return k, now
}

// TestWaitsAreExact: after a wait the cost passes, a millisecond earlier not.
func TestWaitsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := worn(t)
		s := k.advanced(t, now)
		exact := func(what string, at, cost int64) {
			if at == 0 {
				return
			}
			if at <= now || at > stint.MaxInteger {
				t.Fatalf("%s: waits until %d at %d", what, at, now)
			}
			if !k.passes(t, at, cost) {
				t.Fatalf("%s: a cost of %d does not pass after %d ms", what, cost, at-now)
			}
			if k.passes(t, at-1, cost) {
				t.Fatalf("%s: a cost of %d passes 1 ms before %d", what, cost, at-now)
			}
		}
		cost := rapid.Int64Range(1, k.terms.Quota).Draw(t, "asked")
		remaining := algorithm.Remaining(k.terms, s, now)
		wait := algorithm.Wait(k.terms, s, now, cost)
		if (wait == 0) != (cost <= remaining) {
			t.Fatalf("a cost of %d of %d left waits until %d", cost, remaining, wait)
		}
		exact("Wait", wait, cost)
		more := algorithm.MoreAt(k.terms, s, now)
		if (more == 0) != (remaining == k.terms.Quota) {
			t.Fatalf("%d of %d left, more at %d", remaining, k.terms.Quota, more)
		}
		exact("MoreAt", more, remaining+1)
		if wait != 0 && more > wait {
			t.Fatalf("more at %d, after the wait until %d", more, wait)
		}
		exact("WholeAt", algorithm.WholeAt(k.terms, s, now), k.terms.Quota)
	})
}

// TestRemainingIsExact: what remains passes, one more does not.
func TestRemainingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := worn(t)
		left := algorithm.Remaining(k.terms, k.advanced(t, now), now)
		if left < 0 || left > k.terms.Quota {
			t.Fatalf("%d of %d left", left, k.terms.Quota)
		}
		if left < k.terms.Quota && k.passes(t, now, left+1) {
			t.Fatalf("one more than %d passes", left)
		}
		if wait, rest := k.take(t, now, left); wait != 0 || rest != 0 {
			t.Fatalf("of %d left, all: wait %d, %d left", left, wait, rest)
		}
	})
}

// TestRecoveredIsFresh: from ForgetAt on a state is as if it never was.
func TestRecoveredIsFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, _ := worn(t)
		if !k.known {
			return
		}
		forget := algorithm.ForgetAt(k.terms, k.state, k.at)
		if forget <= k.at || forget > stint.MaxInteger {
			t.Fatalf("may be forgotten at %d, written at %d", forget, k.at)
		}
		at := forget + rapid.Int64Range(0, k.terms.Period).Draw(t, "later")
		if got, want := k.advanced(t, at), algorithm.Fresh(k.terms, at); got != want {
			t.Fatalf("recovered: %+v, fresh: %+v", got, want)
		}
	})
}

// TestAdvanceInSteps: looking on the way changes nothing, except that a bucket
// that became full starts its periods anew.
func TestAdvanceInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := worn(t)
		between := now + rapid.Int64Range(0, 2*k.terms.Period).Draw(t, "between")
		end := between + rapid.Int64Range(0, 2*k.terms.Period).Draw(t, "end")
		s := k.advanced(t, between)
		stepped, ok := algorithm.Advance(k.terms, s, between, end)
		if direct := k.advanced(t, end); !ok || algorithm.Remaining(k.terms, stepped, end) != algorithm.Remaining(k.terms, direct, end) {
			t.Fatalf("in two steps %+v, in one %+v", stepped, direct)
		}
	})
}

// TestEditsStaySound: whatever a limit was edited to, a state can be advanced,
// and waits stay exact.
func TestEditsStaySound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := worn(t)
		edited := *k.terms
		edited.Quota = rapid.OneOf(rapid.Int64Range(1, k.terms.Quota), rapid.Just(int64(1))).Draw(t, "edited")
		k.terms = &edited
		s := k.advanced(t, now)
		left := algorithm.Remaining(k.terms, s, now)
		cost := rapid.Int64Range(1, edited.Quota).Draw(t, "asked")
		wait := algorithm.Wait(k.terms, s, now, cost)
		if (wait == 0) != (cost <= left) || left < 0 || left > edited.Quota {
			t.Fatalf("%d of %d left, a cost of %d waits until %d", left, edited.Quota, cost, wait)
		}
		if wait != 0 && (wait <= now || !k.passes(t, wait, cost) || k.passes(t, wait-1, cost)) {
			t.Fatalf("a cost of %d: %d is not when it first passes (now %d)", cost, wait, now)
		}
	})
}
