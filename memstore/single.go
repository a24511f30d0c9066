package memstore

import (
	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// decideOne decides a group of one charge without a record: nearly all there
// is to decide. What it answers is what decideGroup would.
func (s *Store) decideOne(g *stint.Group, v *stint.Verdict) error {
	c := g.Charge(0)
	h := s.hash(c)
	sh := &s.shards[s.shardOf(h)]
	p := plan{terms: c.Policy.Terms()}
	if len(p.terms) == 1 {
		p.limbs = make([]limb, 1)
	} else {
		p.limbs = make([]limb, stint.MaxLimits)[:len(p.terms)]
	}
	sh.mu.Lock()
	at := sh.table.live(c, h, g.Now)
	err := p.read(&sh.table, at, c, g.Now)
	if err == nil && p.passes && g.Op == stint.Take {
		if at == nil {
			at, err = s.admit(sh, c, h, g.Now)
		}
		if err == nil {
			p.spend(sh, at, c)
		}
	}
	sh.mu.Unlock()
	var d stint.Decision
	switch {
	case err == nil:
		p.answer(&d, c, g.Now)
	case c.Policy.Mode == stint.Shadow:
		d.Outcome = stint.ShadowFailed
	default:
		return err
	}
	v.Append(d)
	return nil
}

// plan is one charge evaluated: what its counter's states are now, and whether
// the charge passes.
type plan struct {
	terms  []stint.Terms
	limbs  []limb // one for each term
	eff    int64  // now, raised to what the counter has seen
	passes bool
}

// limb is one limit of a plan.
type limb struct {
	state algorithm.State // after the charge, once it was spent
	wait  int64           // the instant at which the limit lets the charge pass; 0: now
}

// read evaluates c against the counter at, nil if there is none.
func (p *plan) read(t *table, at *counter, c *stint.Charge, now int64) error {
	p.eff, p.passes = now, true
	if at != nil {
		p.eff = max(now, at.at)
	}
	for i := range p.limbs {
		term, l := &p.terms[i], &p.limbs[i]
		if at == nil {
			l.state = algorithm.Fresh(term, now)
		} else {
			stored, ok := at.state, false
			if i > 0 {
				stored = t.beyond(at).states[i-1]
			}
			if l.state, ok = algorithm.Advance(term, stored, at.at, p.eff); !ok {
				return errState
			}
		}
		l.wait = algorithm.Wait(term, l.state, p.eff, c.Cost)
		p.passes = p.passes && l.wait == 0
	}
	if p.eff-now > c.Policy.MaximumClockRegression.Milliseconds() {
		return errClock
	}
	return nil
}

// spend writes the charge to its counter.
func (p *plan) spend(sh *shard, at *counter, c *stint.Charge) {
	for i := range p.limbs {
		p.limbs[i].state.Spent += c.Cost
	}
	p.write(sh, at, c.Policy)
}

// write writes the states to their counter.
func (p *plan) write(sh *shard, at *counter, policy *stint.Policy) {
	forget := int64(0)
	for i := range p.limbs {
		forget = max(forget, algorithm.ForgetAt(&p.terms[i], p.limbs[i].state, p.eff))
	}
	at.at = p.eff
	at.state = p.limbs[0].state
	at.expires = forget + margin(policy)
	if len(p.limbs) > 1 {
		m := sh.table.extend(at)
		m.states = m.states[:0]
		for _, l := range p.limbs[1:] {
			m.states = append(m.states, l.state)
		}
	}
	if m := sh.table.beyond(at); m != nil {
		at.expires = max(at.expires, m.ledger.expires+m.ledger.margin)
	}
	sh.expiresAt(at.expires)
}

// margin is how much longer than needed a counter is kept, ms: a clock may
// come back by that much and still find it.
func margin(p *stint.Policy) int64 {
	return p.MaximumClockRegression.Milliseconds() + p.CleanupGrace.Milliseconds()
}

// answer writes the decision on the charge to d, which is zero.
func (p *plan) answer(d *stint.Decision, c *stint.Charge, now int64) {
	for i := range p.limbs {
		t, s := &p.terms[i], p.limbs[i].state
		f := stint.Figures{Remaining: algorithm.Remaining(t, s, p.eff)}
		if wait := p.limbs[i].wait; wait != 0 {
			f.RetryAfter = wait - now
		}
		if at := algorithm.MoreAt(t, s, p.eff); at != 0 {
			f.MoreAfter = at - now
		}
		if at := algorithm.WholeAt(t, s, p.eff); at != 0 {
			f.ResetAfter = at - now
		}
		d.Add(t, f)
	}
	d.Conclude(c.Policy.Mode, p.eff)
}
