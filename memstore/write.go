package memstore

import "github.com/stintlimit/stint"

// write spends every part that passes and keeps the record, or changes nothing
// and says why. Bounds are checked before the first counter changes.
func (s *Store) write(g *stint.Group, d *desk, r *record) error {
	parts := d.parts
	for i := range parts {
		if p := &parts[i]; p.spends() {
			s.dropExpired(s.shard(p), &p.charge, p.hash, g.Now)
		}
	}
	places, err := s.makePlaces(g, d, r != nil)
	if err != nil {
		return err
	}
	if !anySpends(parts) {
		return nil
	}
	if r != nil && !s.mayRecord(g, parts) {
		s.held.Add(-places)
		return errUnkept
	}
	for i := range parts {
		if p := &parts[i]; p.spends() {
			sh := s.shard(p)
			p.spend(sh, sh.table.obtain(&p.charge, p.hash), &p.charge)
		}
	}
	if r != nil {
		s.keep(g, parts, r)
	}
	if places > 0 {
		for _, sh := range d.locked {
			s.sweep(sh, g.Now)
		}
	}
	return nil
}

// makePlaces reserves a place for every counter that the group adds. Enforced
// charges come first, so that a shadow never takes the place of one; a shadow
// without a place fails alone, unless the record needs its counter.
func (s *Store) makePlaces(g *stint.Group, d *desk, recorded bool) (int64, error) {
	parts := d.parts
	places := int64(0)
	for _, mode := range [...]stint.Mode{stint.Enforce, stint.Shadow} {
		for i := range parts {
			p := &parts[i]
			if p.charge.Policy.Mode != mode || !p.spends() || s.stored(p) != nil {
				continue
			}
			switch {
			case s.reserve(g.Now, d.locked...):
				places++
			case mode == stint.Shadow:
				p.failed = true
			default:
				s.held.Add(-places)
				return 0, errFull
			}
		}
	}
	if recorded && parts[0].failed && anySpends(parts) && s.stored(&parts[0]) == nil {
		s.held.Add(-places)
		return 0, errFull
	}
	return places, nil
}

func anySpends(parts []part) bool {
	for i := range parts {
		if parts[i].spends() {
			return true
		}
	}
	return false
}

// mayRecord reports whether the bounds of the first charge's policy leave room
// for one more record.
func (s *Store) mayRecord(g *stint.Group, parts []part) bool {
	l := s.ledger(&parts[0])
	if l == nil {
		l = &ledger{}
	}
	var v stint.Verdict
	answer(&v, g, parts)
	return l.admits(&parts[0].charge.Policy.Dedup, v.RecordSize(), g.Now)
}

// keep writes the record beside the first counter, which is there.
func (s *Store) keep(g *stint.Group, parts []part, r *record) {
	p := &parts[0]
	sh := s.shard(p)
	c := s.stored(p)
	l := &sh.table.extend(c).ledger
	l.prune(g.Now)
	if r.refund {
		l.drop(r.id)
	}
	answer(&r.verdict, g, parts)
	r.size = r.verdict.RecordSize()
	r.expires = g.Now + p.charge.Policy.Dedup.TTL.Milliseconds()
	l.append(*r)
	l.margin = margin(p.charge.Policy)
	c.expires = max(c.expires, l.expires+l.margin)
	sh.expiresAt(c.expires)
}
