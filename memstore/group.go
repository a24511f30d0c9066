package memstore

import (
	"slices"

	"github.com/stintlimit/stint"
)

// part is one charge of a group on its way.
type part struct {
	plan
	charge stint.Charge // a copy: a pointer would move the group to the heap
	hash   uint64
	failed bool // a shadow that could not be evaluated
	gains  bool // a refund gives something back
}

// spends reports whether the charge is spent if the group commits.
func (p *part) spends() bool { return p.passes && !p.failed }

func (s *Store) shard(p *part) *shard { return &s.shards[s.shardOf(p.hash)] }

// stored returns the counter of a part, or nil.
func (s *Store) stored(p *part) *counter { return s.shard(p).table.find(&p.charge, p.hash) }

// desk is where a group is laid out. A store keeps some, since a group on the
// heap would cost more than deciding it.
type desk struct {
	parts  []part
	limbs  []limb
	places []int
	locked []*shard
}

// lay spreads a group out.
func (s *Store) lay(d *desk, g *stint.Group) {
	limits := 0
	for i := range g.Len() {
		c := g.Charge(i)
		terms := c.Policy.Terms()
		limits += len(terms)
		d.parts = append(d.parts, part{plan: plan{terms: terms}, charge: *c, hash: s.hash(c)})
		d.places = append(d.places, s.shardOf(d.parts[i].hash))
	}
	d.limbs = slices.Grow(d.limbs, limits)
	limbs := d.limbs[:limits]
	for i := range d.parts {
		n := len(d.parts[i].terms)
		d.parts[i].limbs, limbs = limbs[:n:n], limbs[n:]
	}
}

// lock locks the shards of all parts, each once, in ascending order.
func (s *Store) lock(d *desk) {
	slices.Sort(d.places)
	for _, place := range slices.Compact(d.places) {
		sh := &s.shards[place]
		sh.mu.Lock()
		d.locked = append(d.locked, sh)
	}
}

// leave unlocks the shards and keeps nothing of the group.
func (s *Store) leave(d *desk) {
	for _, sh := range d.locked {
		sh.mu.Unlock()
	}
	clear(d.parts)
	d.parts, d.places, d.locked = d.parts[:0], d.places[:0], d.locked[:0]
	s.desks.Put(d)
}

// decideGroup decides any group. The shards of all its counters are locked
// from the first look to the last write.
func (s *Store) decideGroup(g *stint.Group, v *stint.Verdict) error {
	d := s.desks.Get().(*desk)
	s.lay(d, g)
	s.lock(d)
	defer s.leave(d)
	if !remembers(g) {
		return s.commit(g, d, nil, v)
	}
	r := &record{id: g.ID.Bytes(), payload: payload(*g), refund: g.Op == stint.Refund}
	old := s.recall(d, r.id, g.Now)
	switch {
	case old != nil && (old.payload != r.payload || old.refund && !r.refund):
		return errMismatch
	case old != nil && old.refund == r.refund:
		*v = old.replayed()
		return nil
	case r.refund:
		return s.refund(g, d, old, r, v)
	}
	return s.commit(g, d, r, v)
}

// recall returns the live record of an id, or nil.
func (s *Store) recall(d *desk, id [16]byte, now int64) *record {
	if l := s.ledger(&d.parts[0]); l != nil {
		return l.find(id, now)
	}
	return nil
}

// payload takes a copy, since hashing it moves the group to the heap.
func payload(g stint.Group) [16]byte { return g.Payload() }

// ledger returns the records beside a part's counter, or nil.
func (s *Store) ledger(p *part) *ledger {
	if c := s.stored(p); c != nil {
		if m := s.shard(p).table.beyond(c); m != nil {
			return &m.ledger
		}
	}
	return nil
}

// commit evaluates every part, writes the group if it may be spent, and
// answers in v, which is zero. r is the record to keep of an admission, or nil.
func (s *Store) commit(g *stint.Group, d *desk, r *record, v *stint.Verdict) error {
	commits, spends := g.Op == stint.Take, false
	for i := range d.parts {
		p := &d.parts[i]
		t := &s.shard(p).table
		if err := p.read(t, t.live(&p.charge, p.hash, g.Now), &p.charge, g.Now); err != nil {
			if p.charge.Policy.Mode == stint.Enforce {
				return err
			}
			p.failed = true
		}
		commits = commits && (p.passes || p.charge.Policy.Mode == stint.Shadow)
		spends = spends || p.spends()
	}
	if commits && spends {
		if err := s.write(g, d, r); err != nil {
			return err
		}
	}
	answer(v, g, d.parts)
	return nil
}

// answer writes the verdict on the parts as they are.
func answer(v *stint.Verdict, g *stint.Group, parts []part) {
	for i := range parts {
		var d stint.Decision
		if p := &parts[i]; p.failed {
			d.Outcome = stint.ShadowFailed
		} else {
			p.answer(&d, &p.charge, g.Now)
		}
		v.Append(d)
	}
}
