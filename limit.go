package stint

import (
	"cmp"
	"strconv"
	"time"
)

// A Limit is one bound of a policy: a [FixedWindow], a [SlidingCounter] or a
// [TokenBucket]. Durations are whole milliseconds, at least one.
type Limit interface {
	terms() Terms
	name() string
}

// FixedWindow admits at most Limit units in each window. Windows are aligned
// to the Unix epoch, so that every process agrees on where one begins.
type FixedWindow struct {
	Name   string        // what response fields call it; see Policy.LimitName
	Limit  int64         // units a window, at least 1
	Window time.Duration // at least 1ms
}

// SlidingCounter admits at most Limit units in each aligned window, counting
// the previous window's units in proportion to how much of it still lies
// within one window before now. In any interval of one window it admits at
// most twice Limit.
//
// Limit times Window in milliseconds, plus Window, stays below 2^53.
type SlidingCounter struct {
	Name   string        // what response fields call it; see Policy.LimitName
	Limit  int64         // units a window, at least 1
	Window time.Duration // at least 1ms
}

// TokenBucket holds at most Capacity tokens, starts full, and gains Refill
// tokens at the end of each whole period Every. In any interval D it admits
// at most Capacity + Refill × ⌈D / Every⌉.
type TokenBucket struct {
	Name     string        // what response fields call it; see Policy.LimitName
	Capacity int64         // tokens, at least 1
	Refill   int64         // tokens a period, at least 1
	Every    time.Duration // the period, at least 1ms
}

// Algorithm tells the three kinds of limit apart.
type Algorithm uint8

// The algorithms. Their values are part of what stores exchange with their
// scripts and never change.
const (
	AlgorithmFixedWindow    Algorithm = 1
	AlgorithmSlidingCounter Algorithm = 2
	AlgorithmTokenBucket    Algorithm = 3
)

// String returns the name that configuration files use.
func (a Algorithm) String() string {
	switch a {
	case AlgorithmFixedWindow:
		return "fixed-window"
	case AlgorithmSlidingCounter:
		return "sliding-counter"
	case AlgorithmTokenBucket:
		return "token-bucket"
	}
	return "algorithm(" + strconv.Itoa(int(a)) + ")"
}

// Terms is a limit reduced to the integers that the arithmetic needs. Stores
// read it; a caller of the library has no use for it.
type Terms struct {
	Algorithm Algorithm
	Quota     int64 // the limit or the capacity: the most that can ever pass at once
	Period    int64 // the window or the refill period, ms
	Refill    int64 // tokens a period; 0 unless a token bucket
	Index     int   // where the limit stands in Policy.Limits
}

func (l FixedWindow) terms() Terms {
	return Terms{Algorithm: AlgorithmFixedWindow, Quota: l.Limit, Period: l.Window.Milliseconds()}
}

func (l SlidingCounter) terms() Terms {
	return Terms{Algorithm: AlgorithmSlidingCounter, Quota: l.Limit, Period: l.Window.Milliseconds()}
}

func (l TokenBucket) terms() Terms {
	return Terms{Algorithm: AlgorithmTokenBucket, Quota: l.Capacity, Period: l.Every.Milliseconds(), Refill: l.Refill}
}

func (l FixedWindow) name() string    { return l.Name }
func (l SlidingCounter) name() string { return l.Name }
func (l TokenBucket) name() string    { return l.Name }

// compareTerms orders limits canonically: two policies that list the same
// limits in another order share one layout of state.
func compareTerms(a, b Terms) int {
	return cmp.Or(cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(a.Period, b.Period))
}

// shape names what a stored state depends on: the algorithm and its window or
// refill period, but not the limit, the capacity or the refill, so that
// editing those carries usage over.
func (t Terms) shape() string {
	letter := [...]string{AlgorithmFixedWindow: "f", AlgorithmSlidingCounter: "s", AlgorithmTokenBucket: "t"}
	for _, unit := range []struct {
		ms   int64
		name string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "m"}, {1_000, "s"}} {
		if t.Period%unit.ms == 0 {
			return letter[t.Algorithm] + strconv.FormatInt(t.Period/unit.ms, 10) + unit.name
		}
	}
	return letter[t.Algorithm] + strconv.FormatInt(t.Period, 10)
}
