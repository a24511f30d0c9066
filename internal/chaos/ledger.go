package chaos

import (
	"slices"

	"github.com/stintlimit/stint"
)

// everlasting is the least window, ms, that a run does not see the end of: a
// counter of one holds the sum of all that was spent on it.
const everlasting = 365 * 24 * 3_600_000

// ledger reports whether a counter of the policy can be compared with a sum.
func ledger(p *stint.Policy) bool {
	t := p.Terms()
	return len(t) == 1 && t[0].Algorithm == stint.AlgorithmFixedWindow && t[0].Period >= everlasting
}

// account is what the callers know of one counter.
type account struct {
	identities []*identity
	from, to   int64 // everything that was asked of it ran between, epoch µs
}

// accounts lists what was asked of each counter.
func accounts(all []*identity) map[string]*account {
	list := map[string]*account{}
	for _, i := range all {
		seen := map[string]bool{}
		for _, o := range i.operations() {
			for _, charge := range o.Charges {
				a := list[charge.Counter]
				if a == nil {
					a = &account{from: o.Called}
					list[charge.Counter] = a
				}
				a.from, a.to = min(a.from, o.Called), max(a.to, o.end())
				if !seen[charge.Counter] {
					seen[charge.Counter] = true
					a.identities = append(a.identities, i)
				}
			}
		}
	}
	return list
}

// comparable reports whether an audit saw everything that was asked of the
// counter, and nothing of it was lost.
func (a *account) comparable(audit *Audit, e eras) bool {
	s := e.of(a.from, audit.Returned)
	return audit.Called >= a.to && s.first == s.last
}

// checkLedger: the counter holds the sum of what was admitted, each id once;
// what ended unknown and was not resolved may or may not be there, and what was
// refunded with an unknown outcome neither; what was refunded, and what ended in
// any other way, is not.
func (c *check) checkLedger(a *account, audit *Audit, p *stint.Policy) {
	var definite, perhaps int64
	for _, i := range a.identities {
		cost := i.attempts[0].cost(audit.Counter)
		switch {
		case i.returned():
		case i.uncertain() || len(i.executions) > 0 && slices.ContainsFunc(i.refunds, (*Operation).unknown):
			perhaps += cost
		default:
			definite += cost * int64(len(i.executions))
		}
	}
	spent := p.Terms()[0].Quota - audit.Remaining
	switch {
	case spent > definite+perhaps:
		c.fail("what was not admitted was not spent", audit.Counter, "the server holds %d spent; %d were admitted, and at most %d more are unknown",
			spent, definite, perhaps)
	case spent < definite:
		c.fail("what was admitted is kept", audit.Counter, "the server holds %d spent, and %d were admitted", spent, definite)
	}
}

// checkTTL: a counter is kept as long as it means something and not much
// longer; without a loss of data none is kept for ever.
func (c *check) checkTTL(audit *Audit, p *stint.Policy) {
	switch {
	case audit.TTL == -1:
		c.fail("every key ends", audit.Counter, "it has no time to live")
	case audit.TTL > longest(p):
		c.fail("every key ends", audit.Counter, "it lives for %d ms, and at most %d are of use", audit.TTL, longest(p))
	}
}

// longest is the longest time to live of a counter, ms.
func longest(p *stint.Policy) (ms int64) {
	for _, t := range p.Terms() {
		switch t.Algorithm {
		case stint.AlgorithmFixedWindow:
			ms = max(ms, t.Period)
		case stint.AlgorithmSlidingCounter:
			ms = max(ms, 2*t.Period)
		case stint.AlgorithmTokenBucket:
			ms = max(ms, (t.Quota+t.Refill-1)/t.Refill*t.Period)
		}
	}
	safety := max(p.MaximumClockRegression.Milliseconds(), 2*MaximumClockSkew.Milliseconds())
	// The state may be ahead of the clock by the regression that is allowed.
	return ms + safety + p.MaximumClockRegression.Milliseconds() + p.CleanupGrace.Milliseconds()
}
