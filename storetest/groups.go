package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// groupPromises are about several charges decided as one.
var groupPromises = []promise{
	{"a group spends everything or nothing", groupIsAtomic},
	{"every charge of a group is evaluated", groupTellsAll},
	{"a group of peeks writes nothing", groupPeekIsFree},
	{"the largest group is decided", largestGroup},
	{"a shadow never refuses, and spends nothing when it would", shadowNeverRefuses},
	{"a shadow that passes is spent only with its group", shadowGoesWithGroup},
	{"a shadow that cannot be evaluated fails alone", shadowFailsAlone},
	{"the rules of a route: special within general", specialWithinGeneral},
}

// window is a fixed window of a minute.
func window(b *bench, id string, limit int64, mode stint.Mode) *stint.Policy {
	return policy(b, stint.Policy{ID: id, Mode: mode, Limits: []stint.Limit{stint.FixedWindow{Limit: limit, Window: time.Minute}}})
}

func (b *bench) takeAll(charges ...stint.Charge) stint.Verdict {
	b.Helper()
	return b.must(b.group(stint.Take, stint.EvaluationID{}, charges...))
}

// outcomes checks the outcomes of a verdict and whether it allows.
func (b *bench) outcomes(v stint.Verdict, allowed bool, want ...stint.Outcome) {
	b.Helper()
	if v.Allowed != allowed {
		b.Errorf("got %s, want allowed=%v", showVerdict(&v), allowed)
	}
	for i, w := range want {
		if d := v.Decision(i); d.Outcome != w {
			b.Errorf("decision %d: got %s, want %v", i, showDecision(&d), w)
		}
	}
}

// left checks what remains of a counter.
func (b *bench) left(p *stint.Policy, subject string, want int64) {
	b.Helper()
	if d := b.peek(p, subject, 0); d.Remaining != want {
		b.Errorf("%s@%s: %d left, want %d", subject, p.ID, d.Remaining, want)
	}
}

func groupIsAtomic(b *bench) {
	wide, narrow := window(b, "wide", 10, stint.Enforce), window(b, "narrow", 3, stint.Enforce)
	b.outcomes(b.takeAll(charge(wide, "alice", 2), charge(narrow, "alice", 3)), true, stint.Allowed, stint.Allowed)
	v := b.takeAll(charge(wide, "alice", 2), charge(narrow, "alice", 1))
	b.outcomes(v, false, stint.Allowed, stint.Denied)
	if v.Binding != 1 {
		b.Errorf("charge %d binds, want 1", v.Binding)
	}
	b.left(wide, "alice", 8)
	b.outcomes(b.takeAll(charge(narrow, "alice", 1), charge(wide, "alice", 2)), false, stint.Denied, stint.Allowed)
	b.left(wide, "alice", 8)
	b.left(narrow, "alice", 0)
}

func groupTellsAll(b *bench) {
	slow := policy(b, stint.Policy{ID: "slow", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}})
	fast := window(b, "fast", 1, stint.Enforce)
	b.takeAll(charge(slow, "alice", 1), charge(fast, "alice", 1))
	b.wait(time.Second)
	v := b.takeAll(charge(fast, "alice", 1), charge(slow, "alice", 1), charge(fast, "bob", 1))
	b.outcomes(v, false, stint.Denied, stint.Denied, stint.Allowed)
	if d := v.Decision(1); v.Binding != 1 || d.RetryAfter != time.Hour-time.Second {
		b.Errorf("got %s, want the longest wait to bind", showVerdict(&v))
	}
}

func groupPeekIsFree(b *bench) {
	p, q := window(b, "one", 5, stint.Enforce), window(b, "two", 5, stint.Enforce)
	v := b.must(b.group(stint.Peek, stint.EvaluationID{}, charge(p, "alice", 3), charge(q, "alice", 5)))
	b.outcomes(v, true, stint.Allowed, stint.Allowed)
	if d := v.Decision(1); d.Remaining != 5 {
		b.Errorf("a peek answers %s, as if it had spent", showDecision(&d))
	}
	b.left(p, "alice", 5)
	b.left(q, "alice", 5)
}

func largestGroup(b *bench) {
	p := window(b, "many", 2, stint.Enforce)
	var charges []stint.Charge
	for i := range stint.MaxCharges {
		charges = append(charges, charge(p, string(rune('A'+i)), 1))
	}
	for _, allowed := range []bool{true, true, false} {
		if v := b.takeAll(charges...); v.Allowed != allowed || v.Len() != stint.MaxCharges {
			b.Errorf("%d decisions, allowed=%v, want %v", v.Len(), v.Allowed, allowed)
		}
	}
}

func shadowNeverRefuses(b *bench) {
	shadow, strict := window(b, "shadow", 2, stint.Shadow), window(b, "strict", 9, stint.Enforce)
	if d := b.take(shadow, "alice", 2); d.Outcome != stint.Allowed || d.Remaining != 0 {
		b.Errorf("a shadow that passes: %s", showDecision(&d))
	}
	if d := b.take(shadow, "alice", 1); d.Outcome != stint.ShadowDenied || d.RetryAfter != time.Minute || d.Remaining != 0 {
		b.Errorf("a shadow that would refuse: %s", showDecision(&d))
	}
	v := b.takeAll(charge(shadow, "alice", 1), charge(strict, "alice", 4))
	b.outcomes(v, true, stint.ShadowDenied, stint.Allowed)
	b.left(strict, "alice", 5)
	b.left(shadow, "alice", 0)
	b.wait(time.Minute)
	b.left(shadow, "alice", 2)
}

func shadowGoesWithGroup(b *bench) {
	shadow, strict := window(b, "shadow", 5, stint.Shadow), window(b, "strict", 1, stint.Enforce)
	b.outcomes(b.takeAll(charge(shadow, "alice", 2), charge(strict, "alice", 1)), true, stint.Allowed, stint.Allowed)
	b.left(shadow, "alice", 3)
	b.outcomes(b.takeAll(charge(shadow, "alice", 2), charge(strict, "alice", 1)), false, stint.Allowed, stint.Denied)
	b.left(shadow, "alice", 3)
}

func shadowFailsAlone(b *bench) {
	shadow, strict := window(b, "shadow", 5, stint.Shadow), window(b, "strict", 5, stint.Enforce)
	b.at(time.Hour)
	b.take(shadow, "alice", 1)
	b.at(0)
	v := b.takeAll(charge(shadow, "alice", 2), charge(strict, "alice", 2))
	b.outcomes(v, true, stint.ShadowFailed, stint.Allowed)
	if d := v.Decision(0); d.Limits() != 0 {
		b.Errorf("a failed shadow has figures: %s", showDecision(&d))
	}
	if v.Binding != 1 {
		b.Errorf("a failed shadow binds")
	}
	b.left(strict, "alice", 3)
	b.at(time.Hour)
	b.left(shadow, "alice", 4)
}

// specialWithinGeneral is case C23: a denial by one limit charges no other.
func specialWithinGeneral(b *bench) {
	general, special := window(b, "bar", 10, stint.Enforce), window(b, "special", 3, stint.Enforce)
	for i := range 5 {
		if v := b.takeAll(charge(general, "alice", 1), charge(special, "alice", 1)); v.Allowed != (i < 3) {
			b.Errorf("call %d to special: %s", i+1, showVerdict(&v))
		}
	}
	for i := range 8 {
		if d := b.take(general, "alice", 1); d.Allowed() != (i < 7) {
			b.Errorf("call %d to hello: %s", i+1, showDecision(&d))
		}
	}
}
