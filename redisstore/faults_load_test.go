//go:build faults

package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/breaker"
)

const million = 1_000_000

// window is a limit that no test reaches, in a window that none outlasts.
var window = stint.FixedWindow{Limit: million, Window: 365 * 24 * time.Hour}

func limiter(t *testing.T, s stint.Store, budget time.Duration, limit stint.Limit) *stint.Limiter {
	t.Helper()
	l, err := stint.New(s, []stint.Policy{{
		ID: "api", Limits: []stint.Limit{limit}, MaximumClockRegression: time.Millisecond, CleanupGrace: time.Millisecond,
	}}, stint.WithBudget(budget))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// one is a request of client n.
func one(n int) stint.Request {
	r := stint.Request{Policy: "api", Cost: 1, Subject: stint.Pseudonym{Version: 1}}
	binary.BigEndian.PutUint64(r.Subject.Digest[:], uint64(n))
	return r
}

// result is what became of one call.
type result struct {
	took   time.Duration
	reason stint.Reason // "": decided
	open   bool         // refused by a breaker
}

func ask(l *stint.Limiter, n int) result {
	began := time.Now()
	_, err := l.Evaluate(context.Background(), one(n))
	return result{took: time.Since(began), reason: stint.ReasonOf(err), open: errors.Is(err, breaker.ErrOpen)}
}

// openLoop starts one call for each result, at a rate that no answer changes.
func openLoop(l *stint.Limiter, results []result, aSecond int) {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for started := 0; started < len(results); <-tick.C {
		due := min(len(results), int(time.Since(began)*time.Duration(aSecond)/time.Second)+1)
		for ; started < due; started++ {
			i := started
			calls.Go(func() { results[i] = ask(l, i) })
		}
	}
}

// allAtOnce starts one call for each result.
func allAtOnce(l *stint.Limiter, results []result) {
	var calls sync.WaitGroup
	for i := range results {
		calls.Go(func() { results[i] = ask(l, 0) })
	}
	calls.Wait()
}

// seen sums up results.
type seen struct {
	reasons map[stint.Reason]int
	open    int
	median  time.Duration
	worst   time.Duration
}

func (s seen) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "median %v, worst %v", s.median, s.worst.Round(time.Microsecond))
	for _, r := range slices.Sorted(maps.Keys(s.reasons)) {
		fmt.Fprintf(&b, ", %q %d", string(r), s.reasons[r])
	}
	fmt.Fprintf(&b, ", circuit open %d", s.open)
	return b.String()
}

// tally fails for calls that took longer than the bound.
func tally(t *testing.T, results []result, bound time.Duration) seen {
	t.Helper()
	s := seen{reasons: map[stint.Reason]int{}}
	var took []time.Duration
	late := 0
	for _, r := range results {
		s.reasons[r.reason]++
		if r.open {
			s.open++
		}
		if r.took > bound {
			late++
		}
		took = append(took, r.took)
	}
	slices.Sort(took)
	s.median, s.worst = took[len(took)/2], took[len(took)-1]
	if late > 0 {
		t.Errorf("%d of %d calls took longer than %v, up to %v", late, len(results), bound, s.worst)
	}
	return s
}

// watch finds out how late the machine runs what is due, so that a busy one is
// not taken for a store that dawdles. The function that it returns ends it.
func watch() (late func() time.Duration) {
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		const interval = time.Millisecond
		tick := time.NewTicker(interval)
		defer tick.Stop()
		most, last := time.Duration(0), time.Now()
		for {
			select {
			case <-stop:
				worst <- most
				return
			case <-tick.C:
				now := time.Now()
				most = max(most, now.Sub(last)-interval)
				last = now
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}

// footprint is what the process holds.
type footprint struct {
	goroutines int
	heap       int64
}

func measure() footprint {
	runtime.GC()
	runtime.GC() // pools keep what they hold for one more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), int64(m.HeapAlloc)}
}

// wantFlat waits until the process holds what it held before, give or take
// connections and a few pages.
func (before footprint) wantFlat(t *testing.T) {
	t.Helper()
	const connections, bytes = 40, 2 << 20
	deadline := time.Now().Add(forAll)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now := measure()
		if now.goroutines <= before.goroutines+connections && now.heap <= before.heap+bytes {
			t.Logf("goroutines %+d, heap %+d KiB", now.goroutines-before.goroutines, (now.heap-before.heap)>>10)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("before: %+v; after: %+v", before, now)
		}
		<-tick.C
	}
}
