package storetest

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// mutant is a store with one fault.
type mutant struct {
	stint.Store
	asked    func(g *stint.Group)
	answered func(g *stint.Group, d *stint.Decision)
}

func (m mutant) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	asked := newGroup(g.Op, g.ID, g.Now, nil)
	for _, c := range g.Charges() {
		asked.Append(*c)
	}
	if m.asked != nil {
		m.asked(&asked)
	}
	v, err := m.Store.Decide(ctx, asked)
	if err != nil || m.answered == nil {
		return v, err
	}
	var changed stint.Verdict
	for i := range v.Len() {
		d := v.Decision(i)
		m.answered(&g, &d)
		changed.Append(d)
	}
	return changed, nil
}

// apart is a store that decides the charges of a group one by one.
type apart struct{ stint.Store }

func (s apart) Decide(ctx context.Context, g stint.Group) (v stint.Verdict, err error) {
	for _, c := range g.Charges() {
		one, err := s.Store.Decide(ctx, newGroup(g.Op, g.ID, g.Now, []stint.Charge{*c}))
		if err != nil {
			return stint.Verdict{}, err
		}
		v.Append(one.Decision(0))
	}
	return v, nil
}

// quiet is a testing.TB that notes failure and keeps it to itself.
type quiet struct {
	testing.TB
	failed bool
}

func (q *quiet) Helper()               {}
func (q *quiet) Error(...any)          { q.failed = true }
func (q *quiet) Errorf(string, ...any) { q.failed = true }
func (q *quiet) Fatal(...any)          { q.failed = true; runtime.Goexit() }
func (q *quiet) Fatalf(string, ...any) { q.failed = true; runtime.Goexit() }

// broken lists the promises and traces that a store breaks. What callers at the
// same time find is a matter of luck, and left out.
func broken(t *testing.T, newFixture func() Fixture) (names []string) {
	t.Helper()
	try := func(name string, check func(q *quiet)) {
		q := &quiet{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			check(q)
		}()
		if <-done; q.failed {
			names = append(names, name)
		}
	}
	for _, p := range slices.Concat(figurePromises, counterPromises, groupPromises, dedupPromises, clockPromises, editPromises) {
		try(p.name, func(q *quiet) { p.check(&bench{TB: q, Fixture: newFixture(), now: epoch}) })
	}
	for _, tr := range traces(t) {
		try(tr.Name, func(q *quiet) { tr.Replay(q, newFixture()) })
	}
	return names
}

// TestSuiteFindsFaults: a suite that any store passes proves nothing.
func TestSuiteFindsFaults(t *testing.T) {
	enforced := map[*stint.Policy]*stint.Policy{}
	for _, c := range []struct {
		name  string
		fault mutant
	}{
		{"peeks spend", mutant{asked: func(g *stint.Group) { g.Op = stint.Take }}},
		{"ids are ignored", mutant{asked: func(g *stint.Group) { g.ID = stint.EvaluationID{} }}},
		{"every id is one", mutant{asked: func(g *stint.Group) {
			if !g.ID.IsZero() {
				g.ID = id("one")
			}
		}}},
		{"the clock is a second slow", mutant{asked: func(g *stint.Group) { g.Now -= 1000 }}},
		{"the clock counts whole seconds", mutant{asked: func(g *stint.Group) { g.Now -= g.Now % 1000 }}},
		{"versions of pseudonyms are ignored", mutant{asked: func(g *stint.Group) {
			for _, c := range g.Charges() {
				c.Subject.Version = 0
			}
		}}},
		{"subjects are cut short", mutant{asked: func(g *stint.Group) {
			for _, c := range g.Charges() {
				c.Subject.Digest[4] = 0
			}
		}}},
		{"a cost counts double", mutant{asked: func(g *stint.Group) {
			for _, c := range g.Charges() {
				c.Cost = min(2*c.Cost, c.Policy.MaximumCost)
			}
		}}},
		{"shadows are enforced", mutant{asked: func(g *stint.Group) {
			for _, c := range g.Charges() {
				if c.Policy.Mode == stint.Shadow {
					if enforced[c.Policy] == nil {
						p := *c.Policy
						p.Mode = stint.Enforce
						enforced[c.Policy] = policy(t, p)
					}
					c.Policy = enforced[c.Policy]
				}
			}
		}}},
		{"waits are a millisecond short", mutant{answered: func(_ *stint.Group, d *stint.Decision) {
			d.RetryAfter = max(0, d.RetryAfter-time.Millisecond)
		}}},
		{"waits are a millisecond long", mutant{answered: func(_ *stint.Group, d *stint.Decision) {
			if d.RetryAfter > 0 {
				d.RetryAfter += time.Millisecond
			}
		}}},
		{"waits count from the raised clock", mutant{answered: func(g *stint.Group, d *stint.Decision) {
			if behind := time.Duration(d.At-g.Now) * time.Millisecond; d.RetryAfter > behind {
				d.RetryAfter -= behind
			}
		}}},
		{"more comes when all comes", mutant{answered: func(_ *stint.Group, d *stint.Decision) { d.MoreAfter = d.ResetAfter }}},
		{"more comes with the retry", mutant{answered: func(_ *stint.Group, d *stint.Decision) {
			if d.RetryAfter > 0 {
				d.MoreAfter = d.RetryAfter
			}
		}}},
		{"replays do not say so", mutant{answered: func(_ *stint.Group, d *stint.Decision) { d.Replayed = false }}},
		{"one too many remains", mutant{answered: func(_ *stint.Group, d *stint.Decision) { d.Remaining++ }}},
		{"a shadow's failure passes for an answer", mutant{answered: func(_ *stint.Group, d *stint.Decision) {
			if d.Outcome == stint.ShadowFailed {
				d.Outcome = stint.Allowed
			}
		}}},
		{"no limit but the first is told", mutant{answered: func(_ *stint.Group, d *stint.Decision) { d.Limit = 0 }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := broken(t, func() Fixture {
				m, s := c.fault, memstore.New(memstore.Config{})
				m.Store = s
				return Fixture{Store: m, Forget: func() error { s.Reset(); return nil }}
			})
			if len(names) == 0 {
				t.Error("no promise is broken by it")
			}
			t.Logf("found by %d: %q", len(names), names)
		})
	}
	t.Run("groups are taken apart", func(t *testing.T) {
		names := broken(t, func() Fixture {
			s := memstore.New(memstore.Config{})
			return Fixture{Store: apart{s}, Forget: func() error { s.Reset(); return nil }}
		})
		if !slices.Contains(names, "a group spends everything or nothing") {
			t.Errorf("only %q are broken by it", names)
		}
	})
	t.Run("nothing is ever forgotten", func(t *testing.T) {
		names := broken(t, func() Fixture {
			return Fixture{Store: memstore.New(memstore.Config{}), Forget: func() error { return nil }}
		})
		if len(names) == 0 {
			t.Error("no promise is broken by it")
		}
	})
	t.Run("none at all", func(t *testing.T) {
		if names := broken(t, func() Fixture {
			s := memstore.New(memstore.Config{})
			return Fixture{Store: s, Forget: func() error { s.Reset(); return nil }}
		}); len(names) != 0 {
			t.Errorf("a sound store breaks %q", names)
		}
	})
}
