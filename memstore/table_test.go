package memstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

// TestTableAgreesWithAMap runs random inserts, removals and lookups beside a
// map, with hashes that collide often.
func TestTableAgreesWithAMap(t *testing.T) {
	p, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	table, want := newTable(newHasher()), map[stint.Pseudonym]int64{}
	most := 20
	for step := range 60_000 {
		if step%10_000 == 0 {
			most = 10 + r.IntN(3000) // grow, and shrink again
		}
		c := &stint.Charge{Policy: p, Subject: stint.Pseudonym{Digest: [16]byte{byte(r.IntN(256)), byte(r.IntN(256))}}}
		h := table.hasher.hash(p.Tag(), &c.Subject)
		at := table.find(c, h)
		value, there := want[c.Subject]
		if (at != nil) != there || at != nil && at.at != value {
			t.Fatalf("step %d: found %+v, want %d, %v", step, at, value, there)
		}
		switch {
		case there && (len(want) > most || r.IntN(2) == 0):
			table.remove(table.place(c, h))
			delete(want, c.Subject)
		case !there && len(want) <= most:
			at := table.insert(c, h)
			at.at = int64(step)
			if r.IntN(4) == 0 {
				table.extend(at).ledger.bytes = step
			}
			want[c.Subject] = int64(step)
		}
		if len(table.counters) != len(want) {
			t.Fatalf("step %d: %d counters, want %d", step, len(table.counters), len(want))
		}
	}
	for i := range table.counters {
		c := &table.counters[i]
		if want[c.subject] != c.at {
			t.Errorf("%v has the value of another", c.subject)
		}
		if m := table.beyond(c); m != nil && int64(m.ledger.bytes) != c.at {
			t.Errorf("%v has the records of another", c.subject)
		}
	}
}

func TestHashesSpread(t *testing.T) {
	p, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	h := newHasher()
	for name, digest := range map[string]func(i int) [16]byte{
		"counting in the first byte": func(i int) [16]byte { return [16]byte{byte(i), byte(i >> 8)} },
		"counting in the last byte":  func(i int) [16]byte { return [16]byte{15: byte(i), 14: byte(i >> 8)} },
		"the same halves":            func(i int) [16]byte { return [16]byte{0: byte(i), 1: byte(i >> 8), 8: byte(i), 9: byte(i >> 8)} },
	} {
		const subjects, bins = 1 << 16, 64
		var high, low [bins]int
		for i := range subjects {
			s := stint.Pseudonym{Digest: digest(i)}
			v := h.hash(p.Tag(), &s)
			high[v>>32%bins]++
			low[v%bins]++
		}
		for bin := range bins {
			for half, n := range map[string]int{"high": high[bin], "low": low[bin]} {
				if mean := subjects / bins; n < mean*3/4 || n > mean*5/4 {
					t.Errorf("%s: %d in bin %d of the %s half, about %d expected", name, n, bin, half, mean)
				}
			}
		}
	}
}
