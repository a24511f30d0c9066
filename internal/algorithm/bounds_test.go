package algorithm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintlimit/stint"
)

// admission is what was let through, and when.
type admission struct{ at, cost int64 }

// admitted drives a limit with more than it admits, and returns what passed.
// Callers' clocks may be a little behind: an admission counts at the instant
// that the counter raised it to.
func admitted(t *rapid.T, term *stint.Terms) (list []admission) {
	k, now := counter{terms: term}, day+rapid.Int64Range(0, 100).Draw(t, "start")
	for range rapid.IntRange(20, 120).Draw(t, "calls") {
		now += rapid.Int64Range(0, max(1, term.Period/2)).Draw(t, "wait")
		late := rapid.SampledFrom([]int64{0, 0, 0, 1, 5}).Draw(t, "late")
		cost := rapid.Int64Range(1, term.Quota).Draw(t, "cost")
		if wait, _ := k.take(t, now-late, cost); wait == 0 {
			list = append(list, admission{k.at, cost})
		}
	}
	return list
}

// within sums what was admitted from an instant on, for a duration.
func within(list []admission, from, length int64) (sum int64) {
	for _, a := range list {
		if a.at >= from && a.at < from+length {
			sum += a.cost
		}
	}
	return sum
}

func period(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(1, 60).Draw(t, "period")) * time.Millisecond
}

func TestWindowsBoundWhatPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota, window := rapid.Int64Range(1, 20).Draw(t, "limit"), period(t)
		sliding := rapid.Bool().Draw(t, "sliding")
		var l stint.Limit = stint.FixedWindow{Limit: quota, Window: window}
		if sliding {
			l = stint.SlidingCounter{Limit: quota, Window: window}
		}
		term := terms(t, l)
		list := admitted(t, term)
		for _, a := range list {
			begin := a.at - a.at%term.Period
			if got := within(list, begin, term.Period); got > quota {
				t.Fatalf("%d admitted of %d in an aligned window", got, quota)
			}
			if got := within(list, a.at, term.Period); sliding && got > 2*quota {
				t.Fatalf("%d admitted of %d in an interval of one window", got, quota)
			}
		}
	})
}

func TestBucketsBoundWhatPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := terms(t, stint.TokenBucket{
			Capacity: rapid.Int64Range(1, 20).Draw(t, "capacity"), Refill: rapid.Int64Range(1, 20).Draw(t, "refill"), Every: period(t),
		})
		list := admitted(t, term)
		for i, a := range list {
			for _, b := range list[i:] {
				length := b.at - a.at + 1
				bound := term.Quota + term.Refill*((length+term.Period-1)/term.Period)
				if got := within(list, a.at, length); got > bound {
					t.Fatalf("%d admitted in %d ms, at most %d may be", got, length, bound)
				}
			}
		}
	})
}
