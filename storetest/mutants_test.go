package storetest

import (
	"context"
	"fmt"
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
	for _, p := range slices.Concat(figurePromises, counterPromises, groupPromises, dedupPromises, refundPromises, clockPromises, editPromises) {
		try(p.name, func(q *quiet) { p.check(&bench{TB: q, Fixture: newFixture(), now: epoch}) })
	}
	for _, tr := range traces(t) {
		try(tr.Name, func(q *quiet) { tr.Replay(q, newFixture()) })
	}
	return names
}

// ofRefund changes refunds only.
func ofRefund(change func(g *stint.Group)) func(g *stint.Group) {
	return func(g *stint.Group) {
		if g.Op == stint.Refund {
			change(g)
		}
	}
}

// receipts changes the receipts of a group.
func receipts(g *stint.Group, change func(at int64) int64) {
	for _, c := range g.Charges() {
		c.At = change(c.At)
	}
}

// forgiving is a store that takes a charge for a new one although it was
// refunded.
type forgiving struct {
	stint.Store
	refunded map[stint.EvaluationID]bool
}

func (s forgiving) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	switch {
	case g.Op == stint.Refund:
		s.refunded[g.ID] = true
	case s.refunded[g.ID]:
		g.ID = stint.EvaluationID{}
	}
	return s.Store.Decide(ctx, g)
}

// TestSuiteFindsFaults: a suite that any store passes proves nothing.
func TestSuiteFindsFaults(t *testing.T) {
	enforced, n := map[*stint.Policy]*stint.Policy{}, 0
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
		{"refunds give nothing back", mutant{asked: ofRefund(func(g *stint.Group) { g.Op = stint.Peek })}},
		{"refunds are charges", mutant{asked: ofRefund(func(g *stint.Group) { g.Op, g.ID = stint.Take, stint.EvaluationID{} })}},
		{"every refund is the first", mutant{asked: ofRefund(func(g *stint.Group) { n++; g.ID = id(fmt.Sprint("other ", n)) })}},
		{"refunds need no receipt", mutant{asked: ofRefund(func(g *stint.Group) { receipts(g, func(int64) int64 { return g.Now }) })}},
		{"receipts are not read", mutant{asked: ofRefund(func(g *stint.Group) { receipts(g, func(int64) int64 { return 0 }) })}},
		{"receipts never grow old", mutant{asked: ofRefund(func(g *stint.Group) {
			receipts(g, func(at int64) int64 { return max(at, min(at, 1)*g.Now) })
		})}},
		{"refunds give one back", mutant{asked: ofRefund(func(g *stint.Group) {
			for _, c := range g.Charges() {
				c.Cost = 1
			}
		})}},
		{"refunds undo the first charge only", mutant{asked: ofRefund(func(g *stint.Group) {
			first := newGroup(g.Op, g.ID, g.Now, []stint.Charge{*g.Charge(0)})
			*g = first
		})}},
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
	t.Run("a charge that comes after its refund is spent", func(t *testing.T) {
		names := broken(t, func() Fixture {
			s := memstore.New(memstore.Config{})
			return Fixture{Store: forgiving{s, map[stint.EvaluationID]bool{}}, Forget: func() error { s.Reset(); return nil }}
		})
		if !slices.Contains(names, "a charge that meets its refund spends nothing") {
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
