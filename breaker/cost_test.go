package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// limiter is one over a breaker before a store.
func limiter(t testing.TB, behind stint.Store) *stint.Limiter {
	t.Helper()
	s, err := breaker.New(behind, breaker.Config{Span: 1, Cooldown: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l, err := stint.New(s, []stint.Policy{{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// opened is a limiter over a breaker that is open.
func opened(t testing.TB) *stint.Limiter {
	t.Helper()
	l := limiter(t, storetest.Faulty(stint.BeforeSend))
	for range 2 * breaker.DefaultFailures {
		_, _ = l.Evaluate(context.Background(), stint.Request{Policy: "api", Cost: 1})
	}
	return l
}

func TestItAllocatesNothing(t *testing.T) {
	for name, l := range map[string]*stint.Limiter{"closed": limiter(t, memstore.New(memstore.Config{})), "open": opened(t)} {
		r := stint.Request{Policy: "api", Cost: 1}
		_, _ = l.Evaluate(t.Context(), r) // makes the counter
		if n := testing.AllocsPerRun(100, func() { _, _ = l.Evaluate(t.Context(), r) }); n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	plain, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{
		{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		limiter *stint.Limiter
	}{
		{"memory alone", plain},
		{"closed before memory", limiter(b, memstore.New(memstore.Config{}))},
		{"open", opened(b)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = c.limiter.Evaluate(b.Context(), stint.Request{Policy: "api", Cost: 1})
			}
		})
		b.Run(c.name+", in parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = c.limiter.Evaluate(b.Context(), stint.Request{Policy: "api", Cost: 1})
				}
			})
		})
	}
}
