package stint

import "errors"

// Kind says what an evaluation without a decision means for its caller. Kinds
// are errors, so that errors.Is(err, stint.Indeterminate) asks for one.
type Kind string

// The kinds. None of them allows.
const (
	// Incompatible: the request and the configuration or the stored state
	// contradict each other. Nothing was spent; repeating does not help.
	Incompatible Kind = "incompatible"

	// Unavailable: no decision was made, and nothing was spent.
	Unavailable Kind = "unavailable"

	// Indeterminate: the evaluation was sent and no trustworthy answer came
	// back. Whether something was spent is unknown; repeating the same
	// evaluation id, within the policy's Dedup.TTL, finds out.
	Indeterminate Kind = "indeterminate"
)

func (k Kind) Error() string { return string(k) }

// Reason is the category of an [Error]. Reasons are errors, so that
// errors.Is(err, stint.ClockUnsafe) asks for one. Their text is stable.
type Reason string

// The reasons. Only OutcomeUnknown may have spent anything.
const (
	PolicyUnknown      Reason = "POLICY_UNKNOWN"          // no policy has that id
	CostInvalid        Reason = "COST_INVALID"            // a cost below 1 or above MaximumCost, a group of the wrong size, or a refund without an id
	EvaluationMismatch Reason = "EVALUATION_MISMATCH"     // an evaluation id repeated with other counters or costs, or spent on after its refund
	StateIncompatible  Reason = "STATE_INCOMPATIBLE"      // stored state of a foreign type, or damaged
	AdmissionRejected  Reason = "ADMISSION_REJECTED"      // deadline past, queue full, breaker open, or a bound on subjects or records reached
	BeforeSend         Reason = "UNAVAILABLE_BEFORE_SEND" // no connection, or expired before the last byte was written
	NoMutation         Reason = "NO_MUTATION_CONFIRMED"   // the server's answer proves that nothing changed
	ClockUnsafe        Reason = "CLOCK_UNSAFE"            // a clock stands outside the bounds of the policy or the store
	OutcomeUnknown     Reason = "OUTCOME_UNKNOWN"         // sent, and no trustworthy answer
)

func (r Reason) Error() string { return string(r) }

// Kind returns the kind that follows from the reason.
func (r Reason) Kind() Kind {
	switch r {
	case PolicyUnknown, CostInvalid, EvaluationMismatch, StateIncompatible:
		return Incompatible
	case AdmissionRejected, BeforeSend, NoMutation, ClockUnsafe:
		return Unavailable
	}
	return Indeterminate
}

// Error is an evaluation without a decision. Every error of this package and
// of a [Store] is one.
type Error struct {
	Reason Reason
	Cause  error // for people: what happened; may be nil
}

func newError(r Reason, cause string) *Error { return &Error{Reason: r, Cause: errors.New(cause)} }

func (e *Error) Error() string {
	text := "stint: " + string(e.Reason.Kind()) + " (" + string(e.Reason) + ")"
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is this error's [Reason] or [Kind].
func (e *Error) Is(target error) bool {
	switch target := target.(type) {
	case Reason:
		return e.Reason == target
	case Kind:
		return e.Reason.Kind() == target
	}
	return false
}

// ReasonOf returns the reason of err: that of the *Error in its chain, and
// OutcomeUnknown for any other error, since nothing is known about it. It
// returns "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return OutcomeUnknown
}
