package storetest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// tampered changes what a store answers.
type tampered struct {
	stint.Store
	change func(g *stint.Group, v stint.Verdict, err error) (stint.Verdict, error)
}

func (s tampered) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	v, err := s.Store.Decide(ctx, g)
	return s.change(&g, v, err)
}

// each rebuilds a verdict with every decision changed.
func each(v stint.Verdict, change func(*stint.Decision)) stint.Verdict {
	var changed stint.Verdict
	for i := range v.Len() {
		d := v.Decision(i)
		change(&d)
		changed.Append(d)
	}
	return changed
}

// fatal runs f with a TB whose Fatalf ends it, and returns what that said.
func fatal(t *testing.T, f func(testing.TB)) (message string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&stopper{TB: t, message: &message})
	}()
	<-done
	return message
}

type stopper struct {
	testing.TB
	message *string
}

func (s *stopper) Helper() {}
func (s *stopper) Fatalf(format string, args ...any) {
	*s.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAgreeFindsEveryKindOfDifference(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(g *stint.Group, v stint.Verdict, err error) (stint.Verdict, error)
		want   string
	}{
		{"a decision's instant", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			return each(v, func(d *stint.Decision) { d.At++ }), err
		}, "At:"},
		{"a wait that is a millisecond long", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			return each(v, func(d *stint.Decision) {
				if d.Outcome == stint.Denied {
					d.RetryAfter += 1e6
				}
			}), err
		}, "RetryAfter:"},
		{"a replay that does not say so", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			return each(v, func(d *stint.Decision) { d.Replayed = false }), err
		}, "Replayed:"},
		{"another reason", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			if stint.ReasonOf(err) == stint.ClockUnsafe {
				err = &stint.Error{Reason: stint.NoMutation}
			}
			return v, err
		}, "CLOCK_UNSAFE"},
		{"no verdict and no error", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			if v.Len() == 0 {
				err = nil
			}
			return v, err
		}, "and no error"},
		{"an error that is no *stint.Error", func(_ *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
			if err != nil {
				return stint.Verdict{}, context.Canceled
			}
			return v, err
		}, "an error that is no *stint.Error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := newFixture(t), newFixture(t)
			b.Store = tampered{b.Store, c.change}
			message := fatal(t, func(t testing.TB) { storetest.Agree(t, a, b, 7, 2000) })
			if !strings.Contains(message, c.want) || !strings.Contains(message, "seed 7, step ") {
				t.Errorf("got %q, want it to name seed, step and %s", message, c.want)
			}
		})
	}
}

func TestAgreeFindsAStoreThatSpendsOnDenial(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	leaky := memstore.New(memstore.Config{})
	b.Store = tampered{leaky, func(g *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
		if err == nil && !v.Allowed && g.Op == stint.Take {
			c := *g.Charge(0)
			c.Cost = 1
			extra := stint.Group{Now: g.Now}
			extra.Append(c)
			if _, err := leaky.Decide(context.Background(), extra); err != nil {
				return stint.Verdict{}, err
			}
		}
		return v, err
	}}
	if message := fatal(t, func(t testing.TB) { storetest.Agree(t, a, b, 7, 2000) }); message == "" {
		t.Error("Agree took a store that spends on denial for a sound one")
	}
}

// refunds counts what becomes of refunds, and of what meets them.
type refunds struct {
	stint.Store
	seen map[string]int
	of   map[stint.EvaluationID]bool // true: refunded; false: spent
}

func (s refunds) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	look := g
	look.Op = stint.Peek
	before, _ := s.Store.Decide(ctx, look)
	v, err := s.Store.Decide(ctx, g)
	refunded, known := s.of[g.ID]
	switch {
	case g.Op == stint.Take && refunded && stint.ReasonOf(err) == stint.EvaluationMismatch:
		s.seen["charges that meet a refund"]++
	case g.Op == stint.Take && err == nil && v.Allowed:
		s.of[g.ID] = false
	case g.Op != stint.Refund:
	case err != nil:
		s.seen["refunds with an error"]++
	case replayed(&v):
		s.seen["refunds replayed"]++
	default:
		s.of[g.ID] = true
		switch {
		case !more(&before, &v):
			s.seen["refunds of nothing"]++
		case known:
			s.seen["refunds that give back"]++
		default:
			s.seen["refunds that give back by receipt"]++
		}
	}
	return v, err
}

func replayed(v *stint.Verdict) bool {
	for i := range v.Len() {
		if v.Decision(i).Replayed {
			return true
		}
	}
	return false
}

// more reports whether any counter has more left than before.
func more(before, after *stint.Verdict) bool {
	for i := range min(before.Len(), after.Len()) {
		if after.Decision(i).Remaining > before.Decision(i).Remaining {
			return true
		}
	}
	return false
}

// TestAgreeGoesEverywhere keeps programs interesting: all that can be answered
// is answered, and often.
func TestAgreeGoesEverywhere(t *testing.T) {
	seen := map[string]int{}
	count := func(g *stint.Group, v stint.Verdict, err error) (stint.Verdict, error) {
		if err != nil {
			seen[string(stint.ReasonOf(err))]++
		}
		for i := range v.Len() {
			d := v.Decision(i)
			seen[d.Outcome.String()]++
			if d.Replayed {
				seen["replayed"]++
			}
			if d.At > g.Now {
				seen["raised"]++
			}
			if d.RetryAfter > 0 && d.Remaining > 0 {
				seen["denied with something left"]++
			}
			if d.Limits() > 1 && d.Limit > 0 {
				seen["a later limit binds"]++
			}
		}
		if v.Len() > 1 {
			seen[fmt.Sprintf("group allowed=%v", v.Allowed)]++
		}
		return v, err
	}
	for seed := range uint64(20) {
		a, b := newFixture(t), newFixture(t)
		a.Store = tampered{refunds{Store: a.Store, seen: seen, of: map[stint.EvaluationID]bool{}}, count}
		storetest.Agree(t, a, b, seed, 500)
	}
	for _, what := range []string{
		"allowed", "denied", "shadow_denied", "shadow_failed", "replayed", "raised", "denied with something left", "a later limit binds",
		"group allowed=true", "group allowed=false", "EVALUATION_MISMATCH", "ADMISSION_REJECTED", "CLOCK_UNSAFE",
		"refunds that give back", "refunds that give back by receipt", "refunds of nothing", "refunds replayed", "refunds with an error", "charges that meet a refund",
	} {
		if seen[what] < 50 {
			t.Errorf("%s: met %d times in 10,000 steps", what, seen[what])
		}
	}
	t.Log(seen)
}
