package storetest

import (
	"strconv"
	"time"

	"github.com/stintlimit/stint"
)

// stepClock moves the clock to where something happens: not at all, a little,
// to the edge of an advertised wait, or far ahead. Now and then it stays a
// little behind, and now and then a caller is behind by anything, once.
func (p *program) stepClock() {
	p.skew = 0
	switch n := p.IntN(100); {
	case n < 50:
	case n < 65:
		p.now += p.Int64N(20)
	case n < 72:
		p.now += p.Int64N(5_000)
	case n < 86:
		p.now += p.edge()
	case n < 87:
		p.now += p.Int64N(30 * 86_400_000)
	case n < 90:
		p.now -= p.Int64N(20)
	case n < 91:
		p.now -= p.Int64N(5_000)
	case n < 99:
		p.skew = p.Int64N(6_000)
	default:
		p.skew = p.Int64N(2 * 3_600_000)
	}
}

// edge is the wait that some counter advertised last, or one millisecond less.
func (p *program) edge() int64 {
	f := &p.families[p.IntN(len(p.families))]
	d := p.last[counter{f.now().Key(), p.subject()}]
	waits := [...]time.Duration{d.RetryAfter, d.MoreAfter, d.ResetAfter}
	return min(max(0, waits[p.IntN(len(waits))].Milliseconds()-p.Int64N(2)), 30*86_400_000)
}

func (p *program) subject() stint.Pseudonym { return pseudonym(subjects[p.IntN(len(subjects))]) }

// next is the next group to decide.
func (p *program) next() stint.Group {
	if p.oneIn(40) {
		p.families[p.IntN(len(p.families))].edit(p)
	}
	if len(p.asked) > 0 && p.oneIn(6) {
		return p.repeat()
	}
	if p.oneIn(8) {
		return p.refund()
	}
	op, eid := stint.Take, stint.EvaluationID{}
	if p.oneIn(6) {
		op = stint.Peek
	}
	if p.oneIn(2) {
		eid = id(strconv.Itoa(p.IntN(1 << 20)))
	}
	charges := 1
	if p.oneIn(3) {
		charges = 2 + p.IntN(3)
	}
	return newGroup(op, eid, p.now-p.skew, p.charges(op, charges))
}

// charges are n charges on different counters.
func (p *program) charges(op stint.Op, n int) []stint.Charge {
	var list []stint.Charge
	taken := map[counter]bool{}
	for len(list) < n {
		pol := p.families[p.IntN(len(p.families))].now()
		c := stint.Charge{Policy: pol, Subject: p.subject()}
		at := counter{pol.Key(), c.Subject}
		if !taken[at] {
			taken[at] = true
			c.Cost = p.cost(op, c)
			list = append(list, c)
		}
	}
	return list
}

// cost is at an edge more often than not.
func (p *program) cost(op stint.Op, c stint.Charge) int64 {
	least, most := int64(1), c.Policy.MaximumCost
	if op == stint.Peek {
		least = 0
	}
	var cost int64
	last, known := p.last[counter{c.Policy.Key(), c.Subject}]
	switch n := p.IntN(10); {
	case n < 3:
		cost = 1
	case n < 4:
		cost = most
	case n < 5:
		cost = least
	case known && n < 7:
		cost = last.Remaining
	case known && n < 8:
		cost = last.Remaining + 1
	default:
		cost = least + p.Int64N(most-least+1)
	}
	return min(max(cost, least), most)
}

// repeat asks again under an id: for the same, for less, for another charge
// more, or beside another counter.
func (p *program) repeat() stint.Group {
	old := p.asked[p.IntN(len(p.asked))]
	return newGroup(stint.Take, old.ID, p.now-p.skew, p.vary(old.charges(), 8))
}

// charges are those that were asked for.
func (a *asked) charges() (list []stint.Charge) {
	for _, c := range a.Charges() {
		list = append(list, *c)
	}
	return list
}

// vary makes charges others now and then: three times in n.
func (p *program) vary(charges []stint.Charge, n int) []stint.Charge {
	switch p.IntN(n) {
	case 0:
		charges[0].Cost = 1
	case 1:
		return p.charges(stint.Take, len(charges))
	case 2:
		return charges[:1]
	}
	return charges
}

// refund undoes something that was asked for, under its id or another, or
// something that never was; with receipts or without, true ones or not. Some
// of the policies have been edited since.
func (p *program) refund() stint.Group {
	eid := id("refund " + strconv.Itoa(p.IntN(1<<20)))
	charges := p.charges(stint.Take, 1+p.IntN(2))
	if len(p.asked) > 0 && !p.oneIn(8) {
		old := p.asked[p.IntN(len(p.asked))]
		charges = old.charges()
		for i, receipt := range old.receipts {
			charges[i].At = receipt
		}
		charges = p.vary(charges, 16)
		if !p.oneIn(3) {
			eid = old.ID
		}
	}
	for i := range charges {
		c := &charges[i]
		switch p.IntN(8) {
		case 0, 1:
			c.At = 0
		case 2:
			c.At = max(0, p.now-p.Int64N(20_000))
		case 3:
			c.At = max(0, c.At+p.Int64N(3)-1)
		}
		if p.oneIn(4) {
			c.Policy = p.edited(c.Policy)
		}
	}
	if charges[0].Policy.Dedup.Off { // nobody may refund it
		return newGroup(stint.Peek, eid, p.now-p.skew, charges)
	}
	return newGroup(stint.Refund, eid, p.now-p.skew, charges)
}

// edited is what a policy has become.
func (p *program) edited(old *stint.Policy) *stint.Policy {
	for i := range p.families {
		if f := &p.families[i]; f.now().Key() == old.Key() {
			return f.now()
		}
	}
	return old
}
