package memstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

// short is a window of a second, kept for two more.
func short(t testing.TB, mode stint.Mode) *stint.Policy {
	return frozen(t, stint.Policy{
		ID: "short-" + mode.String(), Mode: mode, MaximumClockRegression: time.Second, CleanupGrace: time.Second,
		Limits: []stint.Limit{stint.FixedWindow{Limit: 5, Window: time.Second}},
	})
}

// reason decides a group that must not have surprises, and returns its reason.
func reason(t testing.TB, s stint.Store, g stint.Group) (stint.Verdict, stint.Reason) {
	t.Helper()
	v, err := s.Decide(context.Background(), g)
	return v, stint.ReasonOf(err)
}

func TestBoundRefusesNewSubjectsOnly(t *testing.T) {
	s, p := memstore.New(memstore.Config{MaxSubjects: 100}), short(t, stint.Enforce)
	for i := range 100 {
		if _, r := reason(t, s, one(p, i, benchNow)); r != "" {
			t.Fatalf("subject %d: %s", i, r)
		}
	}
	for i := range 300 {
		want := stint.Reason("")
		if i >= 100 {
			want = stint.AdmissionRejected
		}
		if _, r := reason(t, s, one(p, i, benchNow)); r != want {
			t.Errorf("subject %d: %q, want %q", i, r, want)
		}
	}
	if s.Len() != 100 {
		t.Errorf("%d counters, want 100", s.Len())
	}
	for i := range 100 {
		g := one(p, i, benchNow)
		g.Op = stint.Peek
		if v, r := reason(t, s, g); r != "" || v.Decision(0).Remaining != 3 {
			t.Errorf("subject %d was forgotten: %d left (%s)", i, v.Decision(0).Remaining, r)
		}
	}
}

// TestBoundFindsWhatExpired: an expired counter anywhere makes room, to the
// millisecond, and one that is a millisecond short of it does not.
func TestBoundFindsWhatExpired(t *testing.T) {
	const n = 1000
	s, p := memstore.New(memstore.Config{MaxSubjects: n}), short(t, stint.Enforce)
	for i := range n {
		if _, r := reason(t, s, one(p, i, benchNow)); r != "" {
			t.Fatal(r)
		}
	}
	expiry := benchNow + 3000 // the end of the window, and the margin of two seconds
	for i := range 10 {
		if _, r := reason(t, s, one(p, n+i, expiry-1)); r != stint.AdmissionRejected {
			t.Fatalf("a millisecond before anything expires: %q", r)
		}
	}
	for i := range n {
		if _, r := reason(t, s, one(p, n+i, expiry)); r != "" {
			t.Fatalf("after all have expired, subject %d: %s", i, r)
		}
	}
	if _, r := reason(t, s, one(p, 2*n, expiry)); r != stint.AdmissionRejected || s.Len() != n {
		t.Errorf("full again: %q, %d counters", r, s.Len())
	}
}

func TestBoundOfAGroupIsAllOrNothing(t *testing.T) {
	enforced, shadow := short(t, stint.Enforce), short(t, stint.Shadow)
	group := func(charges ...stint.Charge) stint.Group {
		g := stint.Group{Now: benchNow}
		for _, c := range charges {
			g.Append(c)
		}
		return g
	}
	of := func(p *stint.Policy, i int) stint.Charge { return stint.Charge{Policy: p, Subject: number(i), Cost: 1} }
	s := memstore.New(memstore.Config{MaxSubjects: 2})
	if _, r := reason(t, s, group(of(enforced, 1), of(enforced, 2), of(enforced, 3))); r != stint.AdmissionRejected || s.Len() != 0 {
		t.Errorf("three new counters in two places: %q, %d held", r, s.Len())
	}
	// The shadow comes first, and yet does not take the place.
	v, r := reason(t, s, group(of(shadow, 1), of(enforced, 1), of(enforced, 2)))
	if r != "" || !v.Allowed || v.Decision(0).Outcome != stint.ShadowFailed || v.Decision(1).Outcome != stint.Allowed || s.Len() != 2 {
		t.Errorf("a shadow without a place: %q, %v, %d held", r, v.Decision(0).Outcome, s.Len())
	}
	if v, r := reason(t, s, group(of(shadow, 1))); r != "" || v.Decision(0).Outcome != stint.ShadowFailed {
		t.Errorf("a shadow alone: %q, %v", r, v.Decision(0).Outcome)
	}
	// A record needs the first counter, so the group cannot do without it.
	g := group(of(shadow, 1), of(enforced, 1))
	g.ID = stint.NewEvaluationID("test", "1")
	if _, r := reason(t, s, g); r != stint.AdmissionRejected {
		t.Errorf("a record without a counter: %q", r)
	}
	g = group(of(enforced, 1), of(shadow, 1))
	g.ID = stint.NewEvaluationID("test", "2")
	if v, r := reason(t, s, g); r != "" || !v.Allowed || s.Len() != 2 {
		t.Errorf("a record beside a known counter: %q", r)
	}
	// A record that has no room releases the places that were taken for it.
	tiny := frozen(t, stint.Policy{ID: "tiny", Dedup: stint.Dedup{MaxBytes: 1}, Limits: enforced.Limits})
	s = memstore.New(memstore.Config{MaxSubjects: 2})
	g = group(of(tiny, 1), of(enforced, 1))
	g.ID = stint.NewEvaluationID("test", "3")
	if _, r := reason(t, s, g); r != stint.AdmissionRejected || s.Len() != 0 {
		t.Errorf("no room for the record: %q, %d held", r, s.Len())
	}
}

// TestSweepKeepsUp: with a stream of subjects that never return, what is held
// stays near what is live.
func TestSweepKeepsUp(t *testing.T) {
	s, p := memstore.New(memstore.Config{}), short(t, stint.Enforce)
	for i := range 60_000 {
		if _, r := reason(t, s, one(p, i, benchNow+int64(i)/10)); r != "" {
			t.Fatal(r)
		}
	}
	if live := 30_000; s.Len() < live || s.Len() > 2*live {
		t.Errorf("%d counters held, about %d are live", s.Len(), live)
	}
	s.Reset()
	if s.Len() != 0 {
		t.Errorf("%d counters after Reset", s.Len())
	}
}

func TestRecordsKeepTheirCounterAndLeaveWithIt(t *testing.T) {
	s := memstore.New(memstore.Config{MaxSubjects: 1})
	p := frozen(t, stint.Policy{
		ID: "long", MaximumClockRegression: time.Second, CleanupGrace: time.Second, Dedup: stint.Dedup{TTL: time.Hour},
		Limits: []stint.Limit{stint.FixedWindow{Limit: 5, Window: time.Second}},
	})
	g := one(p, 1, benchNow)
	g.ID = stint.NewEvaluationID("test", "1")
	if _, r := reason(t, s, g); r != "" {
		t.Fatal(r)
	}
	g.Now += 3_599_999
	if v, r := reason(t, s, g); r != "" || !v.Decision(0).Replayed {
		t.Errorf("within the TTL: %q, %+v", r, v.Decision(0))
	}
	if _, r := reason(t, s, one(p, 2, benchNow+3_600_000+1_999)); r != stint.AdmissionRejected {
		t.Errorf("a record was dropped for a new subject: %q", r)
	}
	if _, r := reason(t, s, one(p, 2, benchNow+3_600_000+2_000)); r != "" {
		t.Errorf("an expired record is kept: %q", r)
	}
}

// TestBoundUnderContention: never more than the bound, and every refusal is
// honest while nothing expires.
func TestBoundUnderContention(t *testing.T) {
	const most = 500
	s, p := memstore.New(memstore.Config{MaxSubjects: most}), short(t, stint.Enforce)
	var admitted, refused atomic.Int64
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 200 {
				switch _, r := reason(t, s, one(p, worker*1000+i, benchNow)); r {
				case "":
					admitted.Add(1)
				case stint.AdmissionRejected:
					refused.Add(1)
				default:
					t.Errorf("%s", r)
				}
				if n := s.Len(); n > most {
					t.Errorf("%d counters", n)
				}
			}
		})
	}
	all.Wait()
	if admitted.Load() != most || refused.Load() != 8*200-most || s.Len() != most {
		t.Errorf("%d admitted, %d refused, %d held", admitted.Load(), refused.Load(), s.Len())
	}
}
