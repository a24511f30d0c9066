// Package breaker is a stint.Store before another one that may be gone: after
// several failures in a row it refuses at once, with stint.AdmissionRejected
// and [ErrOpen], and sends nothing. An outage then costs its callers
// microseconds, not a deadline each, and a store that struggles is left alone.
//
// It is not a fallback: what it refuses is refused, and an error never becomes
// an admission. Nor is it for a store in this process, which has nothing to be
// away.
//
// # What opens it
//
// [Config].Failures calls in a row without an answer, over at least
// [Config].Span:
//
//   - a failure is stint.BeforeSend, stint.NoMutation, stint.OutcomeUnknown,
//     and any error that is no *stint.Error: the store was not there, or did
//     not do its work;
//   - a success, which ends the row, is a verdict, a denial among them, and
//     stint.ClockUnsafe or a reason of the kind stint.Incompatible: the store
//     looked, and said what it found;
//   - neither is stint.AdmissionRejected, which a full queue says as well as a
//     server that is well; nor a failure that may be the caller's: its context
//     was cancelled, or it left less than [Config].Patience until its deadline
//     and that passed.
//
// The span keeps one event from looking like many: a connection that breaks
// fails everything that is under way on it in the same instant. It also keeps
// a store of several servers in use while some of them answer.
//
// # What closes it
//
// After [Config].Cooldown the next calls, at most [Config].Probes of them, are
// let through; the others are still refused. If all of the probes succeed it
// closes, and if one fails it opens again. So a store that is back is used
// after at most the cooldown and one probe, provided that somebody asks; with
// several probes, after so many calls. A probe that says nothing about the
// store makes room for another.
//
// The package has no goroutine and no timer. It trusts the store behind it to
// return when the deadline of the group has passed.
package breaker
