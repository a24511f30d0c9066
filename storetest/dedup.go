package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// dedupPromises are about evaluation ids that their callers repeat.
var dedupPromises = []promise{
	{"a repeated id gets its answer again and spends nothing", repeatIsFree},
	{"a repeated group is answered whole", repeatedGroup},
	{"a repeated id with another payload is a mismatch", otherPayload},
	{"a denial is not remembered", denialIsNotRemembered},
	{"an id is remembered for the TTL and no longer", rememberedForTTL},
	{"an id is looked up before the clock is judged", lookupBeforeClock},
	{"an admission beyond MaxEntries is refused", boundedByEntries},
	{"an admission beyond MaxBytes is refused", boundedByBytes},
	{"a record that expired behind a live one still counts", staleBehindLive},
	{"ids are kept beside the first counter", idsOfFirstCounter},
	{"a peek neither asks for an id nor leaves one", peekIgnoresID},
	{"without dedup an id means nothing", dedupOff},
	{"no id is never a repetition", zeroID},
	{"a forgotten id is a new one", forgottenID},
}

// remembering is a window of an hour with bounds on what it remembers.
func remembering(b *bench, d stint.Dedup) *stint.Policy {
	return policy(b, stint.Policy{ID: "remembering", Dedup: d, Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Hour}}})
}

func (b *bench) with(name string, charges ...stint.Charge) stint.Group {
	return b.group(stint.Take, id(name), charges...)
}

// replays checks that v is the answer given first, marked as such.
func (b *bench) replays(v, first stint.Verdict) {
	b.Helper()
	var want stint.Verdict
	for i := range first.Len() {
		d := first.Decision(i)
		d.Replayed = true
		want.Append(d)
	}
	if !same(&v, &want) {
		b.Errorf("got %s, want %s", showVerdict(&v), showVerdict(&want))
	}
}

func repeatIsFree(b *bench) {
	worn(b, func(p *stint.Policy) {
		b.wait(20 * time.Second)
		first := b.must(b.with("x", charge(p, "worn", 2)))
		if d := first.Decision(0); d.Outcome != stint.Allowed || d.Replayed {
			b.Errorf("%s: %s", p.ID, showDecision(&d))
		}
		b.wait(1300 * time.Millisecond)
		before := b.peek(p, "worn", 1)
		for range 3 {
			b.replays(b.must(b.with("x", charge(p, "worn", 2))), first)
		}
		if after := b.peek(p, "worn", 1); after != before {
			b.Errorf("%s: repeating spent: %s, before %s", p.ID, showDecision(&after), showDecision(&before))
		}
	})
}

func repeatedGroup(b *bench) {
	p, shadow, q := window(b, "one", 9, stint.Enforce), window(b, "shadow", 1, stint.Shadow), window(b, "two", 9, stint.Enforce)
	b.take(shadow, "alice", 1)
	charges := []stint.Charge{charge(p, "alice", 2), charge(shadow, "alice", 1), charge(q, "bob", 9)}
	first := b.must(b.with("x", charges...))
	b.outcomes(first, true, stint.Allowed, stint.ShadowDenied, stint.Allowed)
	b.wait(time.Second)
	b.replays(b.must(b.with("x", charges...)), first)
	b.left(p, "alice", 7)
	b.left(q, "bob", 0)
}

func otherPayload(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	b.must(b.with("x", charge(p, "alice", 2), charge(q, "alice", 1)))
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 3), charge(q, "alice", 1)))
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 2), charge(q, "bob", 1)))
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 2)))
	b.left(p, "alice", 7)
	b.left(q, "alice", 8)
	b.left(q, "bob", 9)
}

func denialIsNotRemembered(b *bench) {
	p := remembering(b, stint.Dedup{TTL: 2 * time.Hour})
	b.take(p, "alice", 10)
	b.outcomes(b.must(b.with("x", charge(p, "alice", 1))), false, stint.Denied)
	b.wait(time.Hour)
	v := b.must(b.with("x", charge(p, "alice", 2)))
	b.outcomes(v, true, stint.Allowed)
	if v.Decision(0).Replayed {
		b.Errorf("a denial was remembered")
	}
}

func rememberedForTTL(b *bench) {
	p := remembering(b, stint.Dedup{TTL: 3 * time.Second})
	first := b.must(b.with("x", charge(p, "alice", 1)))
	b.wait(3*time.Second - time.Millisecond)
	b.replays(b.must(b.with("x", charge(p, "alice", 1))), first)
	b.wait(time.Millisecond)
	v := b.must(b.with("x", charge(p, "alice", 2)))
	b.outcomes(v, true, stint.Allowed)
	b.left(p, "alice", 7)
}

func lookupBeforeClock(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Minute})
	b.at(10 * time.Minute)
	first := b.must(b.with("x", charge(p, "alice", 1)))
	b.at(0)
	b.replays(b.must(b.with("x", charge(p, "alice", 1))), first)
	b.refused(stint.EvaluationMismatch, b.with("x", charge(p, "alice", 2)))
	b.refused(stint.ClockUnsafe, b.with("y", charge(p, "alice", 1)))
}

func boundedByEntries(b *bench) {
	p := remembering(b, stint.Dedup{TTL: 5 * time.Second, MaxEntries: 2})
	first := b.must(b.with("x", charge(p, "alice", 1)))
	b.wait(time.Second)
	b.must(b.with("y", charge(p, "alice", 1)))
	b.refused(stint.AdmissionRejected, b.with("z", charge(p, "alice", 1)))
	b.left(p, "alice", 8)
	b.replays(b.must(b.with("x", charge(p, "alice", 1))), first)
	if d := b.take(p, "alice", 1); d.Outcome != stint.Allowed {
		b.Errorf("without an id: %s", showDecision(&d))
	}
	b.outcomes(b.must(b.with("z", charge(p, "alice", 10))), false, stint.Denied)
	b.outcomes(b.must(b.with("z", charge(p, "bob", 1))), true, stint.Allowed)
	b.wait(4 * time.Second)
	b.outcomes(b.must(b.with("z", charge(p, "alice", 1))), true, stint.Allowed)
	b.refused(stint.AdmissionRejected, b.with("w", charge(p, "alice", 1)))
	b.left(p, "alice", 6)
}

func boundedByBytes(b *bench) {
	size := func(v stint.Verdict) int { return v.RecordSize() }
	probe := remembering(b, stint.Dedup{})
	one := size(b.must(b.with("x", charge(probe, "probe", 1))))
	for _, c := range []struct {
		bytes, fit int
	}{{one - 1, 0}, {one, 1}, {3*one - 1, 2}, {3 * one, 3}} {
		if err := b.Forget(); err != nil {
			b.Fatal(err)
		}
		p := remembering(b, stint.Dedup{MaxBytes: c.bytes})
		for i := range c.fit {
			b.must(b.with(string(rune('a'+i)), charge(p, "alice", 1)))
		}
		b.refused(stint.AdmissionRejected, b.with("beyond", charge(p, "alice", 1)))
		b.left(p, "alice", 10-int64(c.fit))
	}
}

func staleBehindLive(b *bench) {
	long := remembering(b, stint.Dedup{TTL: time.Minute, MaxEntries: 2})
	short := remembering(b, stint.Dedup{TTL: time.Second, MaxEntries: 2})
	b.must(b.with("x", charge(long, "alice", 1)))
	b.must(b.with("y", charge(short, "alice", 1)))
	b.wait(2 * time.Second)
	b.refused(stint.AdmissionRejected, b.with("z", charge(long, "alice", 1)))
	b.refused(stint.AdmissionRejected, b.with("y", charge(long, "alice", 1)))
	b.wait(58 * time.Second)
	b.outcomes(b.must(b.with("y", charge(long, "alice", 1))), true, stint.Allowed)
	b.left(long, "alice", 7)
	three := remembering(b, stint.Dedup{TTL: time.Minute, MaxEntries: 3})
	b.must(b.with("x", charge(three, "bob", 1)))
	b.must(b.with("y", charge(short, "bob", 1)))
	b.wait(2 * time.Second)
	b.must(b.with("y", charge(three, "bob", 1))) // a third record, the second for y
	b.refused(stint.AdmissionRejected, b.with("z", charge(three, "bob", 1)))
	b.left(three, "bob", 7)
}

func idsOfFirstCounter(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	b.must(b.with("x", charge(p, "alice", 1), charge(q, "alice", 1)))
	v := b.must(b.with("x", charge(q, "alice", 1), charge(p, "alice", 1)))
	if v.Decision(0).Replayed {
		b.Errorf("an id was found beside another counter")
	}
	b.left(p, "alice", 7)
	b.left(q, "alice", 7)
}

func peekIgnoresID(b *bench) {
	p := remembering(b, stint.Dedup{TTL: time.Minute})
	peek := func(cost int64) stint.Decision {
		v := b.must(b.group(stint.Peek, id("x"), charge(p, "alice", cost)))
		return v.Decision(0)
	}
	peek(1)
	b.outcomes(b.must(b.with("x", charge(p, "alice", 2))), true, stint.Allowed)
	if d := peek(1); d.Replayed || d.Remaining != 8 {
		b.Errorf("a peek under a known id: %s", showDecision(&d))
	}
}

func dedupOff(b *bench) {
	p := remembering(b, stint.Dedup{Off: true, MaxEntries: 1})
	for i := range 3 {
		v := b.must(b.with("x", charge(p, "alice", int64(i+1))))
		if d := v.Decision(0); d.Replayed || d.Outcome != stint.Allowed {
			b.Errorf("take %d: %s", i+1, showDecision(&d))
		}
	}
	b.left(p, "alice", 4)
}

func zeroID(b *bench) {
	p := remembering(b, stint.Dedup{MaxEntries: 1})
	b.must(b.with("x", charge(p, "alice", 1)))
	for range 3 {
		b.take(p, "alice", 1)
	}
	b.left(p, "alice", 6)
}

func forgottenID(b *bench) {
	p := remembering(b, stint.Dedup{MaxEntries: 1})
	b.must(b.with("x", charge(p, "alice", 3)))
	if err := b.Forget(); err != nil {
		b.Fatal(err)
	}
	b.outcomes(b.must(b.with("x", charge(p, "alice", 1))), true, stint.Allowed)
	b.left(p, "alice", 9)
}
