// Package algorithm is the arithmetic of the three limits: fixed window,
// sliding counter and token bucket.
//
// Its functions are pure. They read no clock and do no I/O, and every number
// is an integer below 2^53, because the same arithmetic is written a second
// time in Lua, whose numbers are doubles, and both must agree in every bit.
// Which limit binds, what a group does and where state lives is not its
// business.
//
// Time is epoch milliseconds. In every function now is the effective instant:
// never behind the one at which the state was written.
package algorithm

import "github.com/stintlimit/stint"

// State is what is kept of one limit. The zero State at any instant is a fresh
// budget, once advanced.
type State struct {
	// Spent is what was spent: in the window (fixed window), in the current
	// window (sliding counter), or the deficit, capacity minus tokens.
	Spent int64

	// Extra is the units of the previous window (sliding counter) or the
	// instant of the last refill (token bucket). A fixed window has none.
	Extra int64
}

// Advance brings a state that was written at the instant at to now: windows
// pass, buckets refill. A state that has become fresh equals one that never
// was. ok is false if no admission can have written s at that instant: the
// state is damaged.
func Advance(t *stint.Terms, s State, at, now int64) (next State, ok bool) {
	if s.Spent < 0 || s.Extra < 0 || s.Spent > stint.MaxInteger {
		return State{}, false
	}
	switch t.Algorithm {
	case stint.AlgorithmFixedWindow:
		if at < start(t, now) {
			return State{}, true
		}
		return s, true
	case stint.AlgorithmSlidingCounter:
		most := stint.MaxInteger/t.Period - 1
		if s.Spent > most || s.Extra > most {
			return State{}, false
		}
		switch start(t, now) - start(t, at) {
		case 0:
			return s, true
		case t.Period:
			return State{Extra: s.Spent}, true
		}
		return State{}, true
	default:
		if s.Extra > at {
			return State{}, false
		}
		return refill(t, s, now), true
	}
}

// Fresh is the state of a counter that was never spent on.
func Fresh(t *stint.Terms, now int64) State {
	if t.Algorithm == stint.AlgorithmTokenBucket {
		return State{Extra: now}
	}
	return State{}
}

// refill adds whole periods of tokens. A bucket never lacks more than its
// capacity, which matters after the capacity was lowered.
func refill(t *stint.Terms, s State, now int64) State {
	deficit := min(s.Spent, t.Quota)
	periods := (now - s.Extra) / t.Period
	if periods >= ceil(deficit, t.Refill) {
		return State{Extra: now}
	}
	return State{Spent: deficit - periods*t.Refill, Extra: s.Extra + periods*t.Period}
}

// Remaining is the most that passes now, never negative. s has been advanced
// to now, here and below.
func Remaining(t *stint.Terms, s State, now int64) int64 {
	return max(0, free(t, s, now))
}

// free is Remaining before it is cut at 0: negative after a limit was lowered.
func free(t *stint.Terms, s State, now int64) int64 {
	carry := int64(0)
	if t.Algorithm == stint.AlgorithmSlidingCounter {
		carry = s.Extra * (start(t, now) + t.Period - now) / t.Period
	}
	return t.Quota - carry - s.Spent
}

// Wait returns the first instant at which cost passes if nothing else is
// spent, or 0 if it passes now. cost is 0 to the quota.
func Wait(t *stint.Terms, s State, now, cost int64) int64 {
	if cost <= free(t, s, now) || cost == 0 {
		return 0
	}
	switch t.Algorithm {
	case stint.AlgorithmFixedWindow:
		return start(t, now) + t.Period
	case stint.AlgorithmSlidingCounter:
		return waitSliding(t, s, now, cost)
	default:
		return s.Extra + ceil(s.Spent-(t.Quota-cost), t.Refill)*t.Period
	}
}

// waitSliding finds the instant by solving ⌊count × left / window⌋ ≤ room for
// left, the part of the window that still weighs: first in this window, where
// the previous count weighs, then in the next, where the current one does.
func waitSliding(t *stint.Terms, s State, now, cost int64) int64 {
	begin := start(t, now)
	if room := t.Quota - s.Spent - cost; room >= 0 {
		if left := ((room+1)*t.Period - 1) / s.Extra; left >= 1 {
			return begin + t.Period - left
		}
	}
	left := t.Period
	if s.Spent > 0 {
		left = min(left, ((t.Quota-cost+1)*t.Period-1)/s.Spent)
	}
	return begin + 2*t.Period - left
}

// MoreAt returns the first instant at which one more than Remaining passes, or
// 0 if it never can because the budget is whole.
func MoreAt(t *stint.Terms, s State, now int64) int64 {
	remaining := Remaining(t, s, now)
	if remaining >= t.Quota {
		return 0
	}
	return Wait(t, s, now, remaining+1)
}

// WholeAt returns the first instant at which the whole quota passes, or 0 if
// it does now.
func WholeAt(t *stint.Terms, s State, now int64) int64 {
	return Wait(t, s, now, t.Quota)
}

// ForgetAt returns the first instant at which a state just written may be
// forgotten, because it is then fresh.
func ForgetAt(t *stint.Terms, s State, now int64) int64 {
	switch t.Algorithm {
	case stint.AlgorithmFixedWindow:
		return start(t, now) + t.Period
	case stint.AlgorithmSlidingCounter:
		return start(t, now) + 2*t.Period
	default:
		return s.Extra + ceil(s.Spent, t.Refill)*t.Period
	}
}

// start is where the aligned window of now begins.
func start(t *stint.Terms, now int64) int64 { return now - now%t.Period }

// ceil is ⌈a / b⌉ for a ≥ 0, without a sum that could leave 2^53.
func ceil(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}
