package memstore_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
	"github.com/stintlimit/stint/storetest"
)

// reference decides as the contract reads, one sentence after another, with
// maps and no thought of speed. It forgets nothing by itself.
type reference struct {
	counters map[place]written
	records  map[place][]remembered
}

type place struct {
	key     string
	subject stint.Pseudonym
}

type written struct {
	at     int64
	states []algorithm.State
}

type remembered struct {
	id      stint.EvaluationID
	payload [16]byte
	refund  bool
	expires int64
	size    int
	verdict stint.Verdict
}

// evaluated is one charge: its states before spending, and who refuses it.
type evaluated struct {
	states []algorithm.State
	waits  []int64
	eff    int64
	passes bool
	failed bool
}

func (s *reference) Decide(_ context.Context, g stint.Group) (stint.Verdict, error) {
	first := g.Charge(0)
	home := place{first.Policy.Key(), first.Subject}
	records := g.Op != stint.Peek && !g.ID.IsZero() && !first.Policy.Dedup.Off
	if records {
		for _, r := range s.records[home] {
			if r.id == g.ID && r.expires > g.Now {
				if g.Op == stint.Refund && !r.refund && r.payload == g.Payload() {
					return s.refund(&g, &r)
				}
				return r.answer(&g)
			}
		}
	}
	if g.Op == stint.Refund {
		return s.refund(&g, nil)
	}
	var all []evaluated
	commits, spends := g.Op == stint.Take, false
	for _, c := range g.Charges() {
		e, reason := s.evaluate(c, g.Now)
		if reason != "" && c.Policy.Mode == stint.Enforce {
			return stint.Verdict{}, &stint.Error{Reason: reason}
		}
		e.failed = reason != ""
		e.passes = e.passes && !e.failed
		commits = commits && (e.passes || c.Policy.Mode == stint.Shadow)
		spends = spends || e.passes
		all = append(all, e)
	}
	spends = spends && commits
	var v stint.Verdict
	for i, c := range g.Charges() {
		v.Append(all[i].decide(c, g.Now, spends))
	}
	if !spends {
		return v, nil
	}
	if records && !s.remember(&g, v, true) {
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected}
	}
	for i, c := range g.Charges() {
		if all[i].passes {
			s.counters[place{c.Policy.Key(), c.Subject}] = written{all[i].eff, all[i].states}
		}
	}
	return v, nil
}

// remember keeps an answer, within the bounds if it must be, and reports
// whether it could.
func (s *reference) remember(g *stint.Group, v stint.Verdict, bounded bool) bool {
	first := g.Charge(0)
	home := place{first.Policy.Key(), first.Subject}
	kept := s.records[home]
	for len(kept) > 0 && kept[0].expires <= g.Now {
		kept = kept[1:]
	}
	bytes := v.RecordSize()
	for _, r := range kept {
		bytes += r.size
	}
	if bounded && (len(kept) >= first.Policy.Dedup.MaxEntries || bytes > first.Policy.Dedup.MaxBytes) {
		return false
	}
	var others []remembered
	for _, r := range kept {
		if r.id != g.ID || g.Op != stint.Refund {
			others = append(others, r)
		}
	}
	s.records[home] = append(others, remembered{
		g.ID, g.Payload(), g.Op == stint.Refund, g.Now + first.Policy.Dedup.TTL.Milliseconds(), v.RecordSize(), v,
	})
	return true
}

// refund undoes what an evaluation spent, by its record or by receipts.
func (s *reference) refund(g *stint.Group, r *remembered) (v stint.Verdict, err error) {
	after := map[place]written{}
	for i, c := range g.Charges() {
		looked := *c
		looked.Cost = 0
		e, reason := s.evaluate(&looked, g.Now)
		if reason != "" && c.Policy.Mode == stint.Enforce {
			return stint.Verdict{}, &stint.Error{Reason: reason}
		}
		e.failed = reason != ""
		at, spent := c.At, c.At != 0
		if r != nil {
			d := r.verdict.Decision(i)
			at, spent = d.At, d.Outcome == stint.Allowed
		}
		for l := range e.states {
			before := e.states[l]
			if spent && !e.failed {
				e.states[l] = algorithm.Refund(&c.Policy.Terms()[l], before, at, e.eff, c.Cost)
			}
			if e.states[l].Spent != before.Spent {
				after[place{c.Policy.Key(), c.Subject}] = written{e.eff, e.states}
			}
		}
		v.Append(e.decide(&looked, g.Now, false))
	}
	if !s.remember(g, v, r == nil) {
		return stint.Verdict{}, &stint.Error{Reason: stint.AdmissionRejected}
	}
	maps.Copy(s.counters, after)
	return v, nil
}

func (r *remembered) answer(g *stint.Group) (stint.Verdict, error) {
	if r.payload != g.Payload() || r.refund != (g.Op == stint.Refund) {
		return stint.Verdict{}, &stint.Error{Reason: stint.EvaluationMismatch}
	}
	return each(r.verdict, func(d *stint.Decision) { d.Replayed = true }), nil
}

func each(v stint.Verdict, change func(*stint.Decision)) (changed stint.Verdict) {
	for i := range v.Len() {
		d := v.Decision(i)
		change(&d)
		changed.Append(d)
	}
	return changed
}

func (s *reference) evaluate(c *stint.Charge, now int64) (evaluated, stint.Reason) {
	old, known := s.counters[place{c.Policy.Key(), c.Subject}]
	e := evaluated{eff: now, passes: true}
	if known {
		e.eff = max(now, old.at)
	}
	for i := range c.Policy.Terms() {
		t := &c.Policy.Terms()[i]
		state := algorithm.Fresh(t, now)
		if known {
			var ok bool
			if state, ok = algorithm.Advance(t, old.states[i], old.at, e.eff); !ok {
				return e, stint.StateIncompatible
			}
		}
		wait := algorithm.Wait(t, state, e.eff, c.Cost)
		e.states, e.waits = append(e.states, state), append(e.waits, wait)
		e.passes = e.passes && wait == 0
	}
	if known && old.at-now > c.Policy.MaximumClockRegression.Milliseconds() {
		return e, stint.ClockUnsafe
	}
	return e, ""
}

// decide answers one charge; if the group spends and it passes, after it.
func (e *evaluated) decide(c *stint.Charge, now int64, spends bool) (d stint.Decision) {
	if e.failed {
		d.Outcome = stint.ShadowFailed
		return d
	}
	after := func(instant int64) int64 {
		if instant == 0 {
			return 0
		}
		return instant - now
	}
	for i := range e.states {
		t := &c.Policy.Terms()[i]
		if spends && e.passes {
			e.states[i].Spent += c.Cost
		}
		d.Add(t, stint.Figures{
			Remaining:  algorithm.Remaining(t, e.states[i], e.eff),
			RetryAfter: after(e.waits[i]),
			MoreAfter:  after(algorithm.MoreAt(t, e.states[i], e.eff)),
			ResetAfter: after(algorithm.WholeAt(t, e.states[i], e.eff)),
		})
	}
	d.Conclude(c.Policy.Mode, e.eff)
	return d
}

func newReference() storetest.Fixture {
	s := &reference{counters: map[place]written{}, records: map[place][]remembered{}}
	return storetest.Fixture{Store: s, Forget: func() error { clear(s.counters); clear(s.records); return nil }}
}

// TestAgreesWithReference: what is fast is what was promised.
func TestAgreesWithReference(t *testing.T) {
	for seed := range uint64(40) {
		storetest.Agree(t, newFixture(t), newReference(), seed, 500)
	}
}
