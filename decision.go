package stint

import (
	"strconv"
	"time"
)

// Outcome is what became of one charge. The zero Outcome is no answer.
type Outcome uint8

// The outcomes.
const (
	// Allowed: the charge passes. In a group it is spent iff Verdict.Allowed.
	Allowed Outcome = iota + 1
	// Denied: at least one limit refuses the charge. Nothing was spent.
	Denied
	// ShadowDenied: a limit of a shadow policy would have refused. Nothing
	// was spent, and nobody is refused for it.
	ShadowDenied
	// ShadowFailed: a shadow policy could not be evaluated. Nobody is
	// refused for it.
	ShadowFailed
)

// String returns the name that metrics use.
func (o Outcome) String() string {
	switch o {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	case ShadowDenied:
		return "shadow_denied"
	case ShadowFailed:
		return "shadow_failed"
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// Figures are what a store computes for one limit, after the charge if it was
// spent. Times are milliseconds counted from the raw now of the evaluation.
type Figures struct {
	Remaining  int64 // ≥ 0: spending exactly this passes now, one more does not
	RetryAfter int64 // ≥ 1 if this limit refuses the charge, else 0
	MoreAfter  int64 // when Remaining + 1 passes; 0 if it never can, the budget being whole
	ResetAfter int64 // when the budget is whole again; 0 if it is
}

// Standing is where one limit stands after a decision.
type Standing struct {
	Remaining int64         // ≥ 0: spending exactly this passes now, one more does not
	MoreAfter time.Duration // when Remaining + 1 passes; 0 if it never can
}

// Decision is the answer to one charge. It is a value: comparable, and safe to
// copy and keep. The zero Decision is no answer.
//
// Durations count from the instant at which the caller asked, on the clock
// that answered, and are whole milliseconds.
type Decision struct {
	Outcome Outcome

	// Limit is the binding limit, an index in Policy.Limits: of those that
	// refuse, the one that refuses longest; else the one with the least left.
	Limit int

	// Remaining is the most that would still pass now: the least over the
	// limits. It is never negative.
	Remaining int64

	// RetryAfter is 0 unless the charge is refused. After exactly this long
	// the same charge passes, if nothing else is spent; a millisecond earlier
	// it does not.
	RetryAfter time.Duration

	// ResetAfter is when the whole budget is there again.
	ResetAfter time.Duration

	// MoreAfter is when a cost of Remaining + 1 passes; 0 if it never can. It
	// is at most RetryAfter when the charge is refused.
	MoreAfter time.Duration

	// At is the instant of the decision in epoch milliseconds, on the clock
	// that answered, raised to the newest instant the counter had seen. Of a
	// charge that was spent it is the receipt: see [Limiter.Refund].
	At int64

	// Replayed: the answer was recorded by an earlier evaluation with the
	// same id, and nothing was spent for this one.
	Replayed bool

	refusing uint8 // bit i: limit i refuses
	limits   uint8 // how many limits were added
	standing [MaxLimits]Standing
}

// Allowed reports whether this charge stands in nobody's way.
func (d *Decision) Allowed() bool {
	return d.Outcome == Allowed || d.Outcome == ShadowDenied || d.Outcome == ShadowFailed
}

// Limits returns how many limits the decision has figures of: those of its
// policy, or none for ShadowFailed.
func (d *Decision) Limits() int { return int(d.limits) }

// Standing returns where limit i of Policy.Limits stands.
func (d *Decision) Standing(i int) Standing { return d.standing[i] }

// Refuses reports whether limit i of Policy.Limits refuses the charge.
func (d *Decision) Refuses(i int) bool { return d.refusing&(1<<i) != 0 }

// Add folds the figures of one limit into the decision. Stores call it once
// for each of Policy.Terms, in any order, and then [Decision.Conclude].
func (d *Decision) Add(t *Terms, f Figures) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	first := d.limits == 0
	d.limits++
	d.standing[t.Index] = Standing{Remaining: f.Remaining, MoreAfter: ms(f.MoreAfter)}
	retry := ms(f.RetryAfter)
	if retry > 0 {
		d.refusing |= 1 << t.Index
	}
	if first || binds(retry, f.Remaining, t.Index, d) {
		d.Limit = t.Index
	}
	switch {
	case first || f.Remaining < d.Remaining:
		d.Remaining, d.MoreAfter = f.Remaining, ms(f.MoreAfter)
	case f.Remaining == d.Remaining:
		d.MoreAfter = laterOrNever(d.MoreAfter, ms(f.MoreAfter))
	}
	d.RetryAfter = max(d.RetryAfter, retry)
	d.ResetAfter = max(d.ResetAfter, ms(f.ResetAfter))
}

// binds reports whether a limit binds more tightly than those added so far.
// Ties go to the lower index, whatever the order of adding.
func binds(retry time.Duration, remaining int64, index int, d *Decision) bool {
	switch {
	case retry != d.RetryAfter:
		return retry > d.RetryAfter
	case retry == 0 && remaining != d.Remaining:
		return remaining < d.Remaining
	}
	return index < d.Limit
}

// laterOrNever combines two waits of which both must pass; 0 is never.
func laterOrNever(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Conclude sets the outcome from the figures added: refused iff a limit
// refuses, and only in words if the policy is a shadow.
func (d *Decision) Conclude(m Mode, at int64) {
	d.At = at
	switch {
	case d.refusing == 0:
		d.Outcome = Allowed
	case m == Shadow:
		d.Outcome = ShadowDenied
	default:
		d.Outcome = Denied
	}
}

// Verdict is the answer to a group: one Decision a charge, in order, also
// after a denial. The zero Verdict is no answer.
type Verdict struct {
	// Allowed: every charge of an enforced policy passes, and all that pass
	// are spent. If false, nothing was spent.
	Allowed bool

	// Binding is the charge that binds: of those that refuse, the one that
	// refuses longest; else the one with the least left. A charge that a
	// shadow policy would have refused binds only if there is no other.
	Binding int

	n     int
	first Decision
	rest  []Decision
}

// Len returns the number of decisions.
func (v *Verdict) Len() int { return v.n }

// Decision returns the decision on charge i.
func (v *Verdict) Decision(i int) Decision {
	if i == 0 {
		return v.first
	}
	return v.rest[i-1]
}

// Append adds the decision on the next charge and updates Allowed and Binding.
func (v *Verdict) Append(d Decision) {
	i := v.n
	v.n++
	if i == 0 {
		v.first = d
		v.Allowed = d.Allowed()
		return
	}
	if v.rest == nil {
		v.rest = make([]Decision, 0, usualRest)
	}
	v.rest = append(v.rest, d)
	v.Allowed = v.Allowed && d.Allowed()
	if b := v.Decision(v.Binding); d.bindsBefore(&b) {
		v.Binding = i
	}
}

// RecordSize is what remembering the verdict under an [EvaluationID] counts
// against Dedup.MaxBytes, on every store.
func (v *Verdict) RecordSize() int {
	const header, perCharge, perLimit = 42, 9, 28
	size := header
	for i := range v.n {
		d := v.Decision(i)
		size += perCharge + perLimit*int(d.limits)
	}
	return size
}

// bindsBefore reports whether d binds more tightly than an earlier b: what
// refuses before what passes, and either before what only a shadow says.
func (d *Decision) bindsBefore(b *Decision) bool {
	switch of, than := d.force(), b.force(); {
	case of != than:
		return of > than
	case d.Outcome == Denied && d.RetryAfter != b.RetryAfter:
		return d.RetryAfter > b.RetryAfter
	default:
		return d.Remaining < b.Remaining
	}
}

func (d *Decision) force() int {
	switch d.Outcome {
	case Denied:
		return 3
	case Allowed:
		return 2
	case ShadowDenied:
		return 1
	}
	return 0
}
