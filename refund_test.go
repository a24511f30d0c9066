package stint_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

func TestRefundsAreAskedOfTheStore(t *testing.T) {
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api, daily})
	id := stint.NewEvaluationID("caller", "1")
	requests := []stint.Request{
		{Policy: "api", Subject: alice, Cost: 4}, {Policy: "daily", Subject: alice, Cost: 1}, {Policy: "api", Subject: alice, Cost: 3},
	}
	if _, err := l.EvaluateGroup(t.Context(), id, requests); err != nil {
		t.Fatal(err)
	}
	requests[1].At, requests[2].At = 7, 9
	v, err := l.Refund(t.Context(), id, requests)
	if err != nil || !v.Allowed || v.Len() != 3 {
		t.Fatalf("got %v, %v", v, err)
	}
	for i, want := range []int64{10, 3, 10} {
		if d := v.Decision(i); d.Remaining != want || d.Outcome != stint.Allowed {
			t.Errorf("decision %d: %v, %d left, want %d", i, d.Outcome, d.Remaining, want)
		}
	}
	g := store.groups[1]
	if g.Op != stint.Refund || g.ID != id || g.Len() != 2 || g.Payload() != store.groups[0].Payload() {
		t.Errorf("the store was asked %+v", g)
	}
	if first, second := g.Charge(0), g.Charge(1); first.Cost != 7 || first.At != 9 || second.At != 7 {
		t.Errorf("the store was asked for %+v and %+v", first, second)
	}
	if _, err := l.EvaluateGroup(t.Context(), id, requests); stint.ReasonOf(err) != stint.EvaluationMismatch {
		t.Errorf("the charge after its refund: %v", err)
	}
}

// TestSummedReceipts: of what was spent as one, the oldest receipt counts.
func TestSummedReceipts(t *testing.T) {
	for _, c := range []struct{ first, second, want int64 }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 7, 5}, {7, 5, 5}} {
		store := &spy{answer: memAnswer()}
		l := limiter(t, store, []stint.Policy{api})
		if _, err := l.Refund(t.Context(), stint.NewEvaluationID("caller", "1"), []stint.Request{
			{Policy: "api", Subject: alice, Cost: 4, At: c.first}, {Policy: "api", Subject: alice, Cost: 3, At: c.second},
		}); err != nil {
			t.Fatal(err)
		}
		if got := store.groups[0].Charge(0).At; got != c.want {
			t.Errorf("receipts %d and %d: %d counts, want %d", c.first, c.second, got, c.want)
		}
	}
}

// TestRefundsThatCannotBeOne never reach the store, also under a shadow.
func TestRefundsThatCannotBeOne(t *testing.T) {
	forgetful := stint.Policy{ID: "forgetful", Dedup: stint.Dedup{Off: true}, Limits: api.Limits}
	store := &spy{answer: memAnswer()}
	l := limiter(t, store, []stint.Policy{api, forgetful, shadow})
	id := stint.NewEvaluationID("caller", "1")
	for _, c := range []struct {
		name     string
		id       stint.EvaluationID
		requests []stint.Request
		reason   stint.Reason
	}{
		{"no id", stint.EvaluationID{}, []stint.Request{{Policy: "api", Cost: 1}}, stint.CostInvalid},
		{"no id, under a shadow", stint.EvaluationID{}, []stint.Request{{Policy: "shadow", Cost: 1}}, stint.CostInvalid},
		{"a policy that remembers nothing", id, []stint.Request{{Policy: "forgetful", Cost: 1}}, stint.CostInvalid},
		{"a receipt before time", id, []stint.Request{{Policy: "api", Cost: 1, At: -1}}, stint.CostInvalid},
		{"one hidden behind another", id, []stint.Request{{Policy: "api", Cost: 1, At: -1}, {Policy: "api", Cost: 1}}, stint.CostInvalid},
		{"a receipt that no number holds", id, []stint.Request{{Policy: "api", Cost: 1, At: stint.MaxInteger + 1}}, stint.CostInvalid},
		{"nothing", id, nil, stint.CostInvalid},
		{"a cost of nothing", id, []stint.Request{{Policy: "api"}}, stint.CostInvalid},
		{"a cost too high", id, []stint.Request{{Policy: "api", Cost: 11}}, stint.CostInvalid},
		{"an unknown policy", id, []stint.Request{{Policy: "none", Cost: 1}}, stint.PolicyUnknown},
	} {
		if v, err := l.Refund(t.Context(), c.id, c.requests); stint.ReasonOf(err) != c.reason || v.Len() != 0 {
			t.Errorf("%s: got %v, %v, want %s", c.name, v, err, c.reason)
		}
	}
	if len(store.groups) != 0 {
		t.Error("the store was asked")
	}
	if _, err := l.Refund(t.Context(), id, []stint.Request{{Policy: "api", Cost: 1}, {Policy: "forgetful", Cost: 1}}); err != nil {
		t.Errorf("behind a policy that remembers: %v", err)
	}
}

func TestObserversHearOfRefunds(t *testing.T) {
	var got []stint.Observation
	observe := stint.WithObserver(func(o stint.Observation) {
		o.Elapsed = 0
		got = append(got, o)
	})
	id := stint.NewEvaluationID("caller", "1")
	both := []stint.Request{{Policy: "api", Subject: alice, Cost: 1}, {Policy: "shadow", Subject: alice, Cost: 1}}
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{api, shadow}, observe)
	if _, err := l.Refund(t.Context(), id, both); err != nil {
		t.Fatal(err)
	}
	lost := limiter(t, storetest.Faulty(stint.OutcomeUnknown), []stint.Policy{api, shadow}, observe)
	if _, err := lost.Refund(t.Context(), id, both); stint.ReasonOf(err) != stint.OutcomeUnknown {
		t.Errorf("a lost reply: %v", err)
	}
	if _, err := lost.Refund(t.Context(), stint.EvaluationID{}, both); err == nil {
		t.Error("a refund without an id")
	}
	type heard struct {
		Policy  string
		Outcome stint.Outcome
		Reason  stint.Reason
	}
	var list []heard
	for _, o := range got {
		h := heard{Outcome: o.Decision.Outcome, Reason: stint.ReasonOf(o.Err)}
		if o.Policy != nil {
			h.Policy = o.Policy.ID
		}
		if o.Op != stint.Refund {
			t.Errorf("observed as %d", o.Op)
		}
		list = append(list, h)
	}
	if diff := cmp.Diff([]heard{
		{"api", stint.Allowed, ""}, {"shadow", stint.Allowed, ""},
		{"api", 0, stint.OutcomeUnknown}, {"shadow", stint.ShadowFailed, stint.OutcomeUnknown},
		{"", 0, stint.CostInvalid},
	}, list); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// TestReceiptsOutliveRecords: a receipt is good as long as its window.
func TestReceiptsOutliveRecords(t *testing.T) {
	now := noon
	l := limiter(t, memstore.New(memstore.Config{}), []stint.Policy{daily}, stint.WithClock(func() time.Time { return now }))
	id := stint.NewEvaluationID("caller", "1")
	r := stint.Request{Policy: "daily", Subject: alice, Cost: 2}
	v, err := l.EvaluateGroup(t.Context(), id, []stint.Request{r})
	if err != nil {
		t.Fatal(err)
	}
	r.At = v.Decision(0).At
	for _, c := range []struct {
		after     time.Duration
		remaining int64
	}{{time.Hour, 3}, {24 * time.Hour, 3}} {
		now = noon.Add(c.after)
		v, err := l.Refund(t.Context(), id, []stint.Request{r})
		if d := v.Decision(0); err != nil || d.Remaining != c.remaining {
			t.Errorf("after %v: %d left (%v), want %d", c.after, d.Remaining, err, c.remaining)
		}
	}
}
