package stint_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

func TestZeroValuesAreNoAnswer(t *testing.T) {
	var d stint.Decision
	var v stint.Verdict
	if d.Allowed() || d.Outcome == stint.Allowed || d.Limits() != 0 {
		t.Errorf("the zero decision answers %v", d.Outcome)
	}
	if v.Allowed || v.Len() != 0 {
		t.Errorf("the zero verdict answers")
	}
	v.Append(d)
	if v.Allowed {
		t.Error("a verdict of no answer allows")
	}
}

// TestAddIgnoresOrder: stores may compute limits in any order.
func TestAddIgnoresOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(stint.MaxLimits)
		figures := make([]stint.Figures, n)
		for i := range figures {
			figures[i] = stint.Figures{Remaining: r.Int64N(3), MoreAfter: r.Int64N(3), ResetAfter: r.Int64N(3)}
			if r.IntN(3) == 0 {
				figures[i].RetryAfter = 1 + r.Int64N(3)
			}
		}
		fold := func(order []int) (d stint.Decision) {
			for _, i := range order {
				d.Add(&stint.Terms{Index: i}, figures[i])
			}
			d.Conclude(stint.Enforce, 7)
			return d
		}
		inOrder := make([]int, n)
		for i := range inOrder {
			inOrder[i] = i
		}
		want := fold(inOrder)
		if got := fold(r.Perm(n)); got != want {
			t.Fatalf("figures %+v: got %+v, in order %+v", figures, got, want)
		}
		checkFold(t, &want, figures)
	}
}

// checkFold holds a decision to the sentences of its documentation.
func checkFold(t *testing.T, d *stint.Decision, figures []stint.Figures) {
	t.Helper()
	refuses, binding := false, 0
	for i, f := range figures {
		refuses = refuses || f.RetryAfter > 0
		b := figures[binding]
		if f.RetryAfter > b.RetryAfter || f.RetryAfter == 0 && b.RetryAfter == 0 && f.Remaining < b.Remaining {
			binding = i
		}
		if d.Refuses(i) != (f.RetryAfter > 0) || d.Standing(i).Remaining != f.Remaining {
			t.Fatalf("limit %d: %+v became %+v", i, f, d.Standing(i))
		}
		if d.Remaining > f.Remaining || d.RetryAfter.Milliseconds() < f.RetryAfter || d.ResetAfter.Milliseconds() < f.ResetAfter {
			t.Fatalf("%+v does not cover %+v", d, f)
		}
	}
	if (d.Outcome == stint.Denied) != refuses || d.Limit != binding || d.At != 7 {
		t.Fatalf("figures %+v: got %v, limit %d, want refused=%v, limit %d", figures, d.Outcome, d.Limit, refuses, binding)
	}
}

func TestMoreAfterWaitsForAllThatHaveLeast(t *testing.T) {
	var d stint.Decision
	d.Add(&stint.Terms{Index: 0}, stint.Figures{Remaining: 2, MoreAfter: 10})
	d.Add(&stint.Terms{Index: 1}, stint.Figures{Remaining: 2, MoreAfter: 30})
	d.Add(&stint.Terms{Index: 2}, stint.Figures{Remaining: 5, MoreAfter: 90})
	if d.MoreAfter != 30*time.Millisecond {
		t.Errorf("more after %v, want 30ms", d.MoreAfter)
	}
	d.Add(&stint.Terms{Index: 3}, stint.Figures{Remaining: 2})
	if d.MoreAfter != 0 {
		t.Errorf("more after %v, though one limit can never give more", d.MoreAfter)
	}
}

func TestVerdictBindsTheLongestRefusal(t *testing.T) {
	decision := func(m stint.Mode, remaining, retry int64) (d stint.Decision) {
		d.Add(&stint.Terms{}, stint.Figures{Remaining: remaining, RetryAfter: retry})
		d.Conclude(m, 0)
		return d
	}
	failed := stint.Decision{Outcome: stint.ShadowFailed}
	for _, c := range []struct {
		name      string
		decisions []stint.Decision
		allowed   bool
		binding   int
	}{
		{"the least left", []stint.Decision{decision(0, 5, 0), decision(0, 2, 0), decision(0, 2, 0)}, true, 1},
		{"the longest wait", []stint.Decision{decision(0, 1, 5), decision(0, 3, 9), decision(0, 0, 9)}, false, 2},
		{"a refusal before what has less left", []stint.Decision{decision(0, 0, 0), decision(0, 3, 1)}, false, 1},
		{"a refusal before a shadow's longer one", []stint.Decision{decision(stint.Shadow, 0, 9), decision(0, 3, 1)}, false, 1},
		{"what passes before a shadow's refusal", []stint.Decision{decision(stint.Shadow, 0, 9), decision(0, 3, 0)}, true, 1},
		{"a failed shadow never", []stint.Decision{failed, decision(0, 3, 0), failed}, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v stint.Verdict
			for _, d := range c.decisions {
				v.Append(d)
			}
			if v.Allowed != c.allowed || v.Binding != c.binding || v.Len() != len(c.decisions) {
				t.Errorf("got allowed=%v binding=%d, want %v and %d", v.Allowed, v.Binding, c.allowed, c.binding)
			}
			for i, d := range c.decisions {
				if v.Decision(i) != d {
					t.Errorf("decision %d changed", i)
				}
			}
		})
	}
}

func TestErrorsAnswerToReasonAndKind(t *testing.T) {
	kinds := map[stint.Reason]stint.Kind{
		stint.PolicyUnknown: stint.Incompatible, stint.CostInvalid: stint.Incompatible,
		stint.EvaluationMismatch: stint.Incompatible, stint.StateIncompatible: stint.Incompatible,
		stint.AdmissionRejected: stint.Unavailable, stint.BeforeSend: stint.Unavailable,
		stint.NoMutation: stint.Unavailable, stint.ClockUnsafe: stint.Unavailable,
		stint.OutcomeUnknown: stint.Indeterminate, stint.Reason("NEW"): stint.Indeterminate,
	}
	cause := errors.New("a cause")
	for reason, kind := range kinds {
		err := fmt.Errorf("wrapped: %w", &stint.Error{Reason: reason, Cause: cause})
		if !errors.Is(err, reason) || !errors.Is(err, kind) || !errors.Is(err, cause) || stint.ReasonOf(err) != reason {
			t.Errorf("%s is not %s, or lost its cause", reason, kind)
		}
		for other, otherKind := range kinds {
			if errors.Is(err, other) != (other == reason) || errors.Is(err, otherKind) != (otherKind == kind) {
				t.Errorf("%s is taken for %s or %s", reason, other, otherKind)
			}
		}
	}
	if got := stint.ReasonOf(cause); got != stint.OutcomeUnknown {
		t.Errorf("a foreign error is %q, want that nothing is known", got)
	}
	if got := stint.ReasonOf(nil); got != "" {
		t.Errorf("no error is %q", got)
	}
}

func TestEvaluationIDsOfCallersNeverMeet(t *testing.T) {
	seen := map[stint.EvaluationID]string{}
	for _, pair := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}, {"a", "b"}, {"", ""}} {
		e := stint.NewEvaluationID(pair[0], pair[1])
		if other, taken := seen[e]; taken || e.IsZero() {
			t.Errorf("%q meets %q", pair, other)
		}
		seen[e] = fmt.Sprint(pair)
	}
}

func TestPayloadTellsGroupsApart(t *testing.T) {
	p, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: minute})
	if err != nil {
		t.Fatal(err)
	}
	q, err := stint.NewPolicy(stint.Policy{ID: "q", Limits: minute})
	if err != nil {
		t.Fatal(err)
	}
	alice, bob := stint.Pseudonym{Digest: [16]byte{1}}, stint.Pseudonym{Digest: [16]byte{2}}
	groups := map[string][]stint.Charge{
		"one":             {{Policy: p, Subject: alice, Cost: 1}},
		"another cost":    {{Policy: p, Subject: alice, Cost: 2}},
		"another subject": {{Policy: p, Subject: bob, Cost: 1}},
		"another version": {{Policy: p, Subject: stint.Pseudonym{Version: 1, Digest: alice.Digest}, Cost: 1}},
		"another policy":  {{Policy: q, Subject: alice, Cost: 1}},
		"one more":        {{Policy: p, Subject: alice, Cost: 1}, {Policy: p, Subject: bob, Cost: 1}},
		"in other order":  {{Policy: p, Subject: bob, Cost: 1}, {Policy: p, Subject: alice, Cost: 1}},
	}
	seen := map[[16]byte]string{}
	for name, charges := range groups {
		var g stint.Group
		for _, c := range charges {
			g.Append(c)
		}
		if other, taken := seen[g.Payload()]; taken {
			t.Errorf("%q has the payload of %q", name, other)
		}
		seen[g.Payload()] = name
	}
}

func TestNamesAreWritten(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		stint.Allowed: "allowed", stint.Denied: "denied", stint.ShadowDenied: "shadow_denied", stint.ShadowFailed: "shadow_failed",
		stint.Outcome(0): "outcome(0)", stint.Enforce: "enforce", stint.Shadow: "shadow", stint.Mode(7): "mode(7)",
		stint.AlgorithmFixedWindow: "fixed-window", stint.AlgorithmSlidingCounter: "sliding-counter",
		stint.AlgorithmTokenBucket: "token-bucket", stint.Algorithm(9): "algorithm(9)",
		stint.Pseudonym{Version: 3}: "v3:AAAAAAAAAAAAAAAAAAAAAA",
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
