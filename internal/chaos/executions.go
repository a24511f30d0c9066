package chaos

import (
	"cmp"
	"fmt"
	"slices"
)

// execution is one time that a group was spent, as far as answers show it.
type execution struct {
	operation *Operation // whose answer shows it
	eras      span
}

// admission is one charge of an execution.
type admission struct {
	at   int64 // effective ms
	cost int64
	eras span
}

// identity is everything that was done under one evaluation id, or one
// operation without an id.
type identity struct {
	attempts   []*Operation
	refunds    []*Operation
	executions []execution
}

// operations lists everything that was done under the id.
func (i *identity) operations() []*Operation { return slices.Concat(i.attempts, i.refunds) }

// identities sorts the takes of a history by their ids.
func identities(h *History, e eras) []*identity {
	named := map[string]*identity{}
	var all []*identity
	for _, o := range h.Operations {
		if o.Peek {
			continue
		}
		i := named[o.ID]
		if o.ID == "" || i == nil {
			i = &identity{}
			all = append(all, i)
			named[o.ID] = i
		}
		if o.Refund {
			i.refunds = append(i.refunds, o)
		} else {
			i.attempts = append(i.attempts, o)
		}
	}
	all = slices.DeleteFunc(all, func(i *identity) bool { return len(i.attempts) == 0 })
	for _, i := range all {
		i.findExecutions(e)
	}
	return all
}

// findExecutions counts every admission that is not a replay, and every replay
// of an answer that no attempt was given.
func (i *identity) findExecutions(e eras) {
	for _, o := range i.attempts {
		if o.admitted() && !o.replayed() {
			i.executions = append(i.executions, execution{o, e.of(o.Called, o.Answer.Returned)})
		}
	}
	for _, o := range i.attempts {
		if !o.admitted() || !o.replayed() {
			continue
		}
		known := slices.ContainsFunc(i.executions, func(x execution) bool { return sameAnswer(x.operation, o) })
		if !known {
			s := span{e.of(i.attempts[0].Called, o.Answer.Returned).first, e.of(o.Called, o.Answer.Returned).last}
			i.executions = append(i.executions, execution{o, s})
		}
	}
}

// sameAnswer reports whether two answers are one, given twice.
func sameAnswer(a, b *Operation) bool {
	return slices.EqualFunc(a.Answer.Decisions, b.Answer.Decisions, func(x, y Decision) bool {
		x.Replayed, y.Replayed = false, false
		return x == y
	})
}

// checkIdentity: an id is charged once; once more after its record was lost.
func (c *check) checkIdentity(i *identity) {
	within(i.executions, func(x execution) span { return x.eras }, func(inside []execution, eras int64) {
		if int64(len(inside)) > eras {
			a, b := inside[0].operation, inside[1].operation
			c.fail("an id is charged once", i.attempts[0].ID, "charged %d times, in %d eras of data: by call %d of process %d and by call %d of process %d",
				len(inside), eras, a.Number, a.Process, b.Number, b.Process)
		}
	})
	for _, refund := range i.refunds {
		for _, o := range i.attempts {
			if refund.refunded() && o.admitted() && o.Called > refund.Answer.Returned && whole(c.eras.of(refund.Called, o.Answer.Returned)) {
				c.fail("what was refunded stays so", i.attempts[0].ID, "call %d of process %d was admitted after call %d of process %d refunded it",
					o.Number, o.Process, refund.Number, refund.Process)
			}
		}
	}
}

// whole reports whether something lies in one era.
func whole(s span) bool { return s.first == s.last }

// returned reports whether what was spent under i was given back, whatever it
// was: a refund that was answered also keeps out what is still on its way.
func (i *identity) returned() bool { return slices.ContainsFunc(i.refunds, (*Operation).refunded) }

// uncertain reports whether something may have been spent under i beyond what
// the executions say. An unknown outcome is resolved by an answer to an attempt
// that began after the unknown one could run no more.
func (i *identity) uncertain() bool {
	if len(i.executions) > 0 || i.returned() {
		return false // the record answers every other attempt
	}
	for _, o := range i.attempts {
		if o.unknown() && !slices.ContainsFunc(i.attempts, func(d *Operation) bool { return d.denied() && d.Called >= o.end() }) {
			return true
		}
	}
	return false
}

// resolved reports whether i had an unknown outcome that was found out.
func (i *identity) resolved() bool {
	return slices.ContainsFunc(i.attempts, (*Operation).unknown) && !i.uncertain()
}

// cost is what one execution of the operation spends on a counter.
func (o *Operation) cost(counter string) (sum int64) {
	for _, c := range o.Charges {
		if c.Counter == counter {
			sum += c.Cost
		}
	}
	return sum
}

// checkAnswer: the parts of an answer do not contradict each other.
func (c *check) checkAnswer(o *Operation) {
	a := o.Answer
	if a == nil {
		return
	}
	subject := fmt.Sprintf("call %d of process %d", o.Number, o.Process)
	if a.Reason != "" {
		if a.Allowed || len(a.Decisions) > 0 {
			c.fail("an answer is one thing", subject, "an error (%s) beside decisions", a.Reason)
		}
		return
	}
	allowed := true
	for _, d := range a.Decisions {
		allowed = allowed && d.Outcome == "allowed"
		if d.Remaining < 0 {
			c.fail("an answer is one thing", subject, "%d remain", d.Remaining)
		}
	}
	if len(a.Decisions) != len(o.Charges) || allowed != a.Allowed {
		c.fail("an answer is one thing", subject, "allowed %v, with decisions %v on %d charges", a.Allowed, a.Decisions, len(o.Charges))
	}
}

// byInstant orders admissions by effective time.
func byInstant(list []admission) []admission {
	return slices.SortedStableFunc(slices.Values(list), func(a, b admission) int { return cmp.Compare(a.at, b.at) })
}
