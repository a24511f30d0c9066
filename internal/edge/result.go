package edge

import (
	"errors"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

// Result is the answer to one request. The zero Result refuses.
type Result struct {
	// Allowed: the request may pass.
	Allowed bool

	// Route is the id of the route that was charged; "" if the request is
	// exempt.
	Route string

	// Policies are those of the verdict's decisions, in the same order. The
	// slice is shared and must not be changed.
	Policies []*stint.Policy

	// Verdict is what the limiter decided. It has no decisions if nothing
	// was charged: then Policies is empty too.
	Verdict stint.Verdict
}

// Causes of an [UnidentifiedError], besides those of package clientip.
var (
	ErrMissing   = errors.New("edge: the request carries no such identity")
	ErrAmbiguous = errors.New("edge: the request carries several such identities")
)

// ErrTarget says that a request's target is no path, as in "POST a:b", which
// net/http keeps in URL.Opaque. No route can be told, and a proxy that sends the
// target on would reach one. Nothing was evaluated or spent. "OPTIONS *" and
// CONNECT have nothing in URL.Opaque.
var ErrTarget = errors.New("edge: the request's target is not a path")

// UnidentifiedError says that a charge has no subject. Nothing was evaluated
// or spent, and repeating the same request does not help. It quotes nothing
// that the client sent.
type UnidentifiedError struct {
	Policy  string // the policy that would have been charged
	Subject subject.Kind
	Cause   error
}

func (e *UnidentifiedError) Error() string {
	return "edge: unidentified " + string(e.Subject) + " for policy " + e.Policy + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *UnidentifiedError) Unwrap() error { return e.Cause }
