package memstore

import (
	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// refund gives back what the charges of an evaluation still hold, and keeps r
// in place of the record of it, which is old; nil: it is not remembered. It
// answers in v, which is zero. Bounds are checked before the first change.
func (s *Store) refund(g *stint.Group, d *desk, old, r *record, v *stint.Verdict) error {
	for i := range d.parts {
		p := &d.parts[i]
		if err := s.look(p, g.Now); err != nil {
			if p.charge.Policy.Mode == stint.Enforce {
				return err
			}
			p.failed = true
			continue
		}
		if at, spent := receipt(&p.charge, old, i); spent {
			p.giveBack(at, p.charge.Cost)
		}
	}
	if old == nil && !s.mayRecord(g, d.parts) {
		return errUnkept
	}
	if err := s.home(g, d); err != nil {
		return err
	}
	for i := range d.parts {
		if p := &d.parts[i]; p.gains {
			p.write(s.shard(p), s.stored(p), p.charge.Policy)
		}
	}
	s.keep(g, d.parts, r)
	answer(v, g, d.parts)
	return nil
}

// look evaluates a part as if it cost nothing, so that no limit refuses it.
func (s *Store) look(p *part, now int64) error {
	t := &s.shard(p).table
	free := p.charge
	free.Cost = 0
	return p.read(t, t.live(&p.charge, p.hash, now), &free, now)
}

// receipt returns when charge i of a refund was spent, and whether it was: as
// the record says or, if there is none, the caller.
func receipt(c *stint.Charge, old *record, i int) (at int64, spent bool) {
	if old == nil {
		return c.At, c.At != 0
	}
	d := old.verdict.Decision(i)
	return d.At, d.Outcome == stint.Allowed
}

// giveBack takes from the states what a charge of cost, spent at the instant
// at, still holds.
func (p *part) giveBack(at, cost int64) {
	for i := range p.limbs {
		l := &p.limbs[i]
		before := l.state.Spent
		l.state = algorithm.Refund(&p.terms[i], l.state, at, p.eff, cost)
		p.gains = p.gains || l.state.Spent != before
	}
}

// home makes the first counter where it is missing, since records lie beside
// it. What it then holds was never written, and is read as a fresh budget.
func (s *Store) home(g *stint.Group, d *desk) error {
	p := &d.parts[0]
	sh := s.shard(p)
	if sh.table.live(&p.charge, p.hash, g.Now) != nil {
		return nil
	}
	s.dropExpired(sh, &p.charge, p.hash, g.Now)
	if !s.reserve(g.Now, d.locked...) {
		return errFull
	}
	for _, sh := range d.locked {
		s.sweep(sh, g.Now)
	}
	c := sh.table.insert(&p.charge, p.hash)
	if n := len(p.terms) - 1; n > 0 {
		sh.table.extend(c).states = make([]algorithm.State, n)
	}
	return nil
}
