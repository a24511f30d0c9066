package memstore

import (
	"slices"

	"github.com/stintlimit/stint"
)

// part is one charge of a group on its way.
type part struct {
	plan
	charge *stint.Charge
	hash   uint64
	failed bool // a shadow that could not be evaluated
}

// spends reports whether the charge is spent if the group commits.
func (p *part) spends() bool { return p.passes && !p.failed }

func (s *Store) shard(p *part) *shard { return &s.shards[s.shardOf(p.hash)] }

// stored returns the counter of a part, or nil.
func (s *Store) stored(p *part) *counter { return s.shard(p).table.find(p.charge, p.hash) }

// decideGroup decides any group. The shards of all its counters are locked,
// in ascending order, from the first look to the last write.
func (s *Store) decideGroup(g stint.Group) (stint.Verdict, error) {
	parts, limits := make([]part, g.Len()), 0
	for i, c := range g.Charges() {
		p := &parts[i]
		p.terms = c.Policy.Terms()
		limits += len(p.terms)
		p.charge, p.hash = c, s.hash(c)
	}
	limbs := make([]limb, limits)
	for i := range parts {
		n := len(parts[i].terms)
		parts[i].limbs, limbs = limbs[:n:n], limbs[n:]
	}
	locked := s.lock(parts)
	defer func() {
		for _, sh := range locked {
			sh.mu.Unlock()
		}
	}()
	if !remembers(&g) {
		return s.commit(&g, parts, locked, nil)
	}
	r := &record{id: g.ID.Bytes(), payload: g.Payload()}
	if l := s.ledger(&parts[0]); l != nil {
		if old := l.find(r.id, g.Now); old != nil {
			if old.payload != r.payload {
				return stint.Verdict{}, errMismatch
			}
			return old.replayed(), nil
		}
	}
	return s.commit(&g, parts, locked, r)
}

// lock locks the shards of all parts, each once, and returns them.
func (s *Store) lock(parts []part) []*shard {
	places := make([]int, len(parts))
	for i := range parts {
		places[i] = s.shardOf(parts[i].hash)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	locked := make([]*shard, len(places))
	for i, place := range places {
		locked[i] = &s.shards[place]
		locked[i].mu.Lock()
	}
	return locked
}

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
// answers. r is the record to keep of an admission, or nil.
func (s *Store) commit(g *stint.Group, parts []part, locked []*shard, r *record) (stint.Verdict, error) {
	commits, spends := g.Op == stint.Take, false
	for i := range parts {
		p := &parts[i]
		t := &s.shard(p).table
		if err := p.read(t, t.live(p.charge, p.hash, g.Now), p.charge, g.Now); err != nil {
			if p.charge.Policy.Mode == stint.Enforce {
				return stint.Verdict{}, err
			}
			p.failed = true
		}
		commits = commits && (p.passes || p.charge.Policy.Mode == stint.Shadow)
		spends = spends || p.spends()
	}
	if commits && spends {
		if err := s.write(g, parts, locked, r); err != nil {
			return stint.Verdict{}, err
		}
	}
	return answer(g, parts), nil
}

// answer is the verdict on the parts as they are.
func answer(g *stint.Group, parts []part) stint.Verdict {
	var v stint.Verdict
	for i := range parts {
		var d stint.Decision
		if p := &parts[i]; p.failed {
			d.Outcome = stint.ShadowFailed
		} else {
			p.answer(&d, p.charge, g.Now)
		}
		v.Append(d)
	}
	return v
}
