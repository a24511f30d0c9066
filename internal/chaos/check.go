package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stintlimit/stint"
)

// Violation is a promise that a history breaks.
type Violation struct {
	Rule    string // the promise
	Subject string // the counter, the id or the call that shows it
	Text    string
}

func (v Violation) String() string { return v.Rule + ": " + v.Subject + ": " + v.Text }

// Report is what [Check] found.
type Report struct {
	Operations int
	Outcomes   map[string]int // by outcome: allowed, replayed, denied, peeked, refunded, unanswered, or a reason
	IDs        int            // evaluation ids
	Repeated   int            // ids with several attempts
	Resolved   int            // identities with an unknown outcome that was found out
	Unresolved int            // and that was not
	Losses     int
	Counters   int // with admissions, whose bounds were checked
	Compared   int // audits of which the sum was compared
	Passed     int // audits of ledgers that a loss, or a late call, made incomparable
	Ordered    int // counters that were found linearizable
	Undecided  int // counters that took too long to order
	Faults     int // deeds of the nemesis
	Met        int // faults on the wire; the suite fills it in
	Violations []Violation
}

// Proved reports whether there was something to compare, to order and to repeat.
func (r *Report) Proved() bool { return r.Compared > 0 && r.Ordered > 0 && r.Repeated > 0 }

// Broken lists the rules that are broken.
func (r *Report) Broken() []string {
	rules := map[string]bool{}
	for _, v := range r.Violations {
		rules[v.Rule] = true
	}
	return slices.Sorted(maps.Keys(rules))
}

// String returns the report for people, at most a few violations of each rule.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations, %d ids (%d repeated), unknown %d resolved %d unresolved, %d losses of data, %d deeds, %d faults on the wire\n",
		r.Operations, r.IDs, r.Repeated, r.Resolved, r.Unresolved, r.Losses, r.Faults, r.Met)
	for _, k := range slices.Sorted(maps.Keys(r.Outcomes)) {
		fmt.Fprintf(&b, "  %-24s %d\n", k, r.Outcomes[k])
	}
	fmt.Fprintf(&b, "%d counters bounded, %d compared with the server (%d not comparable), %d linearizable (%d undecided)\n",
		r.Counters, r.Compared, r.Passed, r.Ordered, r.Undecided)
	shown := map[string]int{}
	for _, v := range r.Violations {
		if shown[v.Rule]++; shown[v.Rule] <= 5 {
			fmt.Fprintf(&b, "BROKEN %v\n", v)
		}
	}
	return b.String()
}

// check is one check under way.
type check struct {
	policies map[string]*stint.Policy
	eras     eras
	report   Report
}

func (c *check) fail(rule, subject, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{rule, subject, fmt.Sprintf(format, args...)})
}

// Check proves a history against the promises, or lists what it breaks. The
// policies are frozen; every policy of the history is among them.
func Check(h *History, policies []*stint.Policy) *Report {
	c := &check{policies: map[string]*stint.Policy{}, report: Report{Outcomes: map[string]int{}}}
	for _, p := range policies {
		c.policies[p.ID] = p
	}
	c.report.Losses, c.report.Faults, c.report.Operations = len(h.Losses), len(h.Faults), len(h.Operations)
	for _, o := range h.Operations {
		c.report.Outcomes[outcome(o)]++
		c.checkAnswer(o)
	}
	if len(c.report.Violations) > 0 {
		return &c.report // such answers cannot be reasoned about
	}
	for _, o := range h.Operations {
		c.checkClock(o)
	}
	c.eras = h.Losses
	all := identities(h, c.eras)
	for _, i := range all {
		c.checkIdentity(i)
		c.count(i)
	}
	counters := admissions(all)
	for _, counter := range slices.Sorted(maps.Keys(counters)) {
		of := counters[counter]
		c.report.Counters++
		c.checkBounds(counter, c.policies[of.policy], of.list)
	}
	c.checkAudits(h, all)
	return &c.report
}

// checkAudits compares what the servers held with what the callers know.
func (c *check) checkAudits(h *History, all []*identity) {
	asked := accounts(all)
	for n := range h.Audits {
		audit := &h.Audits[n]
		p := c.policies[audit.Policy]
		c.checkTTL(audit, p)
		a := asked[audit.Counter]
		if a == nil || !ledger(p) {
			continue
		}
		if !a.comparable(audit, c.eras) {
			c.report.Passed++
			continue
		}
		c.report.Compared++
		c.checkLedger(a, audit, p)
		c.checkOrder(a, audit, p)
	}
}

func (c *check) count(i *identity) {
	if i.attempts[0].ID != "" {
		c.report.IDs++
		if len(i.attempts) > 1 {
			c.report.Repeated++
		}
	}
	switch {
	case i.uncertain():
		c.report.Unresolved++
	case i.resolved():
		c.report.Resolved++
	}
}

func outcome(o *Operation) string {
	switch {
	case o.Answer == nil:
		return "unanswered"
	case o.Answer.Reason != "":
		return string(o.Answer.Reason)
	case o.Peek:
		return "peeked"
	case o.Refund:
		return "refunded"
	case o.replayed():
		return "replayed"
	case o.Answer.Allowed:
		return "allowed"
	}
	return "denied"
}

// admitted is what was admitted on one counter.
type admitted struct {
	policy string
	list   []admission
}

// admissions lists every execution of every identity by counter. What may have
// been refunded made room for more, and is left out.
func admissions(all []*identity) map[string]*admitted {
	counters := map[string]*admitted{}
	for _, i := range all {
		if len(i.refunds) > 0 {
			continue
		}
		for _, x := range i.executions {
			for n, charge := range x.operation.Charges {
				a := cmp.Or(counters[charge.Counter], &admitted{policy: charge.Policy})
				counters[charge.Counter] = a
				a.list = append(a.list, admission{at: x.operation.Answer.Decisions[n].At, cost: charge.Cost, eras: x.eras})
			}
		}
	}
	return counters
}
