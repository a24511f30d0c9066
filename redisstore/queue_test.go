package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

// waiting makes a queue of single charges, one for each lot named, in order.
func waiting(t *testing.T, bound int, lots ...int) (*queue, []*job) {
	t.Helper()
	single, _ := anyPolicies(t)
	q := &queue{bound: bound}
	q.filled.L = &q.mu
	var all []*job
	for i, l := range lots {
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject(fmt.Sprint(i)), Cost: 1})
		j := &job{group: g, lot: lot{slot: l}}
		all = append(all, j)
		if err := q.put(j); err != nil {
			t.Fatal(err)
		}
	}
	return q, all
}

func places(all, batch []*job) (is []int) {
	for _, j := range batch {
		is = append(is, slices.Index(all, j))
	}
	return is
}

func TestABatchIsTheOldestAndItsLotInOrder(t *testing.T) {
	q, all := waiting(t, 10, 1, 2, 1, 3, 2, 1)
	for _, want := range [][]int{{0, 2, 5}, {1, 4}, {3}} {
		if got := places(all, q.take(nil)); !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
	}
	if q.length() != 0 {
		t.Errorf("%d wait", q.length())
	}
}

func TestWhatWasGivenUpIsNotTaken(t *testing.T) {
	q, all := waiting(t, 10, 1, 1, 2, 1)
	all[0].state.Store(abandoned)
	all[3].state.Store(abandoned)
	for _, want := range [][]int{{1}, {2}} {
		if got := places(all, q.take(nil)); !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
	}
}

func TestABatchIsBounded(t *testing.T) {
	lots := make([]int, 3*maximumBatch+1)
	q, all := waiting(t, len(lots), lots...)
	next := 0
	for _, want := range []int{maximumBatch, maximumBatch, maximumBatch, 1} {
		got := places(all, q.take(nil))
		if len(got) != want || got[0] != next {
			t.Fatalf("took %d from %d, want %d from %d", len(got), got[0], want, next)
		}
		next += len(got)
	}
}

func TestAQueueIsBoundedAndEnds(t *testing.T) {
	q, all := waiting(t, 2, 1, 1)
	if err := q.put(all[0]); err == nil {
		t.Error("a third job was put into a queue of two")
	}
	q.close()
	if err := q.put(all[0]); err == nil {
		t.Error("a job was put into a closed queue")
	}
	if got := q.take(nil); len(got) != 0 {
		t.Errorf("took %d from a closed queue", len(got))
	}
	if got := places(all, q.rest()); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("the rest is %v", got)
	}
}

// Nothing is lost, taken twice, or overtaken within its lot, in any order of
// putting and taking.
func TestAQueueLosesNothing(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 7))
		q, all := waiting(t, 1<<20)
		newest := map[int]int{}
		taken := 0
		for len(all) < 500 || taken < len(all) {
			if len(all) < 500 && r.IntN(3) > 0 {
				g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{})
				j := &job{group: g, lot: lot{slot: r.IntN(4)}}
				all = append(all, j)
				_ = q.put(j)
				continue
			}
			if taken == len(all) {
				continue
			}
			for _, i := range places(all, q.take(nil)) {
				slot := all[i].lot.slot
				if last, ok := newest[slot]; ok && i <= last {
					t.Fatalf("seed %d: job %d of lot %d came after %d", seed, i, slot, last)
				}
				newest[slot] = i
				taken++
			}
		}
		if q.length() != 0 {
			t.Fatalf("seed %d: %d are left", seed, q.length())
		}
	}
}

// While a slot moves, two counters in one script may be on two nodes.
func TestWhatGoesAloneIsNotJoined(t *testing.T) {
	q, all := waiting(t, 10, 1, 1)
	for _, j := range all {
		j.lot.by.alone = true
	}
	for i := range all {
		if got := places(all, q.take(nil)); !slices.Equal(got, []int{i}) {
			t.Errorf("took %v, want %v alone", got, i)
		}
	}
}

// An edit of a policy shares its counters, and is not judged by the other's limits.
func TestAnEditedPolicyHasABatchOfItsOwn(t *testing.T) {
	q, _ := waiting(t, 10)
	limits := func(n int64) []stint.Limit {
		return []stint.Limit{stint.FixedWindow{Limit: n, Window: time.Hour}, stint.TokenBucket{Capacity: n, Refill: 1, Every: time.Hour}}
	}
	before := policy(t, stint.Policy{ID: "p", Limits: limits(1000)})
	after := policy(t, stint.Policy{ID: "p", Limits: limits(1)})
	var all []*job
	for _, p := range []*stint.Policy{before, after, before, after} {
		j := &job{group: group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})}
		all = append(all, j)
		if err := q.put(j); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][]int{{0, 2}, {1, 3}} {
		if got := places(all, q.take(nil)); !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
	}
}
