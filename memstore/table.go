package memstore

import (
	"hash/maphash"
	"unique"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// key names a counter.
type key struct {
	tag     unique.Handle[string]
	subject stint.Pseudonym
}

// counter is one counter at rest: 64 bytes, a cache line.
type counter struct {
	tag     unique.Handle[string]
	subject stint.Pseudonym
	more    uint32 // 1 + its place in table.mores; 0: it has none

	at      int64           // the instant it was last written, epoch ms
	state   algorithm.State // of the policy's first limit
	expires int64           // when nothing of it matters any longer, epoch ms
}

// more is what few counters have.
type more struct {
	states []algorithm.State // of the second and later limits
	ledger ledger
}

// table is a hash table of counters. They lie densely in one slice, so that a
// sweep is a walk and a million of them is few objects for the collector; an
// index with open addressing finds them. Not safe for concurrent use.
type table struct {
	seed     maphash.Seed
	counters []counter
	mores    []*more
	free     []uint32 // unused places of mores

	// index has a power of two of slots, at most three quarters in use, each
	// the low half of a key's hash above 1 + a place in counters. 0 is empty.
	index []uint64
}

const (
	smallestIndex = 8
	lowHalf       = 1<<32 - 1
)

func newTable(seed maphash.Seed) table {
	return table{seed: seed, index: make([]uint64, smallestIndex)}
}

func (c *counter) key() key { return key{c.tag, c.subject} }

// find returns the counter of k, or nil. It is good until the next insert or
// remove. h is the hash of k.
func (t *table) find(k *key, h uint64) *counter {
	if place := t.place(k, h); place >= 0 {
		return &t.counters[place]
	}
	return nil
}

// place returns where the counter of k lies, or -1.
func (t *table) place(k *key, h uint64) int {
	h &= lowHalf
	mask := uint64(len(t.index) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := t.index[i]
		if slot == 0 {
			return -1
		}
		if slot>>32 == h {
			place := int(slot&lowHalf) - 1
			if c := &t.counters[place]; c.subject == k.subject && c.tag == k.tag {
				return place
			}
		}
	}
}

// insert adds the counter of k, which must not be there.
func (t *table) insert(k *key, h uint64) *counter {
	if 4*(len(t.counters)+1) > 3*len(t.index) {
		t.reindex(2 * len(t.index))
	}
	t.counters = append(t.counters, counter{tag: k.tag, subject: k.subject})
	t.link(h, len(t.counters)-1)
	return &t.counters[len(t.counters)-1]
}

// obtain returns the counter of k, a new one if there is none.
func (t *table) obtain(k *key, h uint64) *counter {
	if c := t.find(k, h); c != nil {
		return c
	}
	return t.insert(k, h)
}

func (t *table) link(h uint64, place int) {
	h &= lowHalf
	mask := uint64(len(t.index) - 1)
	i := h & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = h<<32 | uint64(place+1)
}

// slotOf returns the slot that points to a place. One does.
func (t *table) slotOf(place int) uint64 {
	k := t.counters[place].key()
	h := maphash.Comparable(t.seed, k) & lowHalf
	mask := uint64(len(t.index) - 1)
	i := h & mask
	for t.index[i] != h<<32|uint64(place+1) {
		i = (i + 1) & mask
	}
	return i
}

// remove drops the counter at a place; the last one moves there.
func (t *table) remove(place int) {
	if m := t.counters[place].more; m != 0 {
		t.mores[m-1] = nil
		t.free = append(t.free, m-1)
	}
	t.unlink(t.slotOf(place))
	last := len(t.counters) - 1
	if place != last {
		i := t.slotOf(last)
		t.index[i] = t.index[i]&^lowHalf | uint64(place+1)
		t.counters[place] = t.counters[last]
	}
	t.counters[last] = counter{}
	t.counters = t.counters[:last]
	t.shrink()
}

// unlink empties a slot and moves back those behind it that could not be found
// across the gap.
func (t *table) unlink(gap uint64) {
	mask := uint64(len(t.index) - 1)
	for i := (gap + 1) & mask; t.index[i] != 0; i = (i + 1) & mask {
		home := t.index[i] >> 32 & mask
		if (i-home)&mask >= (i-gap)&mask {
			t.index[gap] = t.index[i]
			gap = i
		}
	}
	t.index[gap] = 0
}

func (t *table) reindex(size int) {
	old := t.index
	t.index = make([]uint64, size)
	for _, slot := range old {
		if slot != 0 {
			t.link(slot>>32, int(slot&lowHalf)-1)
		}
	}
}

// shrink returns memory after a crowd has left.
func (t *table) shrink() {
	if n := len(t.counters); len(t.index) > smallestIndex && 8*n < len(t.index) {
		t.counters = append(make([]counter, 0, 2*n), t.counters...)
		t.reindex(len(t.index) / 2)
	}
}

// beyond returns what a counter has beyond its first state, or nil.
func (t *table) beyond(c *counter) *more {
	if c.more == 0 {
		return nil
	}
	return t.mores[c.more-1]
}

// extend returns the same, and makes it where there is none.
func (t *table) extend(c *counter) *more {
	if c.more == 0 {
		if n := len(t.free); n > 0 {
			c.more = t.free[n-1] + 1
			t.free = t.free[:n-1]
		} else {
			t.mores = append(t.mores, nil)
			c.more = uint32(len(t.mores))
		}
		t.mores[c.more-1] = &more{}
	}
	return t.mores[c.more-1]
}
