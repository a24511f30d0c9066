package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// figurePromises are about one counter and what a decision says of it.
var figurePromises = []promise{
	{"a denial spends nothing", denialIsFree},
	{"a peek writes nothing", peekIsFree},
	{"a peek of cost 0 only looks", peekOfNothing},
	{"after RetryAfter the charge passes, a millisecond earlier it does not", retryAfterIsExact},
	{"Remaining passes, one more does not", remainingIsExact},
	{"after MoreAfter one more than Remaining passes, and not earlier", moreAfterIsExact},
	{"after ResetAfter the whole budget is there, and not earlier", resetAfterIsExact},
	{"a forgotten counter is a fresh one", forgottenIsFresh},
	{"a budget that recovered is a fresh one", recoveredIsFresh},
}

// shapes are the policies that promises about figures are checked on.
func shapes(b *bench) []*stint.Policy {
	var list []*stint.Policy
	for id, limits := range map[string][]stint.Limit{
		"fixed":   {stint.FixedWindow{Limit: 10, Window: 7 * time.Second}},
		"sliding": {stint.SlidingCounter{Limit: 10, Window: 7 * time.Second}},
		"bucket":  {stint.TokenBucket{Capacity: 10, Refill: 3, Every: 2 * time.Second}},
		"several": {
			stint.TokenBucket{Capacity: 12, Refill: 1, Every: time.Second},
			stint.SlidingCounter{Limit: 10, Window: 5 * time.Second},
			stint.FixedWindow{Limit: 14, Window: 11 * time.Second},
		},
	} {
		list = append(list, policy(b, stint.Policy{ID: id, Limits: limits}))
	}
	return list
}

// worn calls check on every shape after a few uneven expenses.
func worn(b *bench, check func(p *stint.Policy)) {
	for _, p := range shapes(b) {
		b.at(0)
		for _, step := range []struct {
			wait time.Duration
			cost int64
		}{{0, 4}, {2_700 * time.Millisecond, 3}, {3_100 * time.Millisecond, 2}, {1_499 * time.Millisecond, 4}, {time.Millisecond, 3}} {
			b.wait(step.wait)
			b.take(p, "worn", step.cost)
		}
		check(p)
	}
}

func denialIsFree(b *bench) {
	worn(b, func(p *stint.Policy) {
		before := b.peek(p, "worn", 1)
		for range 3 {
			if d := b.take(p, "worn", 10); d.Outcome != stint.Denied {
				b.Errorf("%s: a cost of 10 is %v", p.ID, d.Outcome)
			}
		}
		if after := b.peek(p, "worn", 1); after != before {
			b.Errorf("%s: after denials %s, before %s", p.ID, showDecision(&after), showDecision(&before))
		}
	})
}

func peekIsFree(b *bench) {
	worn(b, func(p *stint.Policy) {
		first := b.peek(p, "worn", 1)
		if again := b.peek(p, "worn", 1); again != first {
			b.Errorf("%s: the second peek answers %s, the first %s", p.ID, showDecision(&again), showDecision(&first))
		}
		ahead := b.now
		b.wait(time.Hour)
		b.peek(p, "worn", 1)
		b.now = ahead
		if later := b.peek(p, "worn", 1); later != first {
			b.Errorf("%s: a peek in an hour changed %s to %s", p.ID, showDecision(&first), showDecision(&later))
		}
	})
}

func peekOfNothing(b *bench) {
	worn(b, func(p *stint.Policy) {
		if rest := b.peek(p, "worn", 0).Remaining; rest > 0 {
			b.take(p, "worn", rest)
		}
		d := b.peek(p, "worn", 0)
		if d.Outcome != stint.Allowed || d.Remaining != 0 || d.RetryAfter != 0 || d.MoreAfter == 0 {
			b.Errorf("%s: looking at an exhausted budget answers %s", p.ID, showDecision(&d))
		}
	})
}

func retryAfterIsExact(b *bench) {
	worn(b, func(p *stint.Policy) {
		for cost := int64(1); cost <= p.MaximumCost; cost++ {
			d := b.peek(p, "worn", cost)
			if (d.Outcome == stint.Denied) != (d.RetryAfter > 0) {
				b.Errorf("%s: cost %d: %s", p.ID, cost, showDecision(&d))
			}
			if d.RetryAfter > 0 {
				b.passesFrom(p, cost, d.RetryAfter)
			}
			if more := b.peek(p, "worn", 0).MoreAfter; d.MoreAfter != more || d.RetryAfter > 0 && more > d.RetryAfter {
				b.Errorf("%s: cost %d: %s, and more is there after %v", p.ID, cost, showDecision(&d), more)
			}
		}
	})
}

// passesFrom checks that a cost passes after d, and not a millisecond earlier.
func (b *bench) passesFrom(p *stint.Policy, cost int64, d time.Duration) {
	b.Helper()
	now := b.now
	b.wait(d - time.Millisecond)
	if early := b.peek(p, "worn", cost); early.Outcome != stint.Denied {
		b.Errorf("%s: cost %d, 1ms before %v: %s", p.ID, cost, d, showDecision(&early))
	}
	b.wait(time.Millisecond)
	if due := b.peek(p, "worn", cost); due.Outcome != stint.Allowed {
		b.Errorf("%s: cost %d, after %v: %s", p.ID, cost, d, showDecision(&due))
	}
	b.now = now
}

func remainingIsExact(b *bench) {
	worn(b, func(p *stint.Policy) {
		rest := b.peek(p, "worn", 0).Remaining
		if d := b.take(p, "worn", rest+1); d.Outcome != stint.Denied || d.Remaining != rest {
			b.Errorf("%s: one more than %d: %s", p.ID, rest, showDecision(&d))
		}
		if rest > 0 {
			if d := b.take(p, "worn", rest); d.Outcome != stint.Allowed || d.Remaining != 0 {
				b.Errorf("%s: all of %d: %s", p.ID, rest, showDecision(&d))
			}
		}
	})
}

func moreAfterIsExact(b *bench) {
	worn(b, func(p *stint.Policy) {
		d := b.peek(p, "worn", 0)
		if d.MoreAfter == 0 {
			b.Errorf("%s: a worn budget never gets more: %s", p.ID, showDecision(&d))
		}
		b.passesFrom(p, d.Remaining+1, d.MoreAfter)
	})
}

func resetAfterIsExact(b *bench) {
	worn(b, func(p *stint.Policy) {
		d := b.peek(p, "worn", 0)
		whole := func() bool {
			d := b.peek(p, "worn", 0)
			for i, l := range p.Limits {
				if d.Standing(i).Remaining != quota(l) {
					return false
				}
			}
			return d.ResetAfter == 0 && d.MoreAfter == 0
		}
		b.wait(d.ResetAfter - time.Millisecond)
		if whole() {
			b.Errorf("%s: whole 1ms before %v", p.ID, d.ResetAfter)
		}
		b.wait(time.Millisecond)
		if !whole() {
			b.Errorf("%s: not whole after %v", p.ID, d.ResetAfter)
		}
	})
}

// quota is the most that a limit ever lets pass at once.
func quota(l stint.Limit) int64 {
	switch l := l.(type) {
	case stint.FixedWindow:
		return l.Limit
	case stint.SlidingCounter:
		return l.Limit
	case stint.TokenBucket:
		return l.Capacity
	}
	return 0
}

func forgottenIsFresh(b *bench) {
	worn(b, func(p *stint.Policy) {
		if err := b.Forget(); err != nil {
			b.Fatal(err)
		}
		if got, want := b.peek(p, "worn", 1), b.peek(p, "new", 1); got != want {
			b.Errorf("%s: forgotten: %s, never seen: %s", p.ID, showDecision(&got), showDecision(&want))
		}
	})
}

func recoveredIsFresh(b *bench) {
	worn(b, func(p *stint.Policy) {
		b.wait(b.peek(p, "worn", 0).ResetAfter)
		for _, cost := range []int64{3, 7, 2} {
			if got, want := b.take(p, "worn", cost), b.take(p, "new", cost); got != want {
				b.Errorf("%s: recovered: %s, never seen: %s", p.ID, showDecision(&got), showDecision(&want))
			}
			b.wait(700 * time.Millisecond)
		}
	})
}
