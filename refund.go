package stint

import (
	"context"
	"fmt"
)

// Refund gives back what the evaluation with that id spent, and answers with
// the figures after it. The requests are those of the evaluation, in their
// order; the first one's policy must have Dedup on, and the id must not be zero.
//
// What is promised:
//
//   - While the evaluation is remembered, exactly what it spent is undone, and
//     receipts are not looked at: a charge that a shadow would have refused
//     was not spent. With other requests it is an [EvaluationMismatch].
//   - Where it is not remembered, because its Dedup.TTL has passed or it never
//     arrived, a request with a receipt, the At of its Decision, is taken at
//     its word; one without gives back nothing.
//   - A charge gives back at most what it still holds, limit by limit. Of a
//     window that has passed nothing is given back. Of a bucket's charge, what
//     was refilled since is not. No budget ever becomes more than whole; and
//     where receipts are true and the policy was not edited in between, no
//     refund gives back what another charge spent.
//   - For the Dedup.TTL of the first policy, counted from the refund, the same
//     refund gets the same answer and changes nothing, and a charge with the
//     id spends nothing: it is an EvaluationMismatch. So a charge whose reply
//     was lost can be refunded, also if it arrives after its refund.
//   - All charges are refunded together, or none is.
//
// After the TTL a repeated refund is a new one: with a receipt it gives back
// once more. A refund never denies: every outcome is Allowed, or ShadowFailed
// where a shadow's counter could not be read. An error says what is known
// about giving back as it does about spending; after [Indeterminate], repeat
// the refund. One that finds no room to be remembered is [AdmissionRejected].
//
// Requests on one counter are summed, and the oldest of their receipts counts.
func (l *Limiter) Refund(ctx context.Context, id EvaluationID, requests []Request) (Verdict, error) {
	return l.group(ctx, Refund, id, requests)
}

// checkRefund refuses a refund that no store could keep to once.
func checkRefund(g *Group) *Error {
	if g.Op != Refund {
		return nil
	}
	if g.ID.IsZero() {
		return newError(CostInvalid, "a refund needs the id of the evaluation that it undoes")
	}
	if p := g.first.Policy; p.Dedup.Off {
		return &Error{Reason: CostInvalid, Cause: fmt.Errorf("policy %q remembers no evaluation ids, so nothing under it can be refunded", p.ID)}
	}
	for i := range g.n {
		if c := g.Charge(i); c.At < 0 || c.At > MaxInteger {
			return &Error{Reason: CostInvalid, Cause: fmt.Errorf("policy %q: %d is no receipt: the At of a Decision, or 0", c.Policy.ID, c.At)}
		}
	}
	return nil
}

// olderReceipt is the receipt of two charges on one counter that were spent as
// one: the older, which gives back less, or the only one.
func olderReceipt(a, b int64) int64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}
