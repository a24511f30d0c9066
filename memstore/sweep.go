package memstore

import (
	"math"

	"github.com/stintlimit/stint"
)

// never is the next expiry of a shard that holds nothing.
const never = math.MaxInt64

// sweepStep is how many counters each new one looks at. At more than one, the
// sweep overtakes arrivals, and expired counters stay a bounded share.
const sweepStep = 4

// expiresAt keeps sh.next a lower bound.
func (sh *shard) expiresAt(instant int64) {
	if instant < sh.next.Load() {
		sh.next.Store(instant)
	}
}

// admit makes room for the counter of a charge, which is missing or expired,
// and inserts it. sh is locked.
func (s *Store) admit(sh *shard, c *stint.Charge, h uint64, now int64) (*counter, error) {
	s.dropExpired(sh, c, h, now)
	if !s.reserve(now, sh) {
		return nil, errFull
	}
	s.sweep(sh, now)
	return sh.table.insert(c, h), nil
}

// dropExpired drops the counter of a charge if it has expired. Only those who
// are about to spend do so: a peek or a denial leaves no trace.
func (s *Store) dropExpired(sh *shard, c *stint.Charge, h uint64, now int64) {
	if place := sh.table.place(c, h); place >= 0 && sh.table.counters[place].expires <= now {
		sh.table.remove(place)
		s.held.Add(-1)
	}
}

// reserve takes a place under the bound, where needed after dropping expired
// counters anywhere, and reports whether it could. locked are the shards that
// the caller has locked: counters may move in them.
func (s *Store) reserve(now int64, locked ...*shard) bool {
	for {
		n := s.held.Load()
		switch {
		case n >= s.most:
			if !s.evictExpired(now, locked) {
				return false
			}
		case s.held.CompareAndSwap(n, n+1):
			return true
		}
	}
}

// evictExpired drops all expired counters of some shard, and reports whether
// there were any. Where nothing can have expired it costs a look at each
// shard, however many counters they hold; one that another decision has locked
// is passed over.
func (s *Store) evictExpired(now int64, locked []*shard) bool {
	for _, sh := range locked {
		if s.sweepAll(sh, now) {
			return true
		}
	}
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.next.Load() > now || !sh.mu.TryLock() {
			continue // one of ours is locked, too
		}
		found := s.sweepAll(sh, now)
		sh.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// sweepAll drops what has expired in a locked shard and learns when the next
// counter will.
func (s *Store) sweepAll(sh *shard, now int64) bool {
	if sh.next.Load() > now {
		return false
	}
	next, before := int64(never), len(sh.table.counters)
	for i := 0; i < len(sh.table.counters); {
		if c := &sh.table.counters[i]; c.expires > now {
			next = min(next, c.expires)
			i++
			continue
		}
		sh.table.remove(i)
	}
	sh.next.Store(next)
	dropped := before - len(sh.table.counters)
	s.held.Add(-int64(dropped))
	return dropped > 0
}

// sweep looks at the next few counters of a locked shard: it drops those that
// have expired, and the records of the others that nobody can ask for.
func (s *Store) sweep(sh *shard, now int64) {
	if sh.next.Load() > now {
		return
	}
	for range min(sweepStep, len(sh.table.counters)) {
		if sh.cursor >= len(sh.table.counters) {
			sh.cursor = 0
		}
		c := &sh.table.counters[sh.cursor]
		if c.expires > now {
			if m := sh.table.beyond(c); m != nil {
				m.ledger.prune(now - m.ledger.margin)
			}
			sh.cursor++
			continue
		}
		sh.table.remove(sh.cursor)
		s.held.Add(-1)
	}
}
