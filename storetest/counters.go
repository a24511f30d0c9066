package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// counterPromises are about what shares a budget, and which limit speaks.
var counterPromises = []promise{
	{"subjects and policies do not share budgets", countersAreApart},
	{"every limit of a policy binds", everyLimitBinds},
	{"figures are exact at the largest numbers", largestNumbers},
}

func countersAreApart(b *bench) {
	limits := []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Minute}}
	first, second := policy(b, stint.Policy{ID: "first", Limits: limits}), policy(b, stint.Policy{ID: "second", Limits: limits})
	other := pseudonym("alice")
	other.Version++
	for _, c := range []stint.Charge{
		charge(first, "alice", 1), charge(first, "alicf", 1), charge(second, "alice", 1), {Policy: first, Subject: other, Cost: 1},
	} {
		v := b.must(b.group(stint.Take, stint.EvaluationID{}, c))
		if !v.Allowed {
			b.Errorf("%s of %s is not a counter of its own", c.Subject, c.Policy.ID)
		}
	}
}

func everyLimitBinds(b *bench) {
	p := policy(b, stint.Policy{ID: "three", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 20, Window: time.Hour},
		stint.TokenBucket{Capacity: 5, Refill: 5, Every: time.Second},
		stint.SlidingCounter{Limit: 12, Window: time.Minute},
	}})
	for _, step := range []struct {
		at        time.Duration
		cost      int64
		outcome   stint.Outcome
		limit     int
		remaining int64
	}{
		{0, 5, stint.Allowed, 1, 0},
		{0, 1, stint.Denied, 1, 0},
		{1 * time.Second, 5, stint.Allowed, 1, 0},
		{2 * time.Second, 3, stint.Denied, 2, 2},
		{120 * time.Second, 5, stint.Allowed, 1, 0},
		{121 * time.Second, 5, stint.Allowed, 0, 0},
		{240 * time.Second, 1, stint.Denied, 0, 0},
	} {
		b.at(step.at)
		d := b.take(p, "alice", step.cost)
		if d.Outcome != step.outcome || d.Limit != step.limit || d.Remaining != step.remaining {
			b.Errorf("at %v, cost %d: got %s, want %v with limit %d and %d left",
				step.at, step.cost, showDecision(&d), step.outcome, step.limit, step.remaining)
		}
		if step.outcome == stint.Denied && !d.Refuses(step.limit) {
			b.Errorf("at %v: limit %d does not refuse", step.at, step.limit)
		}
	}
}

func largestNumbers(b *bench) {
	most := int64(stint.MaxInteger)
	for _, l := range []stint.Limit{
		stint.FixedWindow{Limit: most, Window: time.Minute},
		stint.SlidingCounter{Limit: most/60_000 - 1, Window: time.Minute},
		stint.TokenBucket{Capacity: most, Refill: most, Every: time.Minute},
	} {
		b.at(0)
		p := policy(b, stint.Policy{ID: "large", Limits: []stint.Limit{l}})
		all := quota(l)
		if d := b.take(p, "worn", all-1); d.Outcome != stint.Allowed || d.Remaining != 1 || d.ResetAfter == 0 {
			b.Errorf("%T: all but one: %s", l, showDecision(&d))
		}
		if d := b.take(p, "worn", 2); d.Outcome != stint.Denied || d.Remaining != 1 {
			b.Errorf("%T: two of one: %s", l, showDecision(&d))
		} else {
			b.passesFrom(p, 2, d.RetryAfter)
		}
		if d := b.take(p, "worn", 1); d.Outcome != stint.Allowed || d.Remaining != 0 {
			b.Errorf("%T: the last one: %s", l, showDecision(&d))
		}
	}
}
