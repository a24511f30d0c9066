package edge

import (
	"context"
	"net/http"

	"github.com/gaissmai/bart"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/subject"
)

// Bridge decides on HTTP requests. It is immutable and safe for concurrent
// use.
type Bridge struct {
	limiter        *stint.Limiter
	pseudonymizer  *subject.Pseudonymizer
	resolver       *clientip.Resolver
	apiKeyHeader   string // canonical
	principal      func(*http.Request) string
	principalField string // canonical
	exempt         *bart.Lite
	routes         *table
	onUnidentified func(policy string, shadow bool)
}

// Decide charges a request, once: calling it again charges again. It reads
// the request and changes nothing of it.
//
// The error is an [*UnidentifiedError], a [*stint.Error] or [ErrTarget]; beside
// it only Result.Route is set, and with ErrTarget not even that. Cancelling the request's context does not cancel the
// evaluation: a client that hangs up is no failure of the store. A deadline of
// the context holds.
func (b *Bridge) Decide(r *http.Request) (Result, error) {
	if r.URL.Opaque != "" {
		return Result{}, ErrTarget
	}
	rt := b.routes.classify(r)
	c := caller{bridge: b, request: r}
	if rt.exempt || b.exempts(&c) {
		return Result{Allowed: true}, nil
	}
	var few [4]stint.Request
	requests := few[:0]
	policies := rt.policies
	for i := range rt.charges {
		ch := &rt.charges[i]
		pseudonym, err := c.pseudonym(ch)
		if err == nil {
			requests = append(requests, stint.Request{Policy: ch.policy.ID, Subject: pseudonym, Cost: rt.cost})
			continue
		}
		if refusal := b.unidentified(ch, err); refusal != nil {
			return Result{Route: rt.id}, refusal
		}
		policies = without(policies, rt.policies, len(requests))
	}
	if len(requests) == 0 {
		return Result{Allowed: true, Route: rt.id}, nil
	}
	v, err := b.evaluate(r.Context(), requests)
	if err != nil {
		return Result{Route: rt.id}, err
	}
	return Result{Allowed: v.Allowed, Route: rt.id, Policies: policies, Verdict: v}, nil
}

func (b *Bridge) exempts(c *caller) bool {
	if b.exempt == nil {
		return false
	}
	a, err := c.address()
	return err == nil && b.exempt.Contains(a)
}

// unidentified decides what a charge without a subject means: an error to
// refuse with, or nil to leave the charge out.
func (b *Bridge) unidentified(ch *charge, err error) error {
	if ch.missing == Skip && absent(err) {
		return nil
	}
	shadow := ch.policy.Mode == stint.Shadow
	if b.onUnidentified != nil {
		b.onUnidentified(ch.policy.ID, shadow)
	}
	if shadow {
		return nil
	}
	return &UnidentifiedError{Policy: ch.policy.ID, Subject: ch.subject, Cause: err}
}

// without removes policy i, copying first if the slice is still the route's.
func without(policies, shared []*stint.Policy, i int) []*stint.Policy {
	rest := policies[i+1:]
	if len(policies) == len(shared) {
		policies = append(make([]*stint.Policy, 0, len(shared)), policies[:i]...)
	} else {
		policies = policies[:i]
	}
	return append(policies, rest...)
}

// evaluate asks the limiter with no evaluation id, so that only the store may
// repeat the evaluation. The limiter adds its budget.
func (b *Bridge) evaluate(ctx context.Context, requests []stint.Request) (stint.Verdict, error) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		detached, cancel = context.WithDeadline(detached, deadline)
		defer cancel()
	}
	if len(requests) > 1 {
		return b.limiter.EvaluateGroup(detached, stint.EvaluationID{}, requests)
	}
	d, err := b.limiter.Evaluate(detached, requests[0])
	var v stint.Verdict
	if err == nil {
		v.Append(d)
	}
	return v, err
}
