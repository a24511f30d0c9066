package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// editPromises are about policies that change while counters exist.
var editPromises = []promise{
	{"a raised limit adds what was raised", raisedLimit},
	{"a lowered limit leaves nothing, and not less", loweredLimit},
	{"a changed refill counts from where the bucket stands", changedRefill},
	{"another window starts afresh", otherWindow},
	{"another revision starts afresh", otherRevision},
	{"another set of limits starts afresh", otherSet},
	{"the order and the names of limits mean nothing", otherOrder},
	{"another mode keeps what was spent", otherMode},
}

// sized are one policy of each algorithm with a quota of n.
func sized(b *bench, n int64) []*stint.Policy {
	return []*stint.Policy{
		policy(b, stint.Policy{ID: "fixed", Limits: []stint.Limit{stint.FixedWindow{Limit: n, Window: time.Hour}}}),
		policy(b, stint.Policy{ID: "sliding", Limits: []stint.Limit{stint.SlidingCounter{Limit: n, Window: time.Hour}}}),
		policy(b, stint.Policy{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: n, Refill: 1, Every: time.Hour}}}),
		policy(b, stint.Policy{ID: "both", Limits: []stint.Limit{
			stint.FixedWindow{Limit: n, Window: time.Hour}, stint.TokenBucket{Capacity: n, Refill: 1, Every: time.Hour},
		}}),
	}
}

// raisedLimit is the second half of case C14.
func raisedLimit(b *bench) {
	few, many := sized(b, 10), sized(b, 20)
	for i := range few {
		for n := range 20 {
			if d := b.take(few[i], "alice", 1); d.Allowed() != (n < 10) {
				b.Errorf("%s: attempt %d of 20: %s", few[i].ID, n+1, showDecision(&d))
			}
		}
		for n := range 11 {
			if d := b.take(many[i], "alice", 1); d.Allowed() != (n < 10) {
				b.Errorf("%s: attempt %d of 11: %s", few[i].ID, n+1, showDecision(&d))
			}
		}
	}
}

func loweredLimit(b *bench) {
	many, few := sized(b, 100), sized(b, 50)
	for i := range many {
		b.at(0)
		b.take(many[i], "alice", 90)
		d := b.take(few[i], "alice", 1)
		if d.Outcome != stint.Denied || d.Remaining != 0 {
			b.Errorf("%s: %s", few[i].ID, showDecision(&d))
		}
		if d := b.peek(few[i], "alice", 0); d.Outcome != stint.Allowed || d.Remaining != 0 {
			b.Errorf("%s: a peek at a cost of 0: %s", few[i].ID, showDecision(&d))
		}
		b.wait(d.RetryAfter)
		if d := b.take(few[i], "alice", 1); d.Outcome != stint.Allowed {
			b.Errorf("%s: after the advertised wait: %s", few[i].ID, showDecision(&d))
		}
	}
}

func changedRefill(b *bench) {
	bucket := func(refill int64) *stint.Policy {
		return policy(b, stint.Policy{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: 10, Refill: refill, Every: time.Second}}})
	}
	b.take(bucket(1), "alice", 10)
	b.wait(2500 * time.Millisecond)
	if d := b.take(bucket(3), "alice", 1); d.Outcome != stint.Allowed || d.Remaining != 5 || d.MoreAfter != 500*time.Millisecond {
		b.Errorf("after 2.5s at three a second: %s", showDecision(&d))
	}
}

func otherWindow(b *bench) {
	for _, l := range [][2]stint.Limit{
		{stint.FixedWindow{Limit: 9, Window: time.Hour}, stint.FixedWindow{Limit: 9, Window: time.Minute}},
		{stint.SlidingCounter{Limit: 9, Window: time.Hour}, stint.SlidingCounter{Limit: 9, Window: time.Minute}},
		{stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Hour}, stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Minute}},
		{stint.FixedWindow{Limit: 9, Window: time.Hour}, stint.SlidingCounter{Limit: 9, Window: time.Hour}},
	} {
		b.afresh(stint.Policy{ID: "edited", Limits: l[:1]}, stint.Policy{ID: "edited", Limits: l[1:]})
	}
}

func otherRevision(b *bench) {
	limits := []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}}
	b.afresh(stint.Policy{ID: "edited", Revision: 1, Limits: limits}, stint.Policy{ID: "edited", Revision: 2, Limits: limits})
}

func otherSet(b *bench) {
	limits := []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}, stint.FixedWindow{Limit: 9, Window: time.Minute}}
	b.afresh(stint.Policy{ID: "edited", Limits: limits}, stint.Policy{ID: "edited", Limits: limits[:1]})
}

// afresh checks that what was spent under before does not count under after,
// and still counts under before.
func (b *bench) afresh(before, after stint.Policy) {
	b.Helper()
	if err := b.Forget(); err != nil {
		b.Fatal(err)
	}
	p, q := policy(b, before), policy(b, after)
	b.take(p, "alice", 4)
	b.left(q, "alice", 9)
	b.left(p, "alice", 5)
}

func otherOrder(b *bench) {
	p := policy(b, stint.Policy{ID: "edited", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 5, Window: time.Hour}, stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Hour},
	}})
	q := policy(b, stint.Policy{ID: "edited", Limits: []stint.Limit{
		stint.TokenBucket{Name: "burst", Capacity: 9, Refill: 1, Every: time.Hour}, stint.FixedWindow{Name: "hourly", Limit: 5, Window: time.Hour},
	}})
	b.take(p, "alice", 2)
	d := b.take(q, "alice", 3)
	if d.Standing(0).Remaining != 4 || d.Standing(1).Remaining != 0 || d.Limit != 1 {
		b.Errorf("reordered: %s, %+v, %+v", showDecision(&d), d.Standing(0), d.Standing(1))
	}
}

func otherMode(b *bench) {
	b.take(window(b, "edited", 5, stint.Shadow), "alice", 2)
	b.left(window(b, "edited", 5, stint.Enforce), "alice", 3)
}
