package stint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultBudget is how long one evaluation may take unless WithBudget or the
// context's deadline says less.
const DefaultBudget = 750 * time.Millisecond

// Request asks to spend Cost of a subject's budget under a policy.
type Request struct {
	Policy  string
	Subject Pseudonym
	Cost    int64 // 1 to Policy.MaximumCost; 0 only to peek
	At      int64 // only to refund: Decision.At of the charge, or 0; see Limiter.Refund
}

// Observation is what an observer is told of one charge.
type Observation struct {
	Policy   *Policy // nil if no policy has the id
	Op       Op
	Decision Decision // its Outcome is 0 if there is an Err and the policy is enforced
	Err      error    // why there is no decision; also set beside ShadowFailed where the whole evaluation failed
	Elapsed  time.Duration
}

// An Option changes the behaviour of a [Limiter].
type Option func(*Limiter)

// WithClock replaces the clock that fills Group.Now. Deadlines stay on the
// process's own clock.
func WithClock(now func() time.Time) Option { return func(l *Limiter) { l.now = now } }

// WithBudget sets how long one evaluation may take; it must be positive. The
// context's deadline can only shorten it.
func WithBudget(d time.Duration) Option { return func(l *Limiter) { l.budget = d } }

// WithObserver calls observe once for each charge evaluated, also after an
// error, before the evaluation returns. It must be fast and safe for
// concurrent use.
func WithObserver(observe func(Observation)) Option { return func(l *Limiter) { l.observe = observe } }

// Limiter evaluates requests against a fixed set of policies. It is safe for
// concurrent use.
type Limiter struct {
	store    Store
	policies map[string]*Policy
	ids      []string
	now      func() time.Time
	budget   time.Duration
	observe  func(Observation)
}

// New returns a limiter over store. The policies are copied. The error names
// every problem of every policy.
func New(store Store, policies []Policy, options ...Option) (*Limiter, error) {
	l := &Limiter{store: store, policies: make(map[string]*Policy, len(policies)), budget: DefaultBudget}
	var problems []error
	if store == nil {
		problems = append(problems, errors.New("stint: the store is nil"))
	}
	if len(policies) == 0 {
		problems = append(problems, errors.New("stint: no policies"))
	}
	names := map[string]string{}
	for i, p := range policies {
		frozen, err := NewPolicy(p)
		if err != nil {
			problems = append(problems, fmt.Errorf("policies[%d]: %w", i, err))
			continue
		}
		if _, taken := l.policies[p.ID]; taken {
			problems = append(problems, fmt.Errorf("policies[%d]: ID: %q is already taken", i, p.ID))
			continue
		}
		for j, name := range frozen.names {
			if other, taken := names[name]; taken {
				problems = append(problems, fmt.Errorf("policies[%d]: Limits[%d].Name: %q already names a limit of %q", i, j, name, other))
			}
			names[name] = p.ID
		}
		l.policies[p.ID] = frozen
		l.ids = append(l.ids, p.ID)
	}
	for _, o := range options {
		o(l)
	}
	if l.budget <= 0 {
		problems = append(problems, fmt.Errorf("stint: a budget of %v leaves no time to decide", l.budget))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return l, nil
}

// Policy returns the frozen policy with that id, or nil.
func (l *Limiter) Policy(id string) *Policy { return l.policies[id] }

// Policies returns the ids of all policies, in the order given to New.
func (l *Limiter) Policies() []string { return slices.Clone(l.ids) }

// Evaluate spends r.Cost if it passes. An error never allows: see [Error] for
// what it says about spending. Under a shadow policy the decision always
// allows and the error is always nil.
func (l *Limiter) Evaluate(ctx context.Context, r Request) (Decision, error) {
	return l.single(ctx, Take, r)
}

// Peek answers as Evaluate would and spends nothing. With a cost of 0 it only
// looks: the outcome is Allowed.
func (l *Limiter) Peek(ctx context.Context, r Request) (Decision, error) {
	return l.single(ctx, Peek, r)
}

// EvaluateGroup spends all requests as one, or none of them. Requests on one
// counter are summed. With an id that is not zero, an admitted evaluation is
// remembered for the first policy's Dedup.TTL: the same id with the same
// requests gets the same answer and spends nothing; with other requests, or
// after its [Limiter.Refund], it is an EvaluationMismatch.
func (l *Limiter) EvaluateGroup(ctx context.Context, id EvaluationID, requests []Request) (Verdict, error) {
	return l.group(ctx, Take, id, requests)
}

// PeekGroup answers as EvaluateGroup would and spends nothing.
func (l *Limiter) PeekGroup(ctx context.Context, requests []Request) (Verdict, error) {
	return l.group(ctx, Peek, EvaluationID{}, requests)
}

func (l *Limiter) single(ctx context.Context, op Op, r Request) (Decision, error) {
	start := time.Now()
	p := l.policies[r.Policy]
	if p == nil {
		err := unknownPolicy(r.Policy)
		l.report(nil, op, Decision{}, err, start)
		return Decision{}, err
	}
	g := l.newGroup(ctx, op, EvaluationID{}, start)
	g.Append(Charge{Policy: p, Subject: r.Subject, Cost: r.Cost})
	v, err := l.decide(ctx, g, start)
	d := v.first
	if err != nil {
		if p.Mode == Shadow {
			d.Outcome = ShadowFailed
		}
		l.report(p, op, d, err, start)
		if p.Mode == Shadow {
			return d, nil
		}
		return Decision{}, err
	}
	l.report(p, op, d, nil, start)
	return d, nil
}

func (l *Limiter) group(ctx context.Context, op Op, id EvaluationID, requests []Request) (Verdict, error) {
	start := time.Now()
	refuse := func(err *Error) (Verdict, error) {
		l.report(nil, op, Decision{}, err, start)
		return Verdict{}, err
	}
	if len(requests) == 0 || len(requests) > MaxCharges {
		return refuse(&Error{Reason: CostInvalid, Cause: fmt.Errorf("a group has 1 to %d requests, not %d", MaxCharges, len(requests))})
	}
	g := l.newGroup(ctx, op, id, start)
	var places [MaxCharges]int
	for i, r := range requests {
		p := l.policies[r.Policy]
		if p == nil {
			return refuse(unknownPolicy(r.Policy))
		}
		places[i] = place(&g, Charge{Policy: p, Subject: r.Subject, Cost: r.Cost, At: r.At})
	}
	if err := checkRefund(&g); err != nil {
		return refuse(err)
	}
	merged, err := l.decide(ctx, g, start)
	var v Verdict
	for i, r := range requests {
		p := l.policies[r.Policy]
		var d Decision
		switch {
		case err == nil:
			d = merged.Decision(places[i])
		case p.Mode == Shadow:
			d.Outcome = ShadowFailed
		}
		v.Append(d)
		l.report(p, op, d, err, start)
	}
	if err != nil && !v.Allowed {
		return Verdict{}, err
	}
	return v, nil
}

// place adds c to g, or sums it with the charge that has its counter, and
// returns where it stands.
func place(g *Group, c Charge) int {
	for i := range g.Len() {
		other := g.Charge(i)
		if other.Policy == c.Policy && other.Subject == c.Subject {
			if c.Cost < 0 || other.Cost < 0 || (c.Cost == 0) != (other.Cost == 0) {
				other.Cost = -1
			} else {
				other.Cost += c.Cost
			}
			other.At = olderReceipt(other.At, c.At)
			return i
		}
	}
	g.Append(c)
	return g.Len() - 1
}

func (l *Limiter) newGroup(ctx context.Context, op Op, id EvaluationID, start time.Time) Group {
	g := Group{Op: op, ID: id, Deadline: start.Add(l.budget)}
	if d, ok := ctx.Deadline(); ok && d.Before(g.Deadline) {
		g.Deadline = d
	}
	if l.now == nil {
		g.Now = start.UnixMilli()
	} else {
		g.Now = l.now().UnixMilli()
	}
	return g
}

// decide checks what needs no store, asks the store, and holds it to its
// contract.
func (l *Limiter) decide(ctx context.Context, g Group, start time.Time) (Verdict, error) {
	least := int64(1)
	if g.Op == Peek {
		least = 0
	}
	for i := range g.n { // not g.Charges(): an iterator would move g to the heap
		if c := g.Charge(i); c.Cost < least || c.Cost > c.Policy.MaximumCost {
			return Verdict{}, &Error{Reason: CostInvalid, Cause: fmt.Errorf("policy %q: a cost is %d to %d",
				c.Policy.ID, least, c.Policy.MaximumCost)}
		}
	}
	if g.Now < 0 || g.Now > MaxInteger-MaxDuration.Milliseconds()*2 {
		return Verdict{}, newError(ClockUnsafe, "the caller's clock is out of range")
	}
	if err := ctx.Err(); err != nil {
		return Verdict{}, &Error{Reason: AdmissionRejected, Cause: err}
	}
	if !g.Deadline.After(start) {
		return Verdict{}, &Error{Reason: AdmissionRejected, Cause: context.DeadlineExceeded}
	}
	v, err := l.store.Decide(ctx, g)
	if err == nil {
		if v.n != g.n {
			return Verdict{}, newError(OutcomeUnknown, "the store gave no decision and no error")
		}
		return v, nil
	}
	if _, known := errors.AsType[*Error](err); !known {
		return Verdict{}, &Error{Reason: OutcomeUnknown, Cause: err}
	}
	return Verdict{}, err
}

func (l *Limiter) report(p *Policy, op Op, d Decision, err error, start time.Time) {
	if l.observe != nil {
		l.observe(Observation{Policy: p, Op: op, Decision: d, Err: err, Elapsed: time.Since(start)})
	}
}

func unknownPolicy(id string) *Error {
	if len(id) > 64 {
		id = strings.ToValidUTF8(id[:64], "") + "…"
	}
	return &Error{Reason: PolicyUnknown, Cause: fmt.Errorf("no policy has the id %q", id)}
}
