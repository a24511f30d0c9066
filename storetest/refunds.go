package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// refundPromises are about giving back what an evaluation spent.
var refundPromises = []promise{
	{"a refund undoes a charge", refundUndoes},
	{"a refund undoes exactly what its group spent", refundOfGroup},
	{"a repeated refund gives back once, and gets its answer again", refundTwice},
	{"a charge that meets its refund spends nothing", lateCharge},
	{"a refund is remembered for the TTL and no longer", refundRemembered},
	{"a refund with another payload is a mismatch", refundMismatch},
	{"a refund of nothing known gives back nothing, and is remembered", refundUnknown},
	{"a refund that nothing could remember changes nothing", refundUnremembered},
	{"a receipt stands in for a record that has expired", refundByReceipt},
	{"a record goes before a receipt", recordBeforeReceipt},
	{"a passed window is not refunded", refundOfPassedWindow},
	{"what was refilled since is not refunded", refundOfRefilled},
	{"each limit gives back what it still holds", refundOfSeveralLimits},
	{"no budget becomes more than whole", refundOfForgotten},
	{"a refund gives back nothing of what others spent", refundLeavesOthers},
	{"a refund makes no counter", refundMakesNoCounter},
	{"a refund that gives back nothing moves no clock, one that does moves it", refundMovesClock},
	{"an unsafe clock refuses a refund whole", refundUnsafe},
	{"a refund is looked up before the clock is judged", refundLookupBeforeClock},
	{"what a shadow refused is not refunded, what it passed is", refundOfShadow},
	{"a refund beyond the bounds on records is refused, one in place of a record is not", refundBounds},
	{"a clock that goes back never finds what was refunded", refundAndClockBack},
	{"a refund leaves no record of its id but its own", refundOfRepeatedID},
	{"a refund counts after an edit of the limit", refundAfterEdit},
	{"an edited mode changes no recorded answer", recordedUnderAnotherMode},
}

// refund asks for a refund under an id.
func (b *bench) refund(name string, charges ...stint.Charge) stint.Group {
	return b.group(stint.Refund, id(name), charges...)
}

// by is a charge with its receipt.
func by(c stint.Charge, at int64) stint.Charge {
	c.At = at
	return c
}

// refunded checks a refund that must succeed: it refuses nobody, says where
// each counter stands, and asks nobody to wait.
func (b *bench) refunded(g stint.Group) stint.Verdict {
	b.Helper()
	v := b.must(g)
	if !v.Allowed {
		b.Errorf("%s: %s", showGroup(&g), showVerdict(&v))
	}
	for i := range v.Len() {
		if d := v.Decision(i); d.Outcome != stint.Allowed && d.Outcome != stint.ShadowFailed || d.RetryAfter != 0 {
			b.Errorf("%s: decision %d: %s", showGroup(&g), i, showDecision(&d))
		}
	}
	return v
}

func refundUndoes(b *bench) {
	worn(b, func(p *stint.Policy) {
		b.wait(20 * time.Second)
		b.take(p, "worn", 2)
		before := b.peek(p, "worn", 0)
		b.must(b.with("x", charge(p, "worn", 3)))
		b.left(p, "worn", before.Remaining-3)
		v := b.refunded(b.refund("x", charge(p, "worn", 3)))
		if d := v.Decision(0); d != before {
			b.Errorf("%s: %s, before the charge %s", p.ID, showDecision(&d), showDecision(&before))
		}
		if after := b.peek(p, "worn", 0); after != before {
			b.Errorf("%s: a peek after: %s, before the charge %s", p.ID, showDecision(&after), showDecision(&before))
		}
	})
}

func refundOfGroup(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	charges := []stint.Charge{charge(p, "alice", 2), charge(q, "alice", 3), charge(p, "bob", 4)}
	b.must(b.with("x", charges...))
	b.must(b.with("y", charges...))
	v := b.refunded(b.refund("x", charges...))
	for i, want := range []int64{7, 6, 5} {
		if d := v.Decision(i); d.Remaining != want {
			b.Errorf("decision %d: %s, want %d left", i, showDecision(&d), want)
		}
	}
	b.left(p, "alice", 7)
	b.left(q, "alice", 6)
	b.left(p, "bob", 5)
}

func refundTwice(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Minute})
	b.must(b.with("x", charge(p, "alice", 2)))
	b.must(b.with("y", charge(p, "alice", 5)))
	b.wait(time.Second)
	first := b.refunded(b.refund("x", charge(p, "alice", 2)))
	for range 3 {
		b.wait(time.Second)
		b.replays(b.must(b.refund("x", charge(p, "alice", 2))), first)
		b.replays(b.must(b.refund("x", by(charge(p, "alice", 2), b.now))), first)
	}
	b.left(p, "alice", 5)
}

func lateCharge(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	charges := []stint.Charge{charge(p, "alice", 2), charge(q, "alice", 3)}
	b.refunded(b.refund("unsent", charges...))
	b.refused(stint.EvaluationMismatch, b.with("unsent", charges...))
	b.refused(stint.EvaluationMismatch, b.with("unsent", charges[0]))
	b.must(b.with("sent", charges...))
	b.refunded(b.refund("sent", charges...))
	b.refused(stint.EvaluationMismatch, b.with("sent", charges...))
	b.left(p, "alice", 9)
	b.left(q, "alice", 9)
	if d := b.take(p, "alice", 2); d.Outcome != stint.Allowed {
		b.Errorf("without an id: %s", showDecision(&d))
	}
	b.refused(stint.EvaluationMismatch, b.with("sent", charges...))
	b.left(p, "alice", 7)
}

func refundRemembered(b *bench) {
	p := remembering(b, stint.Dedup{TTL: 3 * time.Second})
	b.must(b.with("x", charge(p, "alice", 2)))
	b.wait(2 * time.Second)
	first := b.refunded(b.refund("x", charge(p, "alice", 2)))
	b.wait(3*time.Second - time.Millisecond)
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 2)))
	b.replays(b.must(b.refund("x", charge(p, "alice", 2))), first)
	b.wait(time.Millisecond)
	b.outcomes(b.must(b.with("x", charge(p, "alice", 4))), true, stint.Allowed)
	b.left(p, "alice", 6)
}

func refundMismatch(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	charges := []stint.Charge{charge(p, "alice", 2), charge(q, "alice", 3)}
	others := [][]stint.Charge{charges[:1], {charges[0], charge(q, "alice", 2)}, {charges[0], charge(q, "bob", 3)}}
	b.must(b.with("x", charges...))
	for _, o := range others {
		b.refused(stint.EvaluationMismatch, b.refund("x", o...))
	}
	b.left(p, "alice", 7)
	b.refunded(b.refund("x", charges...))
	for _, o := range others {
		b.refused(stint.EvaluationMismatch, b.refund("x", o...))
	}
	b.left(p, "alice", 9)
	b.left(q, "alice", 9)
	b.left(q, "bob", 9)
}

func refundUnknown(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Minute})
	b.take(p, "alice", 4)
	first := b.refunded(b.refund("x", charge(p, "alice", 3)))
	if d := first.Decision(0); d.Replayed || d.Remaining != 6 {
		b.Errorf("got %s, want 6 left", showDecision(&d))
	}
	b.wait(time.Second)
	b.replays(b.must(b.refund("x", by(charge(p, "alice", 3), b.now-1000))), first)
	b.left(p, "alice", 6)
	ages := policy(b, stint.Policy{ID: "ages", Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: stint.MaxDuration}}})
	b.take(ages, "alice", 4)
	b.refunded(b.refund("y", charge(ages, "alice", 3)))
	b.left(ages, "alice", 6)
}

// refundUnremembered is about groups that no Limiter makes.
func refundUnremembered(b *bench) {
	p, several := remembering(b, stint.Dedup{Off: true}), sized(b, 10)[3]
	b.take(p, "alice", 4)
	b.take(several, "alice", 4)
	for _, g := range []stint.Group{
		b.refund("x", by(charge(p, "alice", 3), b.now)),
		b.refund("x", by(charge(p, "alice", 3), b.now), by(charge(several, "alice", 3), b.now)),
		b.group(stint.Refund, stint.EvaluationID{}, by(charge(p, "alice", 3), b.now)),
		b.group(stint.Refund, stint.EvaluationID{}, by(charge(several, "alice", 3), b.now)),
	} {
		_, _ = b.decide(g)
		b.left(p, "alice", 6)
		b.left(several, "alice", 6)
	}
}

func refundByReceipt(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Second})
	v := b.must(b.with("x", charge(p, "alice", 3)))
	at := v.Decision(0).At
	b.take(p, "alice", 4)
	b.wait(time.Minute)
	b.refunded(b.refund("x", charge(p, "alice", 3)))
	b.left(p, "alice", 3)
	b.wait(time.Minute)
	first := b.refunded(b.refund("x", by(charge(p, "alice", 3), at)))
	b.left(p, "alice", 6)
	b.replays(b.must(b.refund("x", by(charge(p, "alice", 3), at))), first)
	b.left(p, "alice", 6)
	b.refunded(b.refund("y", by(charge(p, "alice", 3), b.now+1)))
	b.left(p, "alice", 6)
}

func recordBeforeReceipt(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Minute})
	for i, at := range []int64{epoch - 1, epoch + 86_400_000, 1} {
		name := string(rune('a' + i))
		b.must(b.with(name, charge(p, "alice", 3)))
		b.refunded(b.refund(name, by(charge(p, "alice", 3), at)))
		b.left(p, "alice", 10)
	}
}

func refundOfPassedWindow(b *bench) {
	p := policy(b, stint.Policy{ID: "fixed", Dedup: stint.Dedup{TTL: time.Hour}, Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Minute}}})
	q := policy(b, stint.Policy{ID: "sliding", Dedup: stint.Dedup{TTL: time.Hour}, Limits: []stint.Limit{stint.SlidingCounter{Limit: 10, Window: time.Minute}}})
	for _, name := range []string{"x", "y"} {
		b.must(b.with(name, charge(p, "alice", 4), charge(q, "alice", 4)))
	}
	b.wait(time.Minute - time.Millisecond)
	b.refunded(b.refund("x", charge(p, "alice", 4), charge(q, "alice", 4)))
	b.left(p, "alice", 6)
	b.left(q, "alice", 6)
	b.wait(time.Millisecond)
	b.take(p, "alice", 5)
	b.take(q, "alice", 5)
	before := b.peek(q, "alice", 0)
	b.refunded(b.refund("y", charge(p, "alice", 4), charge(q, "alice", 4)))
	b.left(p, "alice", 5)
	if after := b.peek(q, "alice", 0); after != before {
		b.Errorf("a charge of the window before was refunded: %s, before %s", showDecision(&after), showDecision(&before))
	}
}

func refundOfRefilled(b *bench) {
	p := policy(b, stint.Policy{ID: "bucket", Dedup: stint.Dedup{TTL: time.Hour}, Limits: []stint.Limit{stint.TokenBucket{Capacity: 20, Refill: 2, Every: time.Second}}})
	for _, name := range []string{"x", "y", "z"} {
		b.must(b.with(name, charge(p, "alice", 5)))
	}
	b.wait(time.Second - time.Millisecond)
	b.refunded(b.refund("x", charge(p, "alice", 5)))
	b.left(p, "alice", 10)
	b.wait(time.Millisecond)
	b.left(p, "alice", 12)
	b.refunded(b.refund("y", charge(p, "alice", 5)))
	b.left(p, "alice", 15)
	b.wait(2 * time.Second)
	b.left(p, "alice", 19)
	b.take(p, "alice", 6)
	b.refunded(b.refund("z", charge(p, "alice", 5)))
	b.left(p, "alice", 13)
}

func refundOfSeveralLimits(b *bench) {
	p := policy(b, stint.Policy{ID: "several", Dedup: stint.Dedup{TTL: time.Hour}, Limits: []stint.Limit{
		stint.TokenBucket{Capacity: 10, Refill: 1, Every: time.Second}, stint.FixedWindow{Limit: 30, Window: time.Minute},
		stint.SlidingCounter{Limit: 20, Window: 2 * time.Second},
	}})
	b.must(b.with("x", charge(p, "alice", 6)))
	b.wait(2 * time.Second)
	b.take(p, "alice", 2)
	v := b.refunded(b.refund("x", charge(p, "alice", 6)))
	d := v.Decision(0)
	for i, want := range []int64{8, 28, 12} {
		if got := d.Standing(i).Remaining; got != want {
			b.Errorf("limit %d: %d left, want %d", i, got, want)
		}
	}
}

func refundOfForgotten(b *bench) {
	for _, p := range sized(b, 10) {
		b.at(0)
		v := b.must(b.with("x", charge(p, "alice", 7)))
		at := v.Decision(0).At
		if err := b.Forget(); err != nil {
			b.Fatal(err)
		}
		b.take(p, "alice", 2)
		b.refunded(b.refund("x", by(charge(p, "alice", 7), at)))
		b.left(p, "alice", 10)
		if d := b.take(p, "alice", 10); d.Outcome != stint.Allowed {
			b.Errorf("%s: the whole budget: %s", p.ID, showDecision(&d))
		}
		if d := b.take(p, "alice", 1); d.Outcome != stint.Denied {
			b.Errorf("%s: one more than whole: %s", p.ID, showDecision(&d))
		}
	}
}

func refundLeavesOthers(b *bench) {
	p := policy(b, stint.Policy{ID: "bucket", Dedup: stint.Dedup{TTL: time.Hour}, Limits: []stint.Limit{stint.TokenBucket{Capacity: 6, Refill: 3, Every: time.Second}}})
	b.must(b.with("x", charge(p, "alice", 4)))
	b.wait(2500 * time.Millisecond) // full again
	b.must(b.with("y", charge(p, "alice", 6)))
	b.refunded(b.refund("x", charge(p, "alice", 4)))
	b.left(p, "alice", 0)
	if d := b.take(p, "alice", 1); d.Outcome != stint.Denied || d.RetryAfter != time.Second {
		b.Errorf("after the refund of what was refilled: %s", showDecision(&d))
	}
}

func refundMakesNoCounter(b *bench) {
	for _, p := range sized(b, 10) {
		b.at(24 * time.Hour)
		b.refunded(b.refund(p.ID, by(charge(p, "alice", 3), b.now-1)))
		b.refunded(b.refund(p.ID+" in a group", by(charge(p, "bob", 3), b.now-1), by(charge(p, "carol", 3), b.now-1)))
		b.at(0)
		for _, name := range []string{"alice", "bob", "carol"} {
			if got, want := b.take(p, name, 3), b.take(p, "not "+name, 3); got != want {
				b.Errorf("%s: %s after a refund of nothing: %s, never seen: %s", p.ID, name, showDecision(&got), showDecision(&want))
			}
		}
	}
}

func refundMovesClock(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Hour})
	b.must(b.with("x", charge(p, "alice", 3)))
	b.wait(4 * time.Second)
	b.refunded(b.refund("y", charge(p, "alice", 3)))
	b.wait(-time.Second)
	if d := b.peek(p, "alice", 0); d.At != b.now {
		b.Errorf("a refund of nothing moved the clock: %s", showDecision(&d))
	}
	b.refunded(b.refund("x", charge(p, "alice", 3)))
	b.wait(-time.Second)
	if d := b.peek(p, "alice", 0); d.At != b.now+1000 || d.Remaining != 10 {
		b.Errorf("a refund was not written: %s", showDecision(&d))
	}
}

func refundUnsafe(b *bench) {
	p, q := remembering(b, stint.Dedup{TTL: time.Hour}), window(b, "two", 9, stint.Enforce)
	charges := []stint.Charge{charge(p, "alice", 3), charge(q, "alice", 3)}
	b.must(b.with("x", charges...))
	b.wait(30 * time.Second)
	b.take(q, "alice", 1)
	b.wait(-30 * time.Second)
	b.refused(stint.ClockUnsafe, b.refund("x", charges...))
	b.wait(30 * time.Second)
	b.left(p, "alice", 7)
	b.refunded(b.refund("x", charges...))
	b.left(p, "alice", 10)
	b.left(q, "alice", 8)
}

func refundLookupBeforeClock(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Hour})
	b.at(10 * time.Minute)
	b.must(b.with("x", charge(p, "alice", 1)))
	first := b.refunded(b.refund("x", charge(p, "alice", 1)))
	b.at(0)
	b.replays(b.must(b.refund("x", charge(p, "alice", 1))), first)
	b.refused(stint.EvaluationMismatch, b.refund("x", charge(p, "alice", 2)))
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 1)))
	b.refused(stint.ClockUnsafe, b.refund("y", charge(p, "alice", 1)))
}

func refundOfShadow(b *bench) {
	p, passes, refuses, fails := window(b, "one", 9, stint.Enforce), window(b, "passes", 5, stint.Shadow), window(b, "refuses", 5, stint.Shadow), window(b, "fails", 5, stint.Shadow)
	b.at(10 * time.Second)
	b.take(fails, "alice", 4)
	b.at(0)
	b.take(refuses, "alice", 4)
	charges := []stint.Charge{charge(refuses, "alice", 2), charge(p, "alice", 2), charge(passes, "alice", 2), charge(fails, "alice", 1)}
	b.outcomes(b.must(b.with("x", charges...)), true, stint.ShadowDenied, stint.Allowed, stint.Allowed, stint.ShadowFailed)
	b.outcomes(b.refunded(b.refund("x", charges...)), true, stint.Allowed, stint.Allowed, stint.Allowed, stint.ShadowFailed)
	b.at(10 * time.Second)
	b.left(refuses, "alice", 1)
	b.left(p, "alice", 9)
	b.left(passes, "alice", 5)
	b.left(fails, "alice", 1)
	b.must(b.with("y", charge(passes, "alice", 5)))
	b.refunded(b.refund("y", charge(passes, "alice", 5)))
	b.left(passes, "alice", 5)
}

func refundBounds(b *bench) {
	p := remembering(b, stint.Dedup{TTL: 5 * time.Second, MaxEntries: 2})
	b.must(b.with("x", charge(p, "alice", 1)))
	b.wait(time.Second)
	v := b.must(b.with("y", charge(p, "alice", 1)))
	at := v.Decision(0).At
	b.refused(stint.AdmissionRejected, b.refund("z", by(charge(p, "alice", 1), at)))
	b.left(p, "alice", 8)
	b.refunded(b.refund("x", charge(p, "alice", 1)))
	b.left(p, "alice", 9)
	b.refused(stint.AdmissionRejected, b.with("w", charge(p, "alice", 1)))
	b.wait(4 * time.Second) // the refund lives, what it replaced does not
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 1)))
	b.refused(stint.AdmissionRejected, b.with("w", charge(p, "alice", 1)))
	b.wait(time.Second) // y has expired
	b.outcomes(b.must(b.with("w", charge(p, "alice", 1))), true, stint.Allowed)
	size := v.RecordSize()
	q := policy(b, stint.Policy{ID: "bytes", Dedup: stint.Dedup{MaxBytes: 2*size - 1}, Limits: p.Limits})
	b.must(b.with("x", charge(q, "alice", 1)))
	b.refused(stint.AdmissionRejected, b.refund("z", charge(q, "alice", 1)))
	b.refunded(b.refund("x", charge(q, "alice", 1)))
	b.refused(stint.AdmissionRejected, b.with("z", charge(q, "alice", 1)))
	b.left(q, "alice", 10)
}

func refundAndClockBack(b *bench) {
	p := policy(b, stint.Policy{
		ID: "remembering", MaximumClockRegression: time.Hour, Dedup: stint.Dedup{TTL: 10 * time.Second},
		Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Hour}},
	})
	long := policy(b, stint.Policy{
		ID: "remembering", MaximumClockRegression: time.Hour, Dedup: stint.Dedup{TTL: time.Hour}, Limits: p.Limits,
	})
	b.must(b.with("first", charge(long, "alice", 1)))
	v := b.must(b.with("x", charge(p, "alice", 3)))
	at := v.Decision(0).At
	b.must(b.with("y", charge(p, "alice", 4)))
	b.wait(20 * time.Second)
	first := b.refunded(b.refund("x", by(charge(p, "alice", 3), at)))
	b.wait(-15 * time.Second) // when what was refunded was remembered
	b.replays(b.must(b.refund("x", charge(p, "alice", 3))), first)
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 3)))
	b.left(p, "alice", 5)
}

func refundOfRepeatedID(b *bench) {
	long := remembering(b, stint.Dedup{TTL: time.Hour})
	short := remembering(b, stint.Dedup{TTL: time.Second})
	b.must(b.with("first", charge(long, "alice", 1)))
	b.must(b.with("x", charge(short, "alice", 2)))
	b.wait(time.Second) // its record has expired, and waits behind the first
	b.must(b.with("x", charge(short, "alice", 2)))
	first := b.refunded(b.refund("x", charge(short, "alice", 2)))
	b.left(long, "alice", 7)
	b.replays(b.must(b.refund("x", charge(short, "alice", 2))), first)
	b.wait(-500 * time.Millisecond)
	b.replays(b.must(b.refund("x", charge(short, "alice", 2))), first)
	b.wait(500 * time.Millisecond)
	b.left(long, "alice", 7)
}

func refundAfterEdit(b *bench) {
	many, few := sized(b, 100), sized(b, 50)
	for i := range many {
		b.must(b.with("x", charge(many[i], "alice", 40)))
		b.take(many[i], "alice", 30)
		b.left(few[i], "alice", 0)
		v := b.refunded(b.refund("x", charge(few[i], "alice", 40)))
		d := v.Decision(0)
		for l, limit := range few[i].Limits {
			want := int64(20)
			if _, is := limit.(stint.TokenBucket); is {
				want = 40 // it lacks its capacity at most
			}
			if got := d.Standing(l).Remaining; got != want {
				b.Errorf("%s: limit %d: %d left, want %d", few[i].ID, l, got, want)
			}
		}
	}
}

// recordedUnderAnotherMode: what was recorded is answered again, also what a
// shadow refused that has been enforced since, and undone as it was.
func recordedUnderAnotherMode(b *bench) {
	p, shadow, enforced := window(b, "one", 9, stint.Enforce), window(b, "two", 1, stint.Shadow), window(b, "two", 1, stint.Enforce)
	b.take(shadow, "alice", 1)
	first := b.must(b.with("x", charge(p, "alice", 2), charge(shadow, "alice", 1)))
	b.outcomes(first, true, stint.Allowed, stint.ShadowDenied)
	again := []stint.Charge{charge(p, "alice", 2), charge(enforced, "alice", 1)}
	b.replays(b.must(b.with("x", again...)), first)
	b.refunded(b.refund("x", again...))
	b.left(p, "alice", 9)
	b.left(shadow, "alice", 0)
}
