package memstore

import (
	"unique"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

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
	// index has a power of two of slots, at most three quarters in use, each
	// the low half of a key's hash above 1 + a place in counters. 0 is empty.
	index    []uint64
	counters []counter
	mores    []*more
	free     []uint32 // unused places of mores
	hasher   hasher
}

const (
	smallestIndex = 8
	lowHalf       = 1<<32 - 1
)

func newTable(h hasher) table {
	return table{hasher: h, index: make([]uint64, smallestIndex)}
}

// find returns the counter of a charge, or nil. It is good until the next
// insert or remove. h is the charge's hash, here and below.
func (t *table) find(c *stint.Charge, h uint64) *counter {
	if place := t.place(c, h); place >= 0 {
		return &t.counters[place]
	}
	return nil
}

// live returns the counter of a charge, or nil if it is missing or expired.
func (t *table) live(c *stint.Charge, h uint64, now int64) *counter {
	if at := t.find(c, h); at != nil && at.expires > now {
		return at
	}
	return nil
}

// place returns where the counter of a charge lies, or -1.
func (t *table) place(c *stint.Charge, h uint64) int {
	h &= lowHalf
	tag := c.Policy.Tag()
	mask := uint64(len(t.index) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := t.index[i]
		if slot == 0 {
			return -1
		}
		if slot>>32 == h {
			place := int(slot&lowHalf) - 1
			if at := &t.counters[place]; at.tag == tag && at.subject == c.Subject {
				return place
			}
		}
	}
}

// insert adds the counter of a charge, which must not be there.
func (t *table) insert(c *stint.Charge, h uint64) *counter {
	if 4*(len(t.counters)+1) > 3*len(t.index) {
		t.reindex(2 * len(t.index))
	}
	t.counters = append(t.counters, counter{tag: c.Policy.Tag(), subject: c.Subject})
	t.link(h&lowHalf, len(t.counters)-1)
	return &t.counters[len(t.counters)-1]
}

// obtain returns the counter of a charge, a new one if there is none.
func (t *table) obtain(c *stint.Charge, h uint64) *counter {
	if at := t.find(c, h); at != nil {
		return at
	}
	return t.insert(c, h)
}

// link points a slot to a place. h is the low half of a hash.
func (t *table) link(h uint64, place int) {
	mask := uint64(len(t.index) - 1)
	i := h & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = h<<32 | uint64(place+1)
}

// slotOf returns the slot that points to a place. One does.
func (t *table) slotOf(place int) uint64 {
	c := &t.counters[place]
	h := t.hasher.hash(c.tag, &c.subject) & lowHalf
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
