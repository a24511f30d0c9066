package memstore

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stintlimit/stint"
)

// DefaultMaxSubjects is the bound on counters unless [Config] says another.
const DefaultMaxSubjects = 1_000_000

// Config bounds a store. Its zero value is valid.
type Config struct {
	// MaxSubjects is how many counters are held at most: one for each subject
	// of each policy. 0: 1,000,000. A negative bound admits nobody.
	MaxSubjects int
}

// Store is a [stint.Store] in memory. It is safe for concurrent use; make one
// with [New].
type Store struct {
	hasher hasher
	most   int64
	held   atomic.Int64 // counters in all shards, and those about to be
	shards []shard      // a power of two
	desks  sync.Pool    // of *desk
}

// shardCount is enough for two processors to meet seldom, and few enough for
// what decisions read of them to stay in the nearest cache.
func shardCount() int { return 1 << bits.Len(uint(min(32*runtime.GOMAXPROCS(0), 1024)-1)) }

// shard is a part of the counters with a mutex of its own. What every decision
// reads lies in its first cache line.
type shard struct {
	mu     sync.Mutex
	next   atomic.Int64 // nothing here expires before this instant; written under mu
	table  table
	cursor int // where the sweep goes on
}

var _ stint.Store = (*Store)(nil)

// Errors that cost nothing to return: a crowd is refused with them.
var (
	errFull     = &stint.Error{Reason: stint.AdmissionRejected, Cause: errors.New("memstore: as many subjects as may be held are live")}
	errUnkept   = &stint.Error{Reason: stint.AdmissionRejected, Cause: errors.New("memstore: as many evaluation ids as may be remembered are live")}
	errMismatch = &stint.Error{Reason: stint.EvaluationMismatch, Cause: errors.New("memstore: the evaluation id was used with other counters or costs, or was refunded")}
	errClock    = &stint.Error{Reason: stint.ClockUnsafe, Cause: errors.New("memstore: the clock stands further behind the counter than the policy permits")}
	errState    = &stint.Error{Reason: stint.StateIncompatible, Cause: errors.New("memstore: no admission can have left this state")}
)

// New returns an empty store.
func New(c Config) *Store {
	s := &Store{hasher: newHasher(), most: int64(c.MaxSubjects), shards: make([]shard, shardCount())}
	if c.MaxSubjects == 0 {
		s.most = DefaultMaxSubjects
	}
	s.desks.New = func() any { return &desk{} }
	for i := range s.shards {
		s.shards[i].table = newTable(s.hasher)
		s.shards[i].next.Store(never)
	}
	return s
}

// Len returns how many counters are held, with those that have expired and
// were not swept yet.
func (s *Store) Len() int { return int(s.held.Load()) }

// Reset forgets every counter and every remembered evaluation id, as if all
// had expired: every subject has its whole budget again. It is for tests, and
// for an operator who means exactly that. It is not atomic: an evaluation that
// runs meanwhile may land before or after it.
func (s *Store) Reset() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		s.held.Add(-int64(len(sh.table.counters)))
		sh.table = newTable(s.hasher)
		sh.cursor = 0
		sh.next.Store(never)
		sh.mu.Unlock()
	}
}

// Decide implements [stint.Store]. It never waits for anything but another
// decision, so it looks neither at ctx nor at g.Deadline. Its errors are
// [stint.AdmissionRejected] (a bound on subjects or on remembered ids),
// [stint.EvaluationMismatch] and [stint.ClockUnsafe]; all spend nothing.
func (s *Store) Decide(_ context.Context, g stint.Group) (v stint.Verdict, err error) {
	if g.Len() == 1 && !remembers(&g) {
		err = s.decideOne(&g, &v)
	} else {
		err = s.decideGroup(&g, &v)
	}
	return v, err
}

// remembers reports whether the group's id counts.
func remembers(g *stint.Group) bool {
	return !g.ID.IsZero() && g.Op != stint.Peek && !g.Charge(0).Policy.Dedup.Off
}

func (s *Store) hash(c *stint.Charge) uint64 { return s.hasher.hash(c.Policy.Tag(), &c.Subject) }

// shardOf returns the place of the shard that a hash belongs to.
func (s *Store) shardOf(h uint64) int { return int(h >> 32 & uint64(len(s.shards)-1)) }
