package memstore_test

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

const benchSubjects = 10_000

const benchNow = int64(1_728_000_000_000)

var benchPolicies = []stint.Policy{
	{ID: "fixed", Limits: []stint.Limit{stint.FixedWindow{Limit: 1 << 40, Window: time.Hour}}},
	{ID: "sliding", Limits: []stint.Limit{stint.SlidingCounter{Limit: 1 << 30, Window: time.Hour}}},
	{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: 1 << 40, Refill: 1 << 30, Every: time.Hour}}},
	{ID: "three", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 1 << 40, Window: time.Hour},
		stint.SlidingCounter{Limit: 1 << 30, Window: time.Hour},
		stint.TokenBucket{Capacity: 1 << 40, Refill: 1 << 30, Every: time.Hour},
	}},
}

func frozen(t testing.TB, p stint.Policy) *stint.Policy {
	t.Helper()
	f, err := stint.NewPolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// number is the pseudonym of subject i.
func number(i int) stint.Pseudonym {
	p := stint.Pseudonym{Version: 1}
	binary.BigEndian.PutUint64(p.Digest[8:], uint64(i))
	return p
}

func one(p *stint.Policy, subject int, now int64) stint.Group {
	g := stint.Group{Now: now}
	g.Append(stint.Charge{Policy: p, Subject: number(subject), Cost: 1})
	return g
}

func BenchmarkDecide(b *testing.B) {
	for _, p := range benchPolicies {
		p := frozen(b, p)
		b.Run(p.ID, func(b *testing.B) {
			s := memstore.New(memstore.Config{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				v, err := s.Decide(context.Background(), one(p, i%benchSubjects, benchNow+int64(i>>10)))
				if err != nil || !v.Allowed {
					b.Fatal(v, err)
				}
				i++
			}
		})
	}
}

func BenchmarkDecideParallel(b *testing.B) {
	for _, p := range benchPolicies {
		p := frozen(b, p)
		b.Run(p.ID, func(b *testing.B) {
			s := memstore.New(memstore.Config{})
			b.ReportAllocs()
			var workers atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := int(workers.Add(1)) * 1777
				for pb.Next() {
					v, err := s.Decide(context.Background(), one(p, i%benchSubjects, benchNow+int64(i>>10)))
					if err != nil || !v.Allowed {
						b.Fatal(v, err)
					}
					i++
				}
			})
		})
	}
}

func BenchmarkDecideDenied(b *testing.B) {
	p := frozen(b, stint.Policy{ID: "fixed", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}})
	s := memstore.New(memstore.Config{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Decide(context.Background(), one(p, 1, benchNow)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecideGroup(b *testing.B) {
	var policies []*stint.Policy
	for _, p := range benchPolicies {
		policies = append(policies, frozen(b, p))
	}
	for _, size := range []int{2, 4} {
		b.Run(map[int]string{2: "two", 4: "four"}[size], func(b *testing.B) {
			s := memstore.New(memstore.Config{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				g := stint.Group{Now: benchNow + int64(i>>10)}
				for _, p := range policies[:size] {
					g.Append(stint.Charge{Policy: p, Subject: number(i % benchSubjects), Cost: 1})
				}
				if v, err := s.Decide(context.Background(), g); err != nil || !v.Allowed {
					b.Fatal(v, err)
				}
				i++
			}
		})
	}
}

// BenchmarkDecideNew is an insert each time, and a sweep of those before.
func BenchmarkDecideNew(b *testing.B) {
	p := frozen(b, stint.Policy{ID: "fixed", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Second}}})
	s := memstore.New(memstore.Config{})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if v, err := s.Decide(context.Background(), one(p, i, benchNow+int64(i>>4))); err != nil || !v.Allowed {
			b.Fatal(v, err)
		}
		i++
	}
	b.ReportMetric(float64(s.Len()), "counters")
}
