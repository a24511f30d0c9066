package algorithm_test

import (
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// call is one evaluation of a case. A wait of 0 is an admission.
type call struct {
	at        time.Duration
	cost      int64
	wait      int64 // ms
	remaining int64
}

// TestCases holds the arithmetic to inputs distilled from reports of people
// who run rate limiters.
func TestCases(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name  string
		limit stint.Limit
		calls []call
	}{
		{"C01: polling faster than a token's interval loses no part of it", stint.TokenBucket{Capacity: 10, Refill: 1, Every: 3 * s}, []call{
			{0, 1, 0, 9}, {1 * s, 1, 0, 8}, {2 * s, 1, 0, 7}, {3 * s, 1, 0, 7}, {4 * s, 1, 0, 6}, {5 * s, 1, 0, 5},
			{6 * s, 1, 0, 5}, {7 * s, 1, 0, 4}, {8 * s, 1, 0, 3}, {9 * s, 1, 0, 3}, {10 * s, 1, 0, 2},
		}},
		{"C02: a limit of one admits, and waits to the millisecond", stint.SlidingCounter{Limit: 1, Window: 10 * s}, []call{
			{1 * s, 1, 0, 0}, {5 * s, 1, 5001, 0}, {10 * s, 1, 1, 0}, {15 * s, 1, 0, 0}, {19_900 * time.Millisecond, 1, 101, 0}, {20 * s, 1, 1, 0},
		}},
		{"C04: the previous window counts until the end of the next", stint.SlidingCounter{Limit: 10, Window: time.Hour}, []call{
			{0, 1, 0, 9}, {3540 * s, 8, 0, 1}, {3660 * s, 1, 0, 1}, {3660 * s, 1, 0, 0}, {3660 * s, 1, 340_001, 0},
		}},
		{"C06: a thousand a minute", stint.TokenBucket{Capacity: 1000, Refill: 1000, Every: 60 * s}, []call{
			{0, 1, 0, 999}, {5 * time.Millisecond, 1, 0, 998}, {10 * time.Millisecond, 1, 0, 997},
		}},
		{"C06: six a millisecond", stint.TokenBucket{Capacity: 6000, Refill: 6000, Every: s}, []call{
			{0, 3000, 0, 3000}, {0, 3000, 0, 0}, {0, 3000, 1000, 0},
		}},
		{"C07: a month of idleness fills a huge bucket", stint.TokenBucket{Capacity: 980_000_000, Refill: 980_000_000, Every: 10 * s}, []call{
			{0, 980_000_000, 0, 0}, {30 * 24 * time.Hour, 1, 0, 979_999_999},
		}},
		{"C07: ten years of idleness fill a bucket of one", stint.TokenBucket{Capacity: 1, Refill: 1, Every: s}, []call{
			{0, 1, 0, 0}, {10 * 365 * 24 * time.Hour, 1, 0, 0},
		}},
		{"C10: two thousand in a second are exactly that", stint.FixedWindow{Limit: 2000, Window: s}, []call{
			{0, 2000, 0, 0}, {0, 1, 1000, 0}, {s, 2000, 0, 0},
		}},
		{"C10: a million a millisecond limits", stint.TokenBucket{Capacity: 1, Refill: 1_000_001, Every: time.Millisecond}, []call{
			{0, 1, 0, 0}, {0, 1, 1, 0}, {time.Millisecond, 1, 0, 0},
		}},
		{"C17: an older instant refills nothing", stint.TokenBucket{Capacity: 4, Refill: 2, Every: s}, []call{
			{10 * s, 1, 0, 3}, {10 * s, 1, 0, 2}, {10 * s, 1, 0, 1}, {10 * s, 1, 0, 0}, {10 * s, 1, 1000, 0},
			{0, 1, 1000, 0}, {10 * s, 1, 1000, 0}, {10 * s, 1, 1000, 0}, {11 * s, 3, 1000, 2}, {11 * s, 2, 0, 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := counter{terms: terms(t, c.limit)}
			for i, want := range c.calls {
				wait, remaining := k.take(t, day+ms(want.at), want.cost)
				if wait != want.wait || remaining != want.remaining {
					t.Errorf("call %d at %v: got wait %d and %d left, want %d and %d", i+1, want.at, wait, remaining, want.wait, want.remaining)
				}
			}
		})
	}
}

// TestRefillsByWholePeriods is case C01 b: a call every 100ms.
func TestRefillsByWholePeriods(t *testing.T) {
	k := counter{terms: terms(t, stint.TokenBucket{Capacity: 3, Refill: 3, Every: time.Second})}
	for i := range int64(100) {
		wait, _ := k.take(t, day+i*100, 1)
		if got, want := wait == 0, i%10 < 3; got != want {
			t.Errorf("at %dms: allowed=%v, want %v", i*100, got, want)
		}
	}
}

// TestCarryIsPartOfRemaining is case C02 a: the carry at +66s is 45.
func TestCarryIsPartOfRemaining(t *testing.T) {
	k := counter{terms: terms(t, stint.SlidingCounter{Limit: 100, Window: 60 * time.Second})}
	for range 50 {
		k.take(t, day, 1)
	}
	if wait, remaining := k.take(t, day+66_000, 10); wait != 0 || remaining != 45 {
		t.Errorf("a cost of 10: wait %d, %d left, want 0 and 45", wait, remaining)
	}
	admitted := 0
	for range 50 {
		if wait, _ := k.take(t, day+66_000, 1); wait == 0 {
			admitted++
		}
	}
	if admitted != 45 {
		t.Errorf("%d of 50 admitted, want 45", admitted)
	}
}

// TestSlidingIsKeptForTwoWindows is what a store's expiry rests on (case C04).
func TestSlidingIsKeptForTwoWindows(t *testing.T) {
	term := terms(t, stint.SlidingCounter{Limit: 10, Window: time.Hour})
	now := day + 3540_000
	if got, want := algorithm.ForgetAt(term, algorithm.State{Spent: 9}, now), now+3_660_000; got != want {
		t.Errorf("may be forgotten after %d ms, want %d", got-now, want-now)
	}
}

// TestDenialsLockNobodyOut is case C14: 150 a minute against 100.
func TestDenialsLockNobodyOut(t *testing.T) {
	k := counter{terms: terms(t, stint.FixedWindow{Limit: 100, Window: time.Minute})}
	for minute := range int64(3) {
		admitted := 0
		for i := range int64(150) {
			if wait, _ := k.take(t, day+minute*60_000+i*400, 1); wait == 0 {
				admitted++
			}
		}
		if admitted != 100 {
			t.Errorf("minute %d: %d admitted, want 100", minute+1, admitted)
		}
	}
}

// TestEditsCarryOver: a state outlives an edit of its limit, both ways.
func TestEditsCarryOver(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after stint.Limit
		cost          int64
		remaining     int64
		wait          int64 // of a cost of one, ms
	}{
		{"C14: a raised window", stint.FixedWindow{Limit: 10, Window: time.Hour}, stint.FixedWindow{Limit: 20, Window: time.Hour}, 10, 10, 0},
		{"a lowered window", stint.FixedWindow{Limit: 100, Window: time.Hour}, stint.FixedWindow{Limit: 50, Window: time.Hour}, 90, 0, 3_600_000},
		{"a raised counter", stint.SlidingCounter{Limit: 10, Window: time.Hour}, stint.SlidingCounter{Limit: 20, Window: time.Hour}, 10, 10, 0},
		{"a lowered counter", stint.SlidingCounter{Limit: 100, Window: time.Hour}, stint.SlidingCounter{Limit: 50, Window: time.Hour}, 90, 0, 3_600_000 + 1_600_001},
		{"a raised bucket", stint.TokenBucket{Capacity: 10, Refill: 1, Every: time.Hour}, stint.TokenBucket{Capacity: 20, Refill: 1, Every: time.Hour}, 10, 10, 0},
		{"a lowered bucket lacks its capacity at most", stint.TokenBucket{Capacity: 100, Refill: 1, Every: time.Hour}, stint.TokenBucket{Capacity: 50, Refill: 1, Every: time.Hour}, 90, 0, 3_600_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := counter{terms: terms(t, c.before)}
			k.take(t, day, c.cost)
			k.terms = terms(t, c.after)
			s := k.advanced(t, day)
			if got := algorithm.Remaining(k.terms, s, day); got != c.remaining {
				t.Errorf("%d left, want %d", got, c.remaining)
			}
			wait := max(0, algorithm.Wait(k.terms, s, day, 1)-day)
			if wait != c.wait {
				t.Errorf("a cost of one waits %d ms, want %d", wait, c.wait)
			}
		})
	}
}

// TestDamagedStates: what no admission wrote is told apart.
func TestDamagedStates(t *testing.T) {
	window := terms(t, stint.FixedWindow{Limit: 5, Window: time.Second})
	sliding := terms(t, stint.SlidingCounter{Limit: 5, Window: time.Second})
	bucket := terms(t, stint.TokenBucket{Capacity: 5, Refill: 1, Every: time.Second})
	for _, c := range []struct {
		name  string
		terms *stint.Terms
		state algorithm.State
	}{
		{"less than nothing spent", window, algorithm.State{Spent: -1}},
		{"more spent than a number holds", window, algorithm.State{Spent: stint.MaxInteger + 1}},
		{"a negative previous window", sliding, algorithm.State{Extra: -1}},
		{"a count whose product leaves 2^53", sliding, algorithm.State{Extra: stint.MaxInteger / 1000}},
		{"a refill after the write", bucket, algorithm.State{Spent: 1, Extra: day + 1}},
		{"a refill before the epoch", bucket, algorithm.State{Spent: 1, Extra: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s, ok := algorithm.Advance(c.terms, c.state, day, day+10); ok {
				t.Errorf("%+v is taken for sound: %+v", c.state, s)
			}
		})
	}
}
