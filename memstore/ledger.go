package memstore

import (
	"slices"

	"github.com/stintlimit/stint"
)

// record remembers an admitted evaluation, or a refund, for a caller who may
// repeat it.
type record struct {
	id, payload [16]byte
	refund      bool
	expires     int64 // epoch ms
	size        int
	verdict     stint.Verdict
}

// ledger is the records beside one counter, in the order of writing.
type ledger struct {
	records []record
	bytes   int
	expires int64 // the latest of theirs; 0 without any
	margin  int64 // how much longer than that they are kept, ms
}

// find returns the record of id that is live at now, or nil.
func (l *ledger) find(id [16]byte, now int64) *record {
	for i := range l.records {
		if r := &l.records[i]; r.id == id && r.expires > now {
			return r
		}
	}
	return nil
}

// stale counts the leading records that have expired, and their bytes. One
// that expired behind a live one waits for it.
func (l *ledger) stale(now int64) (n, bytes int) {
	for n < len(l.records) && l.records[n].expires <= now {
		bytes += l.records[n].size
		n++
	}
	return n, bytes
}

// admits reports whether one more record of that size stays within the bounds
// once the stale ones are gone.
func (l *ledger) admits(d *stint.Dedup, size int, now int64) bool {
	n, bytes := l.stale(now)
	return len(l.records)-n < d.MaxEntries && l.bytes-bytes+size <= d.MaxBytes
}

// prune drops the stale records.
func (l *ledger) prune(now int64) {
	n, bytes := l.stale(now)
	l.records = slices.Delete(l.records, 0, n)
	l.bytes -= bytes
	if len(l.records) == 0 {
		l.records, l.expires = nil, 0
	}
}

// drop drops every record of an id, live or not: a clock that goes back must
// not find what was refunded.
func (l *ledger) drop(id [16]byte) {
	l.records = slices.DeleteFunc(l.records, func(r record) bool {
		if r.id == id {
			l.bytes -= r.size
		}
		return r.id == id
	})
}

func (l *ledger) append(r record) {
	l.records = append(l.records, r)
	l.bytes += r.size
	l.expires = max(l.expires, r.expires)
}

// replayed is the recorded verdict, marked as such.
func (r *record) replayed() stint.Verdict {
	var v stint.Verdict
	for i := range r.verdict.Len() {
		d := r.verdict.Decision(i)
		d.Replayed = true
		v.Append(d)
	}
	return v
}
