package memstore_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// TestDecideAllocatesNothing holds with the race detector, too.
func TestDecideAllocatesNothing(t *testing.T) {
	denied := stint.Policy{ID: "denied", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}}
	for _, p := range append(benchPolicies, denied) {
		p := frozen(t, p)
		s := memstore.New(memstore.Config{})
		for _, op := range []stint.Op{stint.Take, stint.Peek} {
			g := one(p, 1, benchNow)
			g.Op = op
			if n := testing.AllocsPerRun(100, func() {
				if _, err := s.Decide(context.Background(), g); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("%s: %v allocations a decision", p.ID, n)
			}
		}
	}
}

// TestRefusingACrowdAllocatesNothing: a full store is no lever on memory.
func TestRefusingACrowdAllocatesNothing(t *testing.T) {
	s, p := memstore.New(memstore.Config{MaxSubjects: 10}), short(t, stint.Enforce)
	for i := range 10 {
		if _, err := s.Decide(context.Background(), one(p, i, benchNow)); err != nil {
			t.Fatal(err)
		}
	}
	i := 10
	if n := testing.AllocsPerRun(1000, func() {
		i++
		if _, err := s.Decide(context.Background(), one(p, i, benchNow)); err == nil {
			t.Error("admitted beyond the bound")
		}
	}); n != 0 {
		t.Errorf("%v allocations a refusal", n)
	}
}

// heap is the live heap, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryOfACounter bounds what a subject costs, whatever its limit, and
// that the memory returns (case C60).
func TestMemoryOfACounter(t *testing.T) {
	const n = 40_000
	p := frozen(t, stint.Policy{ID: "million", Limits: []stint.Limit{stint.SlidingCounter{Limit: 1_000_000, Window: time.Minute}}})
	before := heap()
	s := memstore.New(memstore.Config{})
	for i := range n {
		if _, err := s.Decide(context.Background(), one(p, i, benchNow)); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / n
	t.Logf("%d bytes a counter", each)
	if each > 120 {
		t.Errorf("%d bytes a counter, at most 120", each)
	}
	for i := range n { // a later crowd sweeps the first one out
		if _, err := s.Decide(context.Background(), one(p, n+i, benchNow+int64(time.Hour/time.Millisecond)+int64(i)*250)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Len() > n/10 {
		t.Errorf("%d counters are held, of a crowd that left", s.Len())
	}
	if left := (heap() - before) / n; left > each/4 {
		t.Errorf("%d bytes for each of those that left, of %d", left, each)
	}
	runtime.KeepAlive(s)
}
