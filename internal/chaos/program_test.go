package chaos

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// lossy is a store whose answers are sometimes lost, after it has decided.
type lossy struct {
	stint.Store
	calls int
	every int
}

func (s *lossy) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	v, err := s.Store.Decide(ctx, g)
	if s.calls++; s.calls%s.every == 0 {
		return stint.Verdict{}, &stint.Error{Reason: stint.OutcomeUnknown}
	}
	return v, err
}

// Programs run on the store in memory, in bubble time, and everything that
// they may spend on is audited.
func TestAProgramOnAGoodStoreIsGreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lossy{Store: memstore.New(memstore.Config{}), every: 20}
		start := time.Now()
		p := &Program{
			Seed: 1, Process: 1, Clock: CallerClock, Prefix: "p", Callers: 1, Pause: 5 * time.Millisecond, Repeat: time.Second,
			Start: start.UnixMicro(), Until: start.Add(3 * time.Second).UnixMicro(),
		}
		var b bytes.Buffer
		r := NewRecorder(&b)
		if err := p.Run(t.Context(), store, r); err != nil {
			t.Fatal(err)
		}
		wait(t.Context(), p.Settle())
		l, err := stint.New(store.Store, Policies())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Counters() {
			now := time.Now().UnixMicro()
			d, err := l.Peek(t.Context(), stint.Request{Policy: c.Policy, Subject: c.Subject})
			if err != nil {
				t.Fatal(err)
			}
			r.Audit(Audit{Counter: Key("p", c.Subject, l.Policy(c.Policy)), Policy: c.Policy, Called: now, Returned: now, Remaining: d.Remaining, TTL: -2})
		}
		h, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		report := Check(h, frozen(t))
		if len(report.Violations) > 0 || report.Compared == 0 || report.Ordered == 0 || report.Resolved == 0 || report.Outcomes["replayed"] == 0 || report.Outcomes["refunded"] == 0 {
			t.Errorf("%v", report)
		}
	})
}

func TestASeedGivesTheSameSchedule(t *testing.T) {
	for seed := range uint64(50) {
		s := Schedule(seed, time.Minute)
		if diff := cmp.Diff(s, Schedule(seed, time.Minute)); diff != "" {
			t.Fatal(diff)
		}
		kills, last := 0, -lossesApart
		for _, step := range s {
			if step.Deed == KillServer || step.Deed == FlushData {
				if step.Deed == KillServer {
					kills++
				}
				if step.Begin-last < lossesApart {
					t.Errorf("seed %d loses data at %v and at %v", seed, last, step.Begin)
				}
				last = step.Begin
			}
		}
		if kills == 0 {
			t.Errorf("seed %d kills no server", seed)
		}
	}
	if slices.Equal(Schedule(1, time.Minute), Schedule(2, time.Minute)) {
		t.Error("two seeds give one schedule")
	}
}

func TestClocksStepAndGoFar(t *testing.T) {
	far, near := 0, 0
	for step := range 1000 {
		at := time.Duration(step) * driftStep
		d := drift(1, 1, at, 10)
		if d != drift(1, 1, at+driftStep-1, 10) {
			t.Fatal("a clock moved within a step")
		}
		if d.Abs() > MaximumClockSkew {
			far++
		}
		if d.Abs() < 20*time.Millisecond {
			near++
		}
	}
	if far < 30 || far > 100 || near < 300 {
		t.Errorf("%d steps go far and %d stay near, of 1000", far, near)
	}
}
