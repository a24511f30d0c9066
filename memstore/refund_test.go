package memstore_test

import (
	"fmt"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// refundOf asks for the refund of one unit under an id.
func refundOf(p *stint.Policy, subject int, id string, now int64) stint.Group {
	g := one(p, subject, now)
	g.Op, g.ID = stint.Refund, stint.NewEvaluationID("test", id)
	return g
}

// TestRefundsAreWithinTheBound: remembering one takes the place of a counter
// where there is none, and no more than that.
func TestRefundsAreWithinTheBound(t *testing.T) {
	s, p := memstore.New(memstore.Config{MaxSubjects: 2}), short(t, stint.Enforce)
	if _, r := reason(t, s, one(p, 0, benchNow)); r != "" {
		t.Fatal(r)
	}
	for i, want := range []stint.Reason{"", "", stint.AdmissionRejected} {
		if _, r := reason(t, s, refundOf(p, i, "x", benchNow)); r != want {
			t.Errorf("subject %d: %q, want %q", i, r, want)
		}
	}
	if v, r := reason(t, s, one(p, 1, benchNow)); r != "" || v.Decision(0).Remaining != 4 || s.Len() != 2 {
		t.Errorf("where a refund is remembered: %q, %d left, %d counters", r, v.Decision(0).Remaining, s.Len())
	}
}

// TestRefundsTakeNoExpiredCounterForOne: what has expired is as if it never
// was, its clock included.
func TestRefundsTakeNoExpiredCounterForOne(t *testing.T) {
	s, p := memstore.New(memstore.Config{}), short(t, stint.Enforce)
	for i := range 20_000 { // a sweep starts with the first of them
		if _, r := reason(t, s, one(p, i, benchNow)); r != "" {
			t.Fatal(r)
		}
	}
	expiry := benchNow + 3000
	for i := 10_000; i < 10_010; i++ {
		if _, r := reason(t, s, refundOf(p, i, "x", expiry)); r != "" {
			t.Error(r)
		}
		if v, r := reason(t, s, one(p, i, benchNow-60_000)); r != "" || v.Decision(0).Remaining != 4 {
			t.Errorf("a clock that the counter never saw: %q, %d left", r, v.Decision(0).Remaining)
		}
	}
}

// TestRefundsLeave: a crowd that only refunds is swept out like any other.
func TestRefundsLeave(t *testing.T) {
	s, p := memstore.New(memstore.Config{}), short(t, stint.Enforce)
	const n = 20_000
	for i := range n {
		if _, r := reason(t, s, refundOf(p, i, fmt.Sprint(i), benchNow+int64(i)*10)); r != "" {
			t.Fatal(r)
		}
	}
	if s.Len() > n/5 { // each is remembered for 7 s, which are 700 others
		t.Errorf("%d counters are held of %d", s.Len(), n)
	}
}
