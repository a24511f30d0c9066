package chaos

import (
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stintlimit/stint"
)

// orderPatience bounds the search for an order of one counter's operations.
const orderPatience = 2 * time.Second

// ledgerState is the state of a counter in an order of operations: what is
// spent, and the ids that are recorded, sorted.
type ledgerState struct {
	spent int64
	ids   string
}

func (s ledgerState) has(id string) bool { return id != "" && strings.Contains(s.ids, ";"+id+";") }

// spend returns the state after an execution.
func (s ledgerState) spend(cost int64, id string) ledgerState {
	s.spent += cost
	if id != "" {
		ids := append(strings.FieldsFunc(s.ids, func(r rune) bool { return r == ';' }), id)
		slices.Sort(ids)
		s.ids = ";" + strings.Join(ids, ";") + ";"
	}
	return s
}

// checkOrder: one order of all that was asked of a counter, inside the times
// of asking and answering, explains every answer. It sees what sums do not: a
// denial while there was room, a remainder that was never true. Counters that
// share groups with others have no order of their own and are left out, and
// so are those that something was given back to.
func (c *check) checkOrder(a *account, audit *Audit, p *stint.Policy) {
	var history []porcupine.Operation
	for _, i := range a.identities {
		for _, o := range i.operations() {
			if len(o.Charges) != 1 || o.Refund {
				return
			}
			if o.Answer != nil && o.Answer.Reason != "" && !o.unknown() {
				continue // the ledger shows that it spent nothing
			}
			end := o.end()
			if o.Answer != nil && !o.unknown() {
				end = o.Answer.Returned
			}
			history = append(history, porcupine.Operation{Input: o, Call: o.Called, Return: end})
		}
	}
	history = append(history, porcupine.Operation{Input: audit, Call: audit.Called, Return: audit.Returned})
	for i := range history {
		history[i].ClientId = i // each its own: only the times order them
	}
	switch porcupine.CheckOperationsTimeout(model(p.Terms()[0].Quota), history, orderPatience) {
	case porcupine.Ok:
		c.report.Ordered++
	case porcupine.Unknown:
		c.report.Undecided++
	case porcupine.Illegal:
		c.fail("one order explains every answer", audit.Counter, "%d operations have none", len(history))
	}
}

// model is a fixed window whose end nobody sees.
func model(limit int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{ledgerState{}} },
		Step: func(state, input, _ any) []any {
			var next []any
			for _, s := range steps(state.(ledgerState), input, limit) {
				next = append(next, s)
			}
			return next
		},
	}
	return m.ToModel()
}

// steps lists the states that may follow; none: the answer cannot be.
func steps(s ledgerState, input any, limit int64) []ledgerState {
	if audit, ok := input.(*Audit); ok {
		return iff(audit.Remaining == max(0, limit-s.spent), s)
	}
	o := input.(*Operation)
	cost := o.Charges[0].Cost
	fits := s.spent+cost <= limit && !s.has(o.ID)
	if o.unknown() {
		if fits {
			return []ledgerState{s, s.spend(cost, o.ID)}
		}
		return []ledgerState{s}
	}
	remaining := o.Answer.Decisions[0].Remaining
	switch {
	case o.replayed():
		return iff(s.has(o.ID), s)
	case o.admitted():
		return iff(fits && remaining == limit-s.spent-cost, s.spend(cost, o.ID))
	}
	return iff(s.spent+cost > limit && !s.has(o.ID) && remaining == max(0, limit-s.spent), s)
}

func iff(possible bool, s ledgerState) []ledgerState {
	if possible {
		return []ledgerState{s}
	}
	return nil
}
