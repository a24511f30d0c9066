package redisstore

import (
	"crypto/sha256"

	"github.com/stintlimit/stint"
)

// The places of what may change in an encoded head between attempts.
const (
	sessionAt = 8
	ttlAt     = 16
	hashAt    = 23
	headSize  = 31
)

// What session says to a script: see lua/session.lua.
const (
	sessionOff    = 0
	sessionIfDue  = 1
	sessionAlways = 2
)

// batch is one call of a script: the same bytes at every attempt, but for
// whether the session record is due. Only encode and decode know its form.
type batch struct {
	script *script
	asking bool // the slot is on its way to this node
	keys   []string
	record string // the last of keys, if it is a session record
	blob   []byte
	groups []*stint.Group
}

// encoder turns groups into batches. It is immutable.
type encoder struct {
	scripts *scripts
	prefix  string
	clock   Clock
	skew    int64 // ms; MaxInteger if unchecked
}

func appendInt(b []byte, v int64, bytes int) []byte {
	for shift := (bytes - 1) * 8; shift >= 0; shift -= 8 {
		b = append(b, byte(v>>shift))
	}
	return b
}

func appendI7(b []byte, v int64) []byte { return appendInt(b, v, 7) }
func appendI2(b []byte, v int) []byte   { return appendInt(b, int64(v), 2) }

// head begins a blob: clock, skew, session, sequence, TTL, hash.
func (e *encoder) head(b []byte, session byte, sequence, recordTTL int64) []byte {
	b = append(b, byte(e.clock))
	b = appendI7(b, e.skew)
	b = append(b, session)
	b = appendI7(b, sequence)
	b = appendI7(b, recordTTL)
	return append(b, make([]byte, headSize-hashAt)...)
}

// seal writes the hash of everything that the attempts share.
func (b *batch) seal() {
	h := sha256.New()
	for _, k := range b.keys {
		h.Write([]byte(k))
		h.Write([]byte{0})
	}
	h.Write(b.blob[headSize:])
	var sum [sha256.Size]byte
	copy(b.blob[hashAt:headSize], h.Sum(sum[:0]))
}

// recordAlways makes the batch write its session record even if it spends
// nothing, so that whatever this sender sent before is refused from then on.
func (b *batch) recordAlways() { b.blob[sessionAt] = sessionAlways }

func (b *batch) recordsAlways() bool { return b.blob[sessionAt] == sessionAlways }

// margins returns how long a state must outlive its usefulness, and how much
// longer it is kept, so that most writes need not renew the TTL.
func (e *encoder) margins(p *stint.Policy) (safety, grace int64) {
	safety = p.MaximumClockRegression.Milliseconds()
	if e.clock == CallerClock && e.skew < stint.MaxInteger {
		safety = max(safety, 2*e.skew)
	}
	return safety, p.CleanupGrace.Milliseconds()
}

// counterKey is "<prefix>:{<pseudonym>}:<policy>:<revision>:<shape>".
func (e *encoder) counterKey(c *stint.Charge) string {
	b := make([]byte, 0, 64)
	b = append(b, e.prefix...)
	b = append(b, ':', '{')
	b = c.Subject.Append(b)
	b = append(b, '}', ':')
	b = append(b, c.Policy.Key()...)
	return string(b)
}

// recordsKey holds the callers' records of a counter.
func recordsKey(counter string) string { return counter + ":ids" }

// sessioned reports whether a resend of g must be harmless: its callers' are
// if the operator did not switch deduplication off for all its policies.
func sessioned(g *stint.Group) bool {
	if g.Op == stint.Peek {
		return false
	}
	for _, c := range g.Charges() {
		if !c.Policy.Dedup.Off {
			return true
		}
	}
	return false
}

// recorded reports whether what g changes is remembered under its id.
func recorded(g *stint.Group) bool {
	return g.Op != stint.Peek && !g.ID.IsZero() && !g.Charge(0).Policy.Dedup.Off
}

// tightPolicy returns the policy whose tight script decides g: that of a single
// charge of one limit, without a caller's id; else nil. No refund comes without
// an id.
func tightPolicy(g *stint.Group) *stint.Policy {
	p := g.Charge(0).Policy
	if g.Len() != 1 || len(p.Terms()) != 1 || recorded(g) {
		return nil
	}
	return p
}

// tight reports whether one tight script decides all groups.
func tight(groups []*stint.Group) bool {
	p := tightPolicy(groups[0])
	for _, g := range groups {
		if tightPolicy(g) != p {
			return false
		}
	}
	return p != nil
}

// peekFlag tells a tight script what spends nothing.
func peekFlag(g *stint.Group) byte {
	if g.Op == stint.Take {
		return 0
	}
	return 1
}

// encode makes a batch of groups, for a tight script if they fit one. fences
// are the first server instants at which each group may run no more. sessionKey
// is empty if there is no session.
func (e *encoder) encode(groups []*stint.Group, fences []int64, sessionKey string, sequence, recordTTL int64) *batch {
	session := byte(sessionOff)
	if sessionKey != "" {
		session = sessionIfDue
	}
	b := &batch{groups: groups, record: sessionKey, blob: e.head(make([]byte, 0, 256), session, sequence, recordTTL)}
	if tight(groups) {
		e.encodeSingle(b, fences)
	} else {
		e.encodeGroups(b, fences)
	}
	if sessionKey != "" {
		b.keys = append(b.keys, sessionKey)
	}
	b.seal()
	return b
}

func (e *encoder) encodeSingle(b *batch, fences []int64) {
	p := b.groups[0].Charge(0).Policy
	t := &p.Terms()[0]
	safety, grace := e.margins(p)
	b.script = &e.scripts.single[t.Algorithm]
	for _, v := range []int64{t.Quota, t.Period, t.Refill, p.MaximumClockRegression.Milliseconds(), safety, grace} {
		b.blob = appendI7(b.blob, v)
	}
	places := table[string]{}
	for i, g := range b.groups {
		c := g.Charge(0)
		key := e.counterKey(c)
		b.blob = appendI2(b.blob, places.place(key))
		b.blob = append(b.blob, peekFlag(g))
		b.blob = appendI7(b.blob, g.Now)
		b.blob = appendI7(b.blob, fences[i])
		b.blob = appendI7(b.blob, c.Cost)
	}
	b.keys = places.items
}

// table numbers distinct items from 1, in the order of their coming. Batches
// are small: a scan is faster than a map.
type table[T comparable] struct{ items []T }

func (t *table[T]) place(item T) int {
	for i, other := range t.items {
		if other == item {
			return i + 1
		}
	}
	t.items = append(t.items, item)
	return len(t.items)
}

func (e *encoder) encodeGroups(b *batch, fences []int64) {
	b.script = &e.scripts.group
	var policies table[*stint.Policy]
	var counters, records table[string]
	var of []int // the policy of each counter
	var body []byte
	for _, g := range b.groups {
		for _, c := range g.Charges() {
			if n := counters.place(e.counterKey(c)); n > len(of) {
				of = append(of, policies.place(c.Policy))
			}
		}
	}
	for i, g := range b.groups {
		body = append(body, byte(g.Op))
		body = appendI7(body, g.Now)
		body = appendI7(body, fences[i])
		if recorded(g) {
			place := records.place(recordsKey(e.counterKey(g.Charge(0))))
			body = appendI2(body, len(counters.items)+place)
			body = e.appendRecord(body, g)
		} else {
			body = appendI2(body, 0)
		}
		body = appendI2(body, g.Len())
		for _, c := range g.Charges() {
			body = appendI2(body, counters.place(e.counterKey(c)))
			body = append(body, byte(c.Policy.Mode))
			body = appendI7(body, c.Cost)
			body = appendI7(body, c.At)
		}
	}
	b.blob = e.appendPolicies(b.blob, policies.items)
	b.blob = appendI2(b.blob, len(of))
	for _, p := range of {
		b.blob = appendI2(b.blob, p)
	}
	b.blob = appendI2(b.blob, len(b.groups))
	b.blob = append(b.blob, body...)
	b.keys = append(counters.items, records.items...)
}

func (e *encoder) appendPolicies(b []byte, policies []*stint.Policy) []byte {
	b = appendI2(b, len(policies))
	for _, p := range policies {
		safety, grace := e.margins(p)
		b = appendI7(b, p.MaximumClockRegression.Milliseconds())
		b = appendI7(b, safety)
		b = appendI7(b, grace)
		b = appendI2(b, len(p.Terms()))
		for _, t := range p.Terms() {
			b = append(b, byte(t.Algorithm))
			b = appendI7(b, t.Quota)
			b = appendI7(b, t.Period)
			b = appendI7(b, t.Refill)
		}
	}
	return b
}

// appendRecord describes what to remember g by, and within which bounds.
func (e *encoder) appendRecord(b []byte, g *stint.Group) []byte {
	p := g.Charge(0).Policy
	id, payload := g.ID.Bytes(), g.Payload()
	safety, _ := e.margins(p)
	b = append(b, id[:]...)
	b = append(b, payload[:]...)
	b = appendI7(b, p.Dedup.TTL.Milliseconds())
	b = appendInt(b, int64(p.Dedup.MaxEntries), 4)
	b = appendInt(b, int64(p.Dedup.MaxBytes), 4)
	return appendI7(b, p.Dedup.TTL.Milliseconds()+safety)
}
