package stint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// noon is an instant at which minutes and hours begin.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// spy is a store that is asked for its answer, and remembers what it was asked.
type spy struct {
	groups []stint.Group
	answer func(g stint.Group) (stint.Verdict, error)
}

func (s *spy) Decide(_ context.Context, g stint.Group) (stint.Verdict, error) {
	s.groups = append(s.groups, g)
	return s.answer(g)
}

// limiter is a limiter over store whose clock stands at noon.
func limiter(t testing.TB, store stint.Store, policies []stint.Policy, options ...stint.Option) *stint.Limiter {
	t.Helper()
	options = append([]stint.Option{stint.WithClock(func() time.Time { return noon })}, options...)
	l, err := stint.New(store, policies, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	api    = stint.Policy{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: time.Minute}}}
	daily  = stint.Policy{ID: "daily", Limits: []stint.Limit{stint.FixedWindow{Limit: 3, Window: 24 * time.Hour}}}
	shadow = stint.Policy{ID: "shadow", Mode: stint.Shadow, Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Minute}}}

	alice = stint.Pseudonym{Version: 1, Digest: [16]byte{'a'}}
	bob   = stint.Pseudonym{Version: 1, Digest: [16]byte{'b'}}
)

func TestNewNamesEveryProblem(t *testing.T) {
	l, err := stint.New(nil, []stint.Policy{
		api, {ID: "none"}, api,
		{ID: "other", Limits: []stint.Limit{stint.FixedWindow{Name: "api", Limit: 1, Window: time.Hour}}},
	}, stint.WithBudget(-time.Second))
	if l != nil || err == nil {
		t.Fatalf("got %v, %v", l, err)
	}
	for _, want := range []string{
		"the store is nil", `policies[1]: policy "none": Limits:`, `policies[2]: ID: "api" is already taken`,
		`policies[3]: Limits[0].Name: "api" already names a limit of "api"`, "a budget of -1s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, err := stint.New(memstore.New(memstore.Config{}), nil); err == nil {
		t.Error("a limiter without policies")
	}
}

func TestPoliciesAreFound(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{daily, api})
	if diff := cmp.Diff([]string{"daily", "api"}, l.Policies()); diff != "" {
		t.Error(diff)
	}
	if p := l.Policy("api"); p == nil || !p.Frozen() || l.Policy("nil") != nil {
		t.Errorf("got %v", p)
	}
}

// TestCosts is case C09: bad costs never reach the store.
func TestCosts(t *testing.T) {
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api})
	for _, c := range []struct {
		cost, remaining int64
		reason          stint.Reason
	}{{5, 5, ""}, {100, 5, stint.CostInvalid}, {-1, 5, stint.CostInvalid}, {0, 5, stint.CostInvalid}, {11, 5, stint.CostInvalid}, {5, 0, ""}} {
		asked := len(store.groups)
		d, err := l.Evaluate(t.Context(), stint.Request{Policy: "api", Subject: alice, Cost: c.cost})
		if stint.ReasonOf(err) != c.reason || d.Allowed() != (c.reason == "") {
			t.Errorf("cost %d: got %v, %v, want %q", c.cost, d.Outcome, err, c.reason)
		}
		if c.reason != "" && len(store.groups) != asked {
			t.Errorf("cost %d reached the store", c.cost)
		}
		if d, err := l.Peek(t.Context(), stint.Request{Policy: "api", Subject: alice}); err != nil || d.Remaining != c.remaining {
			t.Errorf("after cost %d: %d left (%v), want %d", c.cost, d.Remaining, err, c.remaining)
		}
	}
	if _, err := l.Peek(t.Context(), stint.Request{Policy: "api", Subject: alice, Cost: -1}); stint.ReasonOf(err) != stint.CostInvalid {
		t.Errorf("peeking at -1: %v", err)
	}
}

func memAnswer() func(stint.Group) (stint.Verdict, error) {
	s := memstore.New(memstore.Config{})
	return func(g stint.Group) (stint.Verdict, error) { return s.Decide(context.Background(), g) }
}

func TestUnknownPolicies(t *testing.T) {
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api})
	long := strings.Repeat("x", 1<<20)
	for _, id := range []string{"", "API", long} {
		_, err := l.Evaluate(t.Context(), stint.Request{Policy: id, Cost: 1})
		_, groupErr := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{{Policy: "api", Cost: 1}, {Policy: id, Cost: 1}})
		for _, err := range []error{err, groupErr} {
			if stint.ReasonOf(err) != stint.PolicyUnknown || len(err.Error()) > 300 {
				t.Errorf("%.20q: %.300v", id, err)
			}
		}
	}
	if len(store.groups) != 0 {
		t.Error("an unknown policy reached the store")
	}
}

func TestDeadlines(t *testing.T) {
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api}, stint.WithBudget(time.Hour))
	one := stint.Request{Policy: "api", Subject: alice, Cost: 1}
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{past, gone} {
		if _, err := l.Evaluate(ctx, one); stint.ReasonOf(err) != stint.AdmissionRejected || !errors.Is(err, ctx.Err()) {
			t.Errorf("got %v, want that it was never sent, and why", err)
		}
	}
	if len(store.groups) != 0 {
		t.Fatal("an evaluation reached the store after its deadline")
	}
	soon := time.Now().Add(time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), soon)
	defer cancel()
	if _, err := l.Evaluate(ctx, one); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if _, err := l.Evaluate(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if got := store.groups[0].Deadline; !got.Equal(soon) {
		t.Errorf("the deadline is %v, the caller's is %v", got, soon)
	}
	if got := store.groups[1].Deadline; got.Before(before.Add(time.Hour)) || got.After(time.Now().Add(time.Hour)) {
		t.Errorf("the deadline is %v, the budget is an hour from %v", got, before)
	}
	if store.groups[0].Now != noon.UnixMilli() {
		t.Errorf("now is %d, the clock says %d", store.groups[0].Now, noon.UnixMilli())
	}
}

func TestClocksOutOfRange(t *testing.T) {
	for _, now := range []time.Time{time.UnixMilli(-1), time.UnixMilli(stint.MaxInteger)} {
		l := limiter(t, &spy{}, []stint.Policy{api}, stint.WithClock(func() time.Time { return now }))
		if _, err := l.Evaluate(t.Context(), stint.Request{Policy: "api", Cost: 1}); stint.ReasonOf(err) != stint.ClockUnsafe {
			t.Errorf("at %v: %v", now, err)
		}
	}
}

// TestStoresAreHeldToTheirContract: what a store must not answer allows nobody.
func TestStoresAreHeldToTheirContract(t *testing.T) {
	foreign := errors.New("foreign")
	allowed := stint.Decision{Outcome: stint.Allowed}
	for _, c := range []struct {
		name   string
		answer func() (stint.Verdict, error)
	}{
		{"nothing at all", func() (stint.Verdict, error) { return stint.Verdict{}, nil }},
		{"allowed without a decision", func() (stint.Verdict, error) { return stint.Verdict{Allowed: true}, nil }},
		{"a decision too many", func() (v stint.Verdict, err error) { v.Append(allowed); v.Append(allowed); return v, nil }},
		{"a foreign error", func() (stint.Verdict, error) { return stint.Verdict{}, foreign }},
		{"allowed, with a foreign error", func() (v stint.Verdict, err error) { v.Append(allowed); return v, foreign }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := limiter(t, &spy{answer: func(stint.Group) (stint.Verdict, error) { return c.answer() }}, []stint.Policy{api})
			d, err := l.Evaluate(t.Context(), stint.Request{Policy: "api", Subject: alice, Cost: 1})
			if d.Allowed() || stint.ReasonOf(err) != stint.OutcomeUnknown || !errors.Is(err, stint.Indeterminate) {
				t.Errorf("got %v, %v, want that nothing is known", d.Outcome, err)
			}
			if _, known := errors.AsType[*stint.Error](err); !known {
				t.Errorf("%T is no *stint.Error", err)
			}
		})
	}
}

func TestErrorsPassThrough(t *testing.T) {
	for _, r := range []stint.Reason{stint.BeforeSend, stint.NoMutation, stint.OutcomeUnknown, stint.StateIncompatible} {
		l := limiter(t, storetest.Faulty(r), []stint.Policy{api})
		d, err := l.Evaluate(t.Context(), stint.Request{Policy: "api", Cost: 1})
		v, groupErr := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{{Policy: "api", Cost: 1}})
		if !errors.Is(err, r) || !errors.Is(groupErr, r) || d != (stint.Decision{}) || v.Len() != 0 || v.Allowed {
			t.Errorf("%s: got %v, %v and %v", r, err, groupErr, d)
		}
	}
}
