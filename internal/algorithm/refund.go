package algorithm

import "github.com/stintlimit/stint"

// Refund gives back what a charge of cost, spent at the instant at, still
// holds of s, which has been advanced to now. cost is 1 to 2^53 - 1.
//
// A charge holds nothing once its window has passed, nor of a bucket what was
// refilled since: every refill counts against every charge, so that all
// charges together never hold more than is spent. A charge of the future holds
// nothing either, and nothing ever becomes more than whole.
func Refund(t *stint.Terms, s State, at, now, cost int64) State {
	held := min(holds(t, s, at, now, cost), s.Spent)
	if held == 0 {
		return s
	}
	if held == s.Spent && t.Algorithm == stint.AlgorithmTokenBucket {
		return Fresh(t, now) // as after a refill that reaches full
	}
	return State{Spent: s.Spent - held, Extra: s.Extra}
}

// holds is how much of cost passing time has left.
func holds(t *stint.Terms, s State, at, now, cost int64) int64 {
	switch {
	case at > now:
		return 0
	case t.Algorithm != stint.AlgorithmTokenBucket:
		if at < start(t, now) {
			return 0
		}
		return cost
	}
	refills := ceil(max(0, s.Extra-at), t.Period)
	if refills >= ceil(cost, t.Refill) {
		return 0
	}
	return cost - refills*t.Refill
}
