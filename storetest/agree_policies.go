package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

// family is a policy and its edits: other limits, modes and bounds over the
// same counters.
type family struct {
	edits []*stint.Policy
	at    int
}

func (f *family) now() *stint.Policy { return f.edits[f.at] }

func (f *family) edit(p *program) {
	f.at = p.IntN(len(f.edits))
	p.note(fmt.Sprintf("edit %s to %+v", f.now().ID, f.now().Limits))
}

func (p *program) policies() string {
	var b strings.Builder
	for _, f := range p.families {
		for _, e := range f.edits {
			fmt.Fprintf(&b, "  %s %s max=%d regression=%v dedup=%+v %+v\n", e.Key(), e.Mode, e.MaximumCost, e.MaximumClockRegression, e.Dedup, e.Limits)
		}
	}
	return b.String()
}

// families are some of the known ones, and some that chance made: few enough
// for their counters to be met often.
func families(t testing.TB, r *rand.Rand) []family {
	t.Helper()
	var all []family
	for _, i := range r.Perm(len(known))[:4] {
		all = append(all, freeze(t, r, fmt.Sprintf("known%d", i), known[i]))
	}
	for i := range 2 {
		p := stint.Policy{Limits: randomLimits(r), Dedup: stint.Dedup{MaxEntries: r.IntN(4)}}
		if r.IntN(3) == 0 {
			p.Mode = stint.Shadow
		}
		all = append(all, freeze(t, r, fmt.Sprintf("random%d", i), p))
	}
	return all
}

// known meets every algorithm, mode and bound.
var known = []stint.Policy{
	{Limits: []stint.Limit{stint.FixedWindow{Limit: 5, Window: 10 * time.Second}}},
	{Limits: []stint.Limit{stint.SlidingCounter{Limit: 7, Window: 8 * time.Second}}},
	{Limits: []stint.Limit{stint.TokenBucket{Capacity: 6, Refill: 2, Every: 3 * time.Second}}},
	{Limits: []stint.Limit{
		stint.TokenBucket{Capacity: 8, Refill: 3, Every: 2 * time.Second},
		stint.SlidingCounter{Limit: 12, Window: 10 * time.Second},
		stint.FixedWindow{Limit: 20, Window: 30 * time.Second},
	}},
	{Mode: stint.Shadow, Limits: []stint.Limit{stint.SlidingCounter{Limit: 4, Window: 5 * time.Second}}},
	{Dedup: stint.Dedup{TTL: 3 * time.Second, MaxEntries: 2}, Limits: []stint.Limit{stint.FixedWindow{Limit: 50, Window: 20 * time.Second}}},
	{Dedup: stint.Dedup{TTL: time.Hour, MaxBytes: 200}, Limits: []stint.Limit{stint.TokenBucket{Capacity: 90, Refill: 7, Every: time.Second}}},
	{Dedup: stint.Dedup{Off: true}, Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: 7 * time.Millisecond}}},
	{MaximumClockRegression: time.Millisecond, Limits: []stint.Limit{stint.TokenBucket{Capacity: 3, Refill: 1, Every: time.Millisecond}}},
	{MaximumClockRegression: time.Hour, Limits: []stint.Limit{stint.SlidingCounter{Limit: 30, Window: time.Minute}}},
	{Mode: stint.Shadow, MaximumClockRegression: time.Millisecond, Limits: []stint.Limit{
		stint.FixedWindow{Limit: 6, Window: 9 * time.Second}, stint.FixedWindow{Limit: 60, Window: time.Hour},
	}},
	{Limits: []stint.Limit{stint.SlidingCounter{Limit: stint.MaxInteger/3_600_000 - 1, Window: time.Hour}}},
	{Limits: []stint.Limit{stint.FixedWindow{Limit: stint.MaxInteger, Window: time.Minute}}},
	{Limits: []stint.Limit{stint.TokenBucket{Capacity: stint.MaxInteger, Refill: stint.MaxInteger, Every: time.Second}}},
	{Limits: []stint.Limit{stint.TokenBucket{Capacity: stint.MaxInteger, Refill: 1 << 30, Every: time.Second}}},
}

// freeze makes a policy and two edits of it that keep its counters.
func freeze(t testing.TB, r *rand.Rand, id string, p stint.Policy) family {
	t.Helper()
	p.ID = id
	p.CleanupGrace = 10 * 365 * 24 * time.Hour
	f := family{edits: []*stint.Policy{policy(t, p)}}
	for range 2 {
		e := p
		e.Limits = nil
		for _, l := range p.Limits {
			e.Limits = append(e.Limits, resized(r, l))
		}
		f.edits = append(f.edits, policy(t, e))
	}
	e := p
	e.Mode = stint.Shadow - p.Mode
	f.edits = append(f.edits, policy(t, e))
	for _, e := range f.edits {
		if e.Key() != f.edits[0].Key() {
			t.Fatalf("an edit changed the key: %s, %s", e.Key(), f.edits[0].Key())
		}
	}
	return f
}

// resized is a limit of the same shape and another size, at most as large.
func resized(r *rand.Rand, l stint.Limit) stint.Limit {
	size := func(n int64) int64 { return 1 + r.Int64N(n) }
	switch l := l.(type) {
	case stint.FixedWindow:
		l.Limit = size(l.Limit)
		return l
	case stint.SlidingCounter:
		l.Limit = size(l.Limit)
		return l
	case stint.TokenBucket:
		l.Capacity = size(l.Capacity)
		if most := l.Refill; most < stint.MaxInteger/2 && r.IntN(2) == 0 {
			l.Refill += r.Int64N(most + 1)
		}
		return l
	}
	panic("storetest: an unknown kind of limit")
}

// randomLimits are one to four limits of different shapes.
func randomLimits(r *rand.Rand) []stint.Limit {
	periods := []time.Duration{time.Millisecond, 7 * time.Millisecond, 999 * time.Millisecond, time.Second, 10 * time.Second, time.Hour, 24 * time.Hour}
	r.Shuffle(len(periods), func(i, j int) { periods[i], periods[j] = periods[j], periods[i] })
	sizes := []int64{1, 2, 3, 10, 100, 1_000_000}
	var limits []stint.Limit
	for _, period := range periods[:1+r.IntN(4)] {
		size := sizes[r.IntN(len(sizes))]
		switch r.IntN(3) {
		case 0:
			limits = append(limits, stint.FixedWindow{Limit: size, Window: period})
		case 1:
			limits = append(limits, stint.SlidingCounter{Limit: size, Window: period})
		default:
			limits = append(limits, stint.TokenBucket{Capacity: size, Refill: 1 + r.Int64N(size), Every: period})
		}
	}
	return limits
}
