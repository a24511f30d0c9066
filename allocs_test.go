package stint_test

import (
	"context"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// wrapper is what a breaker or a cache before a store looks like.
type wrapper struct{ stint.Store }

func (w wrapper) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	return w.Store.Decide(ctx, g)
}

// TestEvaluateAllocatesNothing holds with the race detector, too.
func TestEvaluateAllocatesNothing(t *testing.T) {
	several := stint.Policy{ID: "several", Limits: []stint.Limit{
		stint.TokenBucket{Capacity: 5, Refill: 5, Every: time.Second}, stint.SlidingCounter{Limit: 300, Window: time.Minute},
	}}
	l, err := stint.New(wrapper{memstore.New(memstore.Config{})}, []stint.Policy{api, several},
		stint.WithObserver(func(stint.Observation) {}))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, policy := range l.Policies() {
		r := stint.Request{Policy: policy, Subject: alice, Cost: 1}
		if _, err := l.Evaluate(ctx, r); err != nil { // the first one makes the counter
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := l.Evaluate(ctx, r); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations an evaluation", policy, n)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	wide := stint.Policy{ID: "wide", Limits: []stint.Limit{stint.TokenBucket{Capacity: 1 << 40, Refill: 1 << 30, Every: time.Second}}}
	l, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{wide})
	if err != nil {
		b.Fatal(err)
	}
	r := stint.Request{Policy: "wide", Subject: alice, Cost: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Evaluate(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
