package algorithm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

func TestRefunds(t *testing.T) {
	const most = int64(stint.MaxInteger)
	window := terms(t, stint.FixedWindow{Limit: 10, Window: 100 * time.Millisecond})
	sliding := terms(t, stint.SlidingCounter{Limit: 10, Window: 100 * time.Millisecond})
	bucket := terms(t, stint.TokenBucket{Capacity: 20, Refill: 3, Every: 100 * time.Millisecond})
	wide := terms(t, stint.TokenBucket{Capacity: most, Refill: most - 1, Every: time.Millisecond})
	type state = algorithm.State
	for _, c := range []struct {
		name          string
		terms         *stint.Terms
		state         state
		at, now, cost int64 // instants from day on, ms
		want          state
	}{
		{"a window gives back", window, state{7, 0}, 5, 99, 3, state{4, 0}},
		{"a window that began at the charge", window, state{7, 0}, 0, 99, 3, state{4, 0}},
		{"a window that has passed", window, state{7, 0}, 99, 100, 3, state{7, 0}},
		{"a charge of a later instant", window, state{7, 0}, 51, 50, 3, state{7, 0}},
		{"never below nothing", window, state{2, 0}, 5, 50, 3, state{0, 0}},
		{"a counter gives back of the current window only", sliding, state{7, 5}, 5, 99, 3, state{4, 5}},
		{"a counter's previous window stays", sliding, state{7, 5}, 99, 100, 3, state{7, 5}},
		{"a charge later than the counter", sliding, state{7, 5}, 60, 50, 3, state{7, 5}},
		{"a counter, never below nothing", sliding, state{2, 5}, 5, 50, 3, state{0, 5}},
		{"a bucket before its next refill", bucket, state{12, day}, 40, 99, 8, state{4, day}},
		{"a charge at the last refill", bucket, state{12, day + 100}, 100, 150, 8, state{4, day + 100}},
		{"a charge a moment before the last refill", bucket, state{12, day + 100}, 99, 150, 8, state{7, day + 100}},
		{"two refills count against it", bucket, state{12, day + 200}, 99, 250, 8, state{10, day + 200}},
		{"refilled to the last", bucket, state{12, day + 300}, 99, 350, 9, state{12, day + 300}},
		{"one token is left of it", bucket, state{12, day + 300}, 99, 350, 10, state{11, day + 300}},
		{"a charge later than the bucket", bucket, state{12, day}, 51, 50, 8, state{12, day}},
		{"what becomes full is fresh", bucket, state{8, day}, 40, 99, 8, state{0, day + 99}},
		{"a full bucket stays as it is", bucket, state{0, day}, 40, 99, 8, state{0, day}},
		{"an edit left less than it holds", bucket, state{5, day}, 40, 99, 8, state{0, day + 99}},
		{"the largest numbers", wide, state{most, day + 1}, 0, 1, most, state{most - 1, day + 1}},
		{"the largest numbers, refilled", wide, state{most, day + 2}, 0, 2, most, state{most, day + 2}},
		{"ages ago", wide, state{most, day}, -day, 0, most, state{most, day}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := algorithm.Refund(c.terms, c.state, day+c.at, day+c.now, c.cost); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestRefundOfABucketAgreesWithItsDefinition: a charge holds what it cost, less
// every refill since, and refills come at the end of each period.
func TestRefundOfABucketAgreesWithItsDefinition(t *testing.T) {
	for every := int64(1); every <= 4; every++ {
		for refill := int64(1); refill <= 4; refill++ {
			term := terms(t, stint.TokenBucket{Capacity: 9, Refill: refill, Every: time.Duration(every) * time.Millisecond})
			for charged := range every { // after a refill
				for cost := int64(1); cost <= 4; cost++ {
					for now := day + charged; now < day+12; now++ {
						s, ok := algorithm.Advance(term, algorithm.State{Spent: 5 + cost, Extra: day}, day+charged, now)
						if !ok {
							t.Fatal("damaged")
						}
						held := cost
						for at := day + charged + 1; at <= now; at++ {
							if (at-day)%every == 0 {
								held = max(0, held-refill)
							}
						}
						want := s.Spent - min(held, s.Spent)
						if got := algorithm.Refund(term, s, day+charged, now, cost); got.Spent != want {
							t.Fatalf("every %d, refill %d, %d charged at +%d, refunded at +%d of %+v: %d left, want %d",
								every, refill, cost, charged, now-day, s, got.Spent, want)
						}
					}
				}
			}
		}
	}
}

// TestRefundInAWindowIsAsIfNeverCharged compares, at every instant of a small
// window, what a refund leaves with what would have been.
func TestRefundInAWindowIsAsIfNeverCharged(t *testing.T) {
	for _, l := range []stint.Limit{
		stint.FixedWindow{Limit: 6, Window: 5 * time.Millisecond}, stint.SlidingCounter{Limit: 6, Window: 5 * time.Millisecond},
	} {
		term := terms(t, l)
		for charged := day; charged < day+5; charged++ {
			for now := charged; now < day+15; now++ {
				for cost := int64(1); cost <= 3; cost++ {
					never, is := counter{terms: term}, counter{terms: term}
					for _, k := range []*counter{&never, &is} {
						k.take(t, day-1, 2)
						k.take(t, charged, 1)
					}
					is.take(t, charged, cost)
					want, before := never.advanced(t, now), is.advanced(t, now)
					if now >= day+5 {
						want = before
					}
					if got := algorithm.Refund(term, before, charged, now, cost); got != want {
						t.Fatalf("%T: %d charged at +%d, refunded at +%d: %+v, want %+v", l, cost, charged-day, now-day, got, want)
					}
				}
			}
		}
	}
}

// outstanding is a charge that may still be refunded.
type outstanding struct{ at, cost int64 }

// TestRefundsTakeFromNobodyElse: whatever is charged and refunded, all charges
// that were not refunded hold together at most what is spent, so that none of
// them loses to the refund of another; and the bound of the limit stands, with
// what was refunded counted as if it had not been spent.
func TestRefundsTakeFromNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, now := counter{terms: limits(t)}, rapid.Int64Range(0, day).Draw(t, "start")
		var open []outstanding
		for range rapid.IntRange(2, 30).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 20), rapid.Int64Range(0, k.terms.Period)).Draw(t, "wait")
			s := k.advanced(t, now)
			if len(open) > 0 && rapid.Bool().Draw(t, "refund") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				next := algorithm.Refund(k.terms, s, open[i].at, now, open[i].cost)
				open = append(open[:i], open[i+1:]...)
				sound(t, k.terms, s, next, now)
				if next.Spent != s.Spent {
					k.state, k.at = next, now
				}
			} else if left := algorithm.Remaining(k.terms, s, now); left > 0 {
				cost := rapid.OneOf(rapid.Int64Range(1, left), rapid.Just(left)).Draw(t, "cost")
				k.take(t, now, cost)
				open = append(open, outstanding{now, cost})
			}
			s = k.advanced(t, now)
			held := int64(0)
			for _, o := range open {
				// A state that is wholly spent shows all that the charge holds.
				full := algorithm.State{Spent: stint.MaxInteger, Extra: s.Extra}
				held += full.Spent - algorithm.Refund(k.terms, full, o.at, now, o.cost).Spent
			}
			if held > s.Spent {
				t.Fatalf("%d is held of %d spent: %+v of %+v", held, s.Spent, open, *k.terms)
			}
		}
	})
}

// sound checks what a refund made of a state.
func sound(t *rapid.T, term *stint.Terms, before, after algorithm.State, now int64) {
	t.Helper()
	if after.Spent < 0 || after.Spent > before.Spent {
		t.Fatalf("a refund made %+v of %+v", after, before)
	}
	if same, ok := algorithm.Advance(term, after, now, now); !ok || after.Spent != before.Spent && same != after {
		t.Fatalf("a refund left %+v, which is %+v (%v) at the same instant", after, same, ok)
	}
	if forget := algorithm.ForgetAt(term, after, now); after.Spent != before.Spent && forget < now {
		t.Fatalf("what was refunded may be forgotten at %d, before %d", forget, now)
	}
}

// TestBucketsBoundWhatIsKept: in any interval the charges of it that were not
// given back stay within the bucket's bound.
func TestBucketsBoundWhatIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := terms(t, stint.TokenBucket{
			Capacity: rapid.Int64Range(1, 20).Draw(t, "capacity"), Refill: rapid.Int64Range(1, 20).Draw(t, "refill"), Every: period(t),
		})
		k, now := counter{terms: term}, day+rapid.Int64Range(0, 100).Draw(t, "start")
		var kept []admission
		refunded := map[int]bool{}
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, term.Period).Draw(t, "wait")
			if len(kept) > 0 && rapid.IntRange(0, 2).Draw(t, "refund") == 0 {
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "which")
				s := k.advanced(t, now)
				next := algorithm.Refund(term, s, kept[i].at, now, kept[i].cost)
				if given := s.Spent - next.Spent; given > 0 && !refunded[i] {
					k.state, k.at = next, now
					kept[i].cost -= given // what time gave back stays spent
				}
				refunded[i] = true
				continue
			}
			cost := rapid.Int64Range(1, term.Quota).Draw(t, "cost")
			if wait, _ := k.take(t, now, cost); wait == 0 {
				kept = append(kept, admission{now, cost})
			}
		}
		for i, a := range kept {
			for _, b := range kept[i:] {
				length := b.at - a.at + 1
				bound := term.Quota + term.Refill*((length+term.Period-1)/term.Period)
				if got := within(kept, a.at, length); got > bound {
					t.Fatalf("%d kept in %d ms, at most %d may be", got, length, bound)
				}
			}
		}
	})
}
