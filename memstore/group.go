package memstore

import (
	"slices"

	"github.com/stintlimit/stint"
)

// part is one charge of a group on its way.
type part struct {
	plan
	charge *stint.Charge
	key    key
	hash   uint64
	shard  int
	failed bool // a shadow that could not be evaluated
}

// spends reports whether the charge is spent if the group commits.
func (p *part) spends() bool { return p.passes && !p.failed }

// decideGroup decides any group. The shards of all its counters are locked,
// in ascending order, from the first look to the last write.
func (s *Store) decideGroup(g *stint.Group) (stint.Verdict, error) {
	parts := make([]part, g.Len())
	for i, c := range g.Charges() {
		p := &parts[i]
		p.charge, p.key = c, key{c.Policy.Tag(), c.Subject}
		p.hash = s.hash(&p.key)
		p.shard = int(p.hash >> 32 % shardCount)
	}
	locked := s.lock(parts)
	defer func() {
		for _, sh := range locked {
			sh.mu.Unlock()
		}
	}()
	if !remembers(g) {
		return s.commit(g, parts, locked, nil)
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
	return s.commit(g, parts, locked, r)
}

// lock locks the shards of all parts, each once, and returns them.
func (s *Store) lock(parts []part) []*shard {
	places := make([]int, len(parts))
	for i := range parts {
		places[i] = parts[i].shard
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
	t := &s.shards[p.shard].table
	if c := t.find(&p.key, p.hash); c != nil {
		if m := t.beyond(c); m != nil {
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
		sh := &s.shards[p.shard]
		if err := p.read(&sh.table, s.lookup(sh, &p.key, p.hash, g.Now), p.charge, g.Now); err != nil {
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
		if p := &parts[i]; p.failed {
			v.Append(stint.Decision{Outcome: stint.ShadowFailed})
		} else {
			v.Append(p.decision(p.charge, g.Now))
		}
	}
	return v
}
