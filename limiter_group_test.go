package stint_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

func TestGroupsAreAllOrNothing(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api, daily})
	both := []stint.Request{{Policy: "api", Subject: alice, Cost: 1}, {Policy: "daily", Subject: alice, Cost: 1}}
	for i := range 5 {
		v, err := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, both)
		if err != nil || v.Allowed != (i < 3) || v.Len() != 2 {
			t.Errorf("call %d: allowed=%v, %d decisions, %v", i+1, v.Allowed, v.Len(), err)
		}
	}
	d, err := l.Peek(t.Context(), stint.Request{Policy: "api", Subject: alice})
	if err != nil || d.Remaining != 7 {
		t.Errorf("C23: %d left of the other limit (%v), want 7", d.Remaining, err)
	}
}

func TestRequestsOnOneCounterAreSummed(t *testing.T) {
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api, daily})
	v, err := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{
		{Policy: "api", Subject: alice, Cost: 4}, {Policy: "daily", Subject: alice, Cost: 1}, {Policy: "api", Subject: alice, Cost: 5}, {Policy: "api", Subject: bob, Cost: 2},
	})
	if err != nil || !v.Allowed || v.Len() != 4 {
		t.Fatalf("got %v, %v", v, err)
	}
	for i, want := range []int64{1, 2, 1, 8} {
		if d := v.Decision(i); d.Remaining != want {
			t.Errorf("decision %d: %d left, want %d", i, d.Remaining, want)
		}
	}
	if g := store.groups[0]; g.Len() != 3 || g.Charge(0).Cost != 9 {
		t.Errorf("the store saw %d charges, the first of %d", g.Len(), g.Charge(0).Cost)
	}
	for name, costs := range map[string][2]int64{
		"beyond the maximum together": {6, 5}, "an overflow": {9, 1<<63 - 1}, "hidden by a negative one": {11, -1}, "nothing beside something": {0, 1},
	} {
		_, err := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{
			{Policy: "api", Subject: bob, Cost: costs[0]}, {Policy: "api", Subject: bob, Cost: costs[1]},
		})
		if stint.ReasonOf(err) != stint.CostInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroupSizes(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api})
	for _, n := range []int{0, stint.MaxCharges + 1} {
		if _, err := l.EvaluateGroup(t.Context(), stint.EvaluationID{}, make([]stint.Request, n)); stint.ReasonOf(err) != stint.CostInvalid {
			t.Errorf("%d requests: %v", n, err)
		}
	}
}

func TestPeekGroupSpendsNothing(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api, daily})
	for range 9 {
		v, err := l.PeekGroup(t.Context(), []stint.Request{{Policy: "api", Subject: alice, Cost: 9}, {Policy: "daily", Subject: alice}})
		if err != nil || !v.Allowed {
			t.Fatalf("got %v, %v", v.Allowed, err)
		}
	}
}

func TestRepeatedIDsSpendOnce(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api})
	id := stint.NewEvaluationID("caller", "1")
	one := []stint.Request{{Policy: "api", Subject: alice, Cost: 4}}
	for i := range 3 {
		v, err := l.EvaluateGroup(t.Context(), id, one)
		if d := v.Decision(0); err != nil || !v.Allowed || d.Remaining != 6 || d.Replayed != (i > 0) {
			t.Errorf("call %d: %+v, %v", i+1, d, err)
		}
	}
	one[0].Cost = 5
	if _, err := l.EvaluateGroup(t.Context(), id, one); stint.ReasonOf(err) != stint.EvaluationMismatch {
		t.Errorf("another cost under the same id: %v", err)
	}
}

func TestShadowsRefuseNobody(t *testing.T) {
	working, broken := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api, shadow}), limiter(t, storetest.Faulty(stint.OutcomeUnknown), []stint.Policy{api, shadow})
	one := stint.Request{Policy: "shadow", Subject: alice, Cost: 1}
	for _, c := range []struct {
		name string
		l    *stint.Limiter
		r    stint.Request
		want stint.Outcome
	}{
		{"it passes", working, one, stint.Allowed},
		{"it would not", working, one, stint.ShadowDenied},
		{"a cost it could never pass", working, stint.Request{Policy: "shadow", Subject: alice, Cost: 9}, stint.ShadowFailed},
		{"no store", broken, one, stint.ShadowFailed},
	} {
		d, err := c.l.Evaluate(t.Context(), c.r)
		if err != nil || !d.Allowed() || d.Outcome != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.name, d.Outcome, err, c.want)
		}
		v, err := c.l.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{c.r})
		if err != nil || !v.Allowed {
			t.Errorf("%s, in a group: got %v, %v", c.name, v.Allowed, err)
		}
	}
	v, err := broken.EvaluateGroup(t.Context(), stint.EvaluationID{}, []stint.Request{one, {Policy: "api", Subject: alice, Cost: 1}})
	if stint.ReasonOf(err) != stint.OutcomeUnknown || v.Allowed {
		t.Errorf("beside an enforced policy: got %v, %v", v.Allowed, err)
	}
}

// TestObserversHearOfEveryChargeOnce: what is counted is what was answered.
func TestObserversHearOfEveryChargeOnce(t *testing.T) {
	type heard struct {
		Policy  string
		Op      stint.Op
		Outcome stint.Outcome
		Reason  stint.Reason
	}
	evaluate := func(r ...stint.Request) func(*stint.Limiter) {
		return func(l *stint.Limiter) {
			if len(r) == 1 {
				_, _ = l.Evaluate(t.Context(), r[0])
				return
			}
			_, _ = l.EvaluateGroup(t.Context(), stint.EvaluationID{}, r)
		}
	}
	ofAPI, ofShadow := stint.Request{Policy: "api", Subject: alice, Cost: 10}, stint.Request{Policy: "shadow", Subject: alice, Cost: 1}
	unknown, half := stint.Request{Policy: "none", Cost: 1}, stint.Request{Policy: "api", Subject: bob, Cost: 5}
	for _, c := range []struct {
		name  string
		store stint.Store
		do    func(*stint.Limiter)
		want  []heard
	}{
		{"one that passes", memstore.New(memstore.Config{}), evaluate(ofAPI), []heard{{"api", stint.Take, stint.Allowed, ""}}},
		{"a peek", memstore.New(memstore.Config{}), func(l *stint.Limiter) { _, _ = l.Peek(t.Context(), ofAPI) }, []heard{{"api", stint.Peek, stint.Allowed, ""}}},
		{"an unknown policy", memstore.New(memstore.Config{}), evaluate(unknown), []heard{{"", stint.Take, 0, stint.PolicyUnknown}}},
		{"an error", storetest.Faulty(stint.BeforeSend), evaluate(ofAPI), []heard{{"api", stint.Take, 0, stint.BeforeSend}}},
		{"a shadow's error", storetest.Faulty(stint.BeforeSend), evaluate(ofShadow), []heard{{"shadow", stint.Take, stint.ShadowFailed, stint.BeforeSend}}},
		{"a group", memstore.New(memstore.Config{}), evaluate(ofAPI, ofShadow), []heard{{"api", stint.Take, stint.Allowed, ""}, {"shadow", stint.Take, stint.Allowed, ""}}},
		{"a group summed", memstore.New(memstore.Config{}), evaluate(half, half), []heard{{"api", stint.Take, stint.Allowed, ""}, {"api", stint.Take, stint.Allowed, ""}}},
		{"a group's error", storetest.Faulty(stint.BeforeSend), evaluate(ofAPI, ofShadow), []heard{{"api", stint.Take, 0, stint.BeforeSend}, {"shadow", stint.Take, stint.ShadowFailed, stint.BeforeSend}}},
		{"a group with an unknown policy", memstore.New(memstore.Config{}), evaluate(ofAPI, unknown), []heard{{"", stint.Take, 0, stint.PolicyUnknown}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []heard
			c.do(limiter(t, c.store, []stint.Policy{api, shadow}, stint.WithObserver(func(o stint.Observation) {
				h := heard{Op: o.Op, Outcome: o.Decision.Outcome, Reason: stint.ReasonOf(o.Err)}
				if o.Policy != nil {
					h.Policy = o.Policy.ID
				}
				if o.Elapsed < 0 || o.Elapsed > time.Minute {
					t.Errorf("it took %v", o.Elapsed)
				}
				got = append(got, h)
			})))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}
