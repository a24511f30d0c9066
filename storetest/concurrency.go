package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintlimit/stint"
)

// concurrencyPromises are about callers at the same time. They say more under
// the race detector.
var concurrencyPromises = []promise{
	{"callers at the same time never pass the limit, and reach it", limitIsReached},
	{"groups that cross each other do not wait for ever", crossingGroups},
	{"an id repeated at the same time is spent once", repeatedAtOnce},
	{"a charge and its refund at the same time leave nothing spent", refundedAtOnce},
	{"shuffled timestamps admit what the span allows", shuffledTimestamps},
}

const callers = 16

// together calls work from several goroutines, n times each, and waits.
func together(n int, work func(caller, i int)) {
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range n {
				work(caller, i)
			}
		})
	}
	all.Wait()
}

// try decides without ending the test, as goroutines must.
func (b *bench) try(g stint.Group) stint.Verdict {
	v, err := b.Store.Decide(context.Background(), g)
	if err != nil {
		b.Errorf("%s: %v", showGroup(&g), err)
	} else if problem := malformed(&g, &v, err); problem != "" {
		b.Errorf("%s: %s", showGroup(&g), problem)
	}
	return v
}

func limitIsReached(b *bench) {
	for _, p := range sized(b, 50) {
		var allowed atomic.Int64
		together(10, func(int, int) {
			if v := b.try(b.group(stint.Take, stint.EvaluationID{}, charge(p, "alice", 1))); v.Allowed {
				allowed.Add(1)
			}
		})
		if n := allowed.Load(); n != 50 {
			b.Errorf("%s: %d allowed of 50", p.ID, n)
		}
	}
}

func crossingGroups(b *bench) {
	p := window(b, "crossing", 1000, stint.Enforce)
	var spent [8]atomic.Int64
	together(20, func(caller, i int) {
		r := rand.New(rand.NewPCG(uint64(caller), uint64(i)))
		var charges []stint.Charge
		places := r.Perm(len(spent))[:4]
		for _, place := range places {
			charges = append(charges, charge(p, fmt.Sprint(place), 1))
		}
		if v := b.try(b.group(stint.Take, stint.EvaluationID{}, charges...)); v.Allowed {
			for _, place := range places {
				spent[place].Add(1)
			}
		}
	})
	for place := range spent {
		b.left(p, fmt.Sprint(place), 1000-spent[place].Load())
	}
}

func repeatedAtOnce(b *bench) {
	p := window(b, "repeated", 1000, stint.Enforce)
	var first atomic.Int64
	together(5, func(_, i int) {
		v := b.try(b.group(stint.Take, id(fmt.Sprint(i)), charge(p, "alice", 3)))
		if d := v.Decision(0); !d.Replayed {
			first.Add(1)
		}
	})
	if n := first.Load(); n != 5 {
		b.Errorf("5 ids were answered %d times for the first time", n)
	}
	b.left(p, "alice", 1000-15)
}

func refundedAtOnce(b *bench) {
	p := window(b, "refunded", 1000, stint.Enforce)
	together(5, func(caller, i int) {
		g := b.group(stint.Take, id(fmt.Sprint(i)), charge(p, "alice", 3))
		if caller%2 == 1 {
			g.Op = stint.Refund
		}
		_, err := b.Store.Decide(context.Background(), g)
		if r := stint.ReasonOf(err); err != nil && (g.Op == stint.Refund || r != stint.EvaluationMismatch) {
			b.Errorf("%s: %v", showGroup(&g), err)
		}
	})
	b.left(p, "alice", 1000)
}

// shuffledTimestamps is the second half of case C17.
func shuffledTimestamps(b *bench) {
	p := policy(b, stint.Policy{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: 4, Refill: 2, Every: time.Second}}})
	var allowed atomic.Int64
	together(1000/callers, func(caller, i int) {
		now := epoch + int64((caller*31+i*17)%100)
		if v := b.try(newGroup(stint.Take, stint.EvaluationID{}, now, []stint.Charge{charge(p, "alice", 1)})); v.Allowed {
			allowed.Add(1)
		}
	})
	if n := allowed.Load(); n != 4 {
		b.Errorf("%d allowed within 100ms, want the capacity, 4", n)
	}
}
