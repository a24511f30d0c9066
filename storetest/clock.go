package storetest

import (
	"time"

	"github.com/stintlimit/stint"
)

// clockPromises are about a caller's clock that goes back.
var clockPromises = []promise{
	{"a clock that is a little behind is raised, and figures count from it", clockIsRaised},
	{"a clock beyond MaximumClockRegression is refused", clockIsRefused},
	{"one unsafe charge refuses its group", clockRefusesGroup},
	{"a peek in the future moves no clock", peekMovesNoClock},
	{"an older timestamp refills nothing", oldTimestampRefillsNothing},
	{"a counter that was never seen takes any clock", freshTakesAnyClock},
}

func clockIsRaised(b *bench) {
	p := policy(b, stint.Policy{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: 4, Refill: 2, Every: 2 * time.Second}}})
	b.at(10 * time.Second)
	b.take(p, "alice", 3)
	b.at(7 * time.Second)
	d := b.take(p, "alice", 2)
	if d.Outcome != stint.Denied || d.At != epoch+10_000 || d.Remaining != 1 ||
		d.RetryAfter != 5*time.Second || d.MoreAfter != 5*time.Second || d.ResetAfter != 7*time.Second {
		b.Errorf("3s behind: %s", showDecision(&d))
	}
	if d := b.take(p, "alice", 1); d.Outcome != stint.Allowed || d.At != epoch+10_000 {
		b.Errorf("3s behind: %s", showDecision(&d))
	}
	b.at(12 * time.Second)
	if d := b.take(p, "alice", 2); d.Outcome != stint.Allowed || d.Remaining != 0 {
		b.Errorf("after the advertised wait: %s", showDecision(&d))
	}
}

func clockIsRefused(b *bench) {
	p := policy(b, stint.Policy{
		ID: "window", MaximumClockRegression: 1500 * time.Millisecond, Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}},
	})
	b.at(10 * time.Second)
	b.take(p, "alice", 1)
	b.at(8500 * time.Millisecond)
	if d := b.take(p, "alice", 1); d.Outcome != stint.Allowed {
		b.Errorf("at the bound: %s", showDecision(&d))
	}
	b.at(8499 * time.Millisecond)
	for _, op := range []stint.Op{stint.Take, stint.Peek} {
		b.refused(stint.ClockUnsafe, b.group(op, stint.EvaluationID{}, charge(p, "alice", 1)))
	}
	b.at(10 * time.Second)
	b.left(p, "alice", 7)
}

func clockRefusesGroup(b *bench) {
	p, q := window(b, "one", 9, stint.Enforce), window(b, "two", 9, stint.Enforce)
	b.at(time.Hour)
	b.take(p, "alice", 1)
	b.at(0)
	b.refused(stint.ClockUnsafe, b.group(stint.Take, stint.EvaluationID{}, charge(q, "alice", 1), charge(p, "alice", 1)))
	b.left(q, "alice", 9)
}

func peekMovesNoClock(b *bench) {
	p := window(b, "one", 9, stint.Enforce)
	b.take(p, "alice", 9)
	b.at(20 * time.Second)
	b.peek(p, "alice", 1)
	b.take(p, "alice", 1)
	b.at(0)
	if d := b.peek(p, "alice", 1); d.At != epoch {
		b.Errorf("a peek and a denial moved the clock: %s", showDecision(&d))
	}
}

// oldTimestampRefillsNothing is case C17.
func oldTimestampRefillsNothing(b *bench) {
	for _, c := range []struct {
		regression time.Duration
		refused    bool
	}{{10 * time.Second, false}, {9 * time.Second, true}} {
		if err := b.Forget(); err != nil {
			b.Fatal(err)
		}
		p := policy(b, stint.Policy{
			ID: "bucket", MaximumClockRegression: c.regression,
			Limits: []stint.Limit{stint.TokenBucket{Capacity: 4, Refill: 2, Every: time.Second}},
		})
		five := func(allowed int) {
			for i := range 5 {
				if d := b.take(p, "alice", 1); d.Allowed() != (i < allowed) {
					b.Errorf("regression %v, call %d: %s", c.regression, i+1, showDecision(&d))
				}
			}
		}
		b.at(time.Minute)
		five(4)
		b.at(50 * time.Second)
		if c.refused {
			b.refused(stint.ClockUnsafe, b.group(stint.Take, stint.EvaluationID{}, charge(p, "alice", 1)))
		} else if d := b.take(p, "alice", 1); d.Outcome != stint.Denied {
			b.Errorf("10s behind: %s", showDecision(&d))
		}
		b.at(time.Minute)
		five(0)
	}
}

func freshTakesAnyClock(b *bench) {
	p := window(b, "one", 9, stint.Enforce)
	b.at(24 * time.Hour)
	b.take(p, "alice", 1)
	b.at(0)
	if d := b.take(p, "bob", 1); d.Outcome != stint.Allowed || d.At != epoch {
		b.Errorf("a counter of its own has a clock of its own: %s", showDecision(&d))
	}
}
