package memstore

import (
	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// decideOne decides a group of one charge without a record: nearly all there
// is to decide. What it answers is what decideGroup would.
func (s *Store) decideOne(g *stint.Group) (stint.Verdict, error) {
	c := g.Charge(0)
	k := key{c.Policy.Tag(), c.Subject}
	h := s.hash(&k)
	sh := s.shard(h)
	var p plan
	sh.mu.Lock()
	at := s.lookup(sh, &k, h, g.Now)
	err := p.read(&sh.table, at, c, g.Now)
	if err == nil && p.passes && g.Op == stint.Take {
		if at == nil {
			at, err = s.admit(sh, &k, h, g.Now)
		}
		if err == nil {
			p.spend(sh, at, c)
		}
	}
	sh.mu.Unlock()
	var v stint.Verdict
	switch {
	case err == nil:
		v.Append(p.decision(c, g.Now))
	case c.Policy.Mode == stint.Shadow:
		v.Append(stint.Decision{Outcome: stint.ShadowFailed})
		err = nil
	}
	return v, err
}

// plan is one charge evaluated: what its counter's states are now, and whether
// the charge passes.
type plan struct {
	states [stint.MaxLimits]algorithm.State // after the charge once it was spent
	waits  [stint.MaxLimits]int64           // the instant at which a limit lets the charge pass; 0: now
	eff    int64                            // now, raised to what the counter has seen
	passes bool
}

// read evaluates c against the counter at, nil if there is none.
func (p *plan) read(t *table, at *counter, c *stint.Charge, now int64) error {
	terms := c.Policy.Terms()
	p.eff, p.passes = now, true
	if at != nil {
		p.eff = max(now, at.at)
	}
	for i := range terms {
		term := &terms[i]
		if at == nil {
			p.states[i] = algorithm.Fresh(term, now)
		} else {
			stored := at.state
			if i > 0 {
				stored = t.beyond(at).states[i-1]
			}
			next, ok := algorithm.Advance(term, stored, at.at, p.eff)
			if !ok {
				return errState
			}
			p.states[i] = next
		}
		p.waits[i] = algorithm.Wait(term, p.states[i], p.eff, c.Cost)
		p.passes = p.passes && p.waits[i] == 0
	}
	if p.eff-now > c.Policy.MaximumClockRegression.Milliseconds() {
		return errClock
	}
	return nil
}

// spend writes the charge to its counter.
func (p *plan) spend(sh *shard, at *counter, c *stint.Charge) {
	terms := c.Policy.Terms()
	forget := int64(0)
	for i := range terms {
		p.states[i].Spent += c.Cost
		forget = max(forget, algorithm.ForgetAt(&terms[i], p.states[i], p.eff))
	}
	at.at = p.eff
	at.state = p.states[0]
	if n := len(terms); n > 1 {
		m := sh.table.extend(at)
		m.states = append(m.states[:0], p.states[1:n]...)
	}
	at.expires = forget + margin(c.Policy)
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

// decision is the answer to the charge.
func (p *plan) decision(c *stint.Charge, now int64) stint.Decision {
	var d stint.Decision
	terms := c.Policy.Terms()
	for i := range terms {
		t, s := &terms[i], p.states[i]
		f := stint.Figures{Remaining: algorithm.Remaining(t, s, p.eff)}
		if p.waits[i] != 0 {
			f.RetryAfter = p.waits[i] - now
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
	return d
}
