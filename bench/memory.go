package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// Size says how much to measure.
type Size struct {
	Rounds     int // of each contestant
	Operations int // a round
	Keys       int // that operations go to, in an order that no cache likes
}

var errRefused = errors.New("a decision was refused that the budget allows")

// bucket is a budget that these measurements never use up: a token bucket,
// since that is what the other stores keep.
func bucket() stint.Policy {
	return stint.Policy{
		ID:     "bench",
		Limits: []stint.Limit{stint.TokenBucket{Capacity: 1_000_000_000, Refill: 1_000_000_000, Every: time.Minute}},
	}
}

// Subject returns the pseudonym of the nth subject.
func Subject(n int) stint.Pseudonym {
	p := stint.Pseudonym{Version: 1}
	binary.BigEndian.PutUint64(p.Digest[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(p.Digest[8:], uint64(n))
	return p
}

// Memory compares memstore with the memory store of go-limiter, called by one
// goroutine and by one for each processor.
func Memory(s Size) (Table, error) {
	policy, err := stint.NewPolicy(bucket())
	if err != nil {
		return Table{}, err
	}
	ours := memstore.New(memstore.Config{})
	theirs, err := memorystore.New(&memorystore.Config{Tokens: 1_000_000_000, Interval: time.Minute, InitialAlloc: s.Keys})
	if err != nil {
		return Table{}, err
	}
	ctx := context.Background()
	defer func() { _ = theirs.Close(ctx) }()

	subjects := make([]stint.Pseudonym, s.Keys)
	names := make([]string, s.Keys)
	for i := range s.Keys {
		subjects[i] = Subject(i)
		names[i] = subjects[i].String()
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(s.Keys)
	stintTakes := func(from, n int) error { return decideAll(ctx, ours, policy, subjects, order, from, n) }
	otherTakes := func(from, n int) error { return takeAll(ctx, theirs, names, order, from, n) }

	workers := runtime.GOMAXPROCS(0)
	all := []contestant{
		timed("memstore.Decide, one goroutine", 1, s.Operations, stintTakes),
		timed("go-limiter Take, one goroutine", 1, s.Operations, otherTakes),
		timed(fmt.Sprintf("memstore.Decide, %d goroutines", workers), workers, s.Operations, stintTakes),
		timed(fmt.Sprintf("go-limiter Take, %d goroutines", workers), workers, s.Operations, otherTakes),
	}
	medians, err := measure(s.Rounds, all)
	if err != nil {
		return Table{}, err
	}
	t := Table{
		Title:   "The embedded store",
		Columns: []string{"", "ns a decision", "allocations", "stint : go-limiter"},
		Notes: []string{fmt.Sprintf("%d keys, %d decisions a round, medians of %d rounds, by turns. Promised: no allocation, at most 1.20 ×.",
			s.Keys, s.Operations, s.Rounds)},
	}
	for i, c := range all {
		quotient := ""
		if i%2 == 0 {
			quotient = ratio(medians[i]["ns"], medians[i+1]["ns"])
		}
		t.Rows = append(t.Rows, Row{c.name, []string{
			fmt.Sprintf("%.1f", medians[i]["ns"]), fmt.Sprintf("%.2f", medians[i]["allocations"]), quotient,
		}})
	}
	return t, nil
}

// decideAll makes n decisions, beginning at a place in the order. The clock is
// given: it moves by a millisecond every thousand decisions.
func decideAll(ctx context.Context, store stint.Store, p *stint.Policy, subjects []stint.Pseudonym, order []int, from, n int) error {
	now := time.Now()
	deadline, start := now.Add(time.Hour), now.UnixMilli()
	for i := range n {
		g := stint.Group{Now: start + int64(i/1000), Deadline: deadline}
		g.Append(stint.Charge{Policy: p, Subject: subjects[order[(from+i)%len(order)]], Cost: 1})
		v, err := store.Decide(ctx, g)
		if err != nil {
			return err
		}
		if !v.Allowed {
			return errRefused
		}
	}
	return nil
}

func takeAll(ctx context.Context, store limiter.Store, names []string, order []int, from, n int) error {
	for i := range n {
		_, _, _, ok, err := store.Take(ctx, names[order[(from+i)%len(order)]])
		if err != nil {
			return err
		}
		if !ok {
			return errRefused
		}
	}
	return nil
}

// timed measures operations spread over workers that begin at different
// places: the time and the allocations of one.
func timed(name string, workers, operations int, f func(from, n int) error) contestant {
	return contestant{name, func() (map[string]float64, error) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		err := spread(workers, operations, f)
		elapsed := time.Since(start)
		runtime.ReadMemStats(&after)
		return map[string]float64{
			"ns":          float64(elapsed.Nanoseconds()) / float64(operations),
			"allocations": float64(after.Mallocs-before.Mallocs) / float64(operations),
			"per second":  float64(operations) / elapsed.Seconds(),
		}, err
	}}
}

// spread calls f once a worker, at the same time, and returns every error.
func spread(workers, operations int, f func(from, n int) error) error {
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		n := operations / workers
		all.Go(func() { errs[w] = f(w*n, n) })
	}
	all.Wait()
	return errors.Join(errs...)
}
