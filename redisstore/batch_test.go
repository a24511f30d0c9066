package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/memstore"
)

// lonely is a sender without a lane, for tests that send batches by hand.
func lonely(t testing.TB, addr string) *sender {
	t.Helper()
	s := open(t, patient(addr))
	return s.topology.(standalone).senders[0]
}

// anyPolicies covers each script: three tight ones and the general one.
func anyPolicies(t testing.TB) (single, several []*stint.Policy) {
	t.Helper()
	grace := 10 * 365 * 24 * time.Hour
	for i, limits := range [][]stint.Limit{
		{stint.FixedWindow{Limit: 10, Window: time.Minute}},
		{stint.SlidingCounter{Limit: 10, Window: time.Minute}},
		{stint.TokenBucket{Capacity: 10, Refill: 3, Every: 7 * time.Second}},
		{stint.TokenBucket{Capacity: 5, Refill: 1, Every: time.Second}, stint.FixedWindow{Limit: 20, Window: time.Minute}},
	} {
		p := policy(t, stint.Policy{ID: fmt.Sprint("p", i), Limits: limits, CleanupGrace: grace})
		several = append(several, p)
		if len(limits) == 1 {
			single = append(single, p)
		}
	}
	return single, several
}

// A batch is its groups in order, each as if it had come alone, also where
// they share counters and callers' records.
func TestABatchIsItsGroupsInOrder(t *testing.T) {
	server := redistest.Start(t)
	single, several := anyPolicies(t)
	s := lonely(t, server.Addr())
	admin := inspect(t, server.Addr())
	for seed := range uint64(30) {
		if err := admin.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		oracle := memstore.New(memstore.Config{})
		now := epoch
		for step := range 20 {
			now += r.Int64N(5000)
			var groups []*stint.Group
			for range 1 + r.IntN(8) {
				g := group(stint.Op(r.IntN(4)/3), stint.EvaluationID{}, now+r.Int64N(2000))
				if seed%2 == 0 { // a batch for a tight script
					g.Append(stint.Charge{Policy: single[step%3], Subject: subject(string('a' + rune(r.IntN(2)))), Cost: 1 + r.Int64N(4)})
				} else {
					for _, i := range r.Perm(len(several))[:1+r.IntN(3)] {
						g.Append(stint.Charge{Policy: several[i], Subject: subject("a"), Cost: 1 + r.Int64N(3)})
					}
					if r.IntN(2) == 0 {
						g.ID = stint.NewEvaluationID("test", fmt.Sprint(r.IntN(4)))
					}
				}
				groups = append(groups, &g)
			}
			wantAsMemory(t, oracle, groups, s.execute(groups, time.Now().Add(20*time.Second), manner{}), seed, step)
		}
	}
}

// wantAsMemory holds a batch's answers to what the memory store says to its
// groups, one after another.
func wantAsMemory(t *testing.T, oracle stint.Store, groups []*stint.Group, answers []answer, seed uint64, step int) {
	t.Helper()
	for i, g := range groups {
		want, wantErr := oracle.Decide(context.Background(), *g)
		if stint.ReasonOf(answers[i].err) != stint.ReasonOf(wantErr) {
			t.Fatalf("seed %d, step %d, group %d: %v, want %v", seed, step, i, answers[i].err, wantErr)
		}
		if diff := cmp.Diff(want, answers[i].verdict, cmp.AllowUnexported(stint.Verdict{}, stint.Decision{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d, step %d, group %d (-memory +batch):\n%s", seed, step, i, diff)
		}
	}
}

// One group that cannot be decided leaves the others of its batch alone.
func TestAPoisonedGroupFailsAlone(t *testing.T) {
	server := redistest.Start(t)
	s := lonely(t, server.Addr())
	admin := inspect(t, server.Addr())
	single, _ := anyPolicies(t)
	charge := func(name string) *stint.Group {
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject(name), Cost: 1})
		return &g
	}
	admin.RPush(context.Background(), s.encoder.counterKey(charge("bad").Charge(0)), "x")
	late := charge("late")
	late.Deadline = time.Now().Add(-time.Minute)
	answers := s.execute([]*stint.Group{charge("a"), charge("bad"), late, charge("a")}, time.Now().Add(20*time.Second), manner{})
	for i, want := range []stint.Reason{"", stint.StateIncompatible, stint.NoMutation, ""} {
		if got := stint.ReasonOf(answers[i].err); got != want {
			t.Errorf("group %d: %q, want %q", i, got, want)
		}
	}
	if d := answers[3].verdict.Decision(0); d.Remaining != 8 {
		t.Errorf("remaining %d, want 8", d.Remaining)
	}
}

// The session record: the same batch is answered as before, an older one is
// refused, and so is one that claims another's number.
func TestASessionRecordAnswersTheSameBatchAndRefusesOlderOnes(t *testing.T) {
	server := redistest.Start(t)
	single, _ := anyPolicies(t)
	s := lonely(t, server.Addr())
	latest := time.Now().Add(20 * time.Second)
	batchOf := func(name string) *batch {
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[2], Subject: subject(name), Cost: 3})
		b, err := s.prepare([]*stint.Group{&g}, latest, manner{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	remaining := func(b *batch) int64 {
		t.Helper()
		answers, f := s.attempt(b, latest)
		if f != nil {
			t.Fatal(f)
		}
		d := answers[0].verdict.Decision(0)
		return d.Remaining
	}
	first := batchOf("a")
	for range 3 {
		if got := remaining(first); got != 7 {
			t.Fatalf("remaining %d, want 7", got)
		}
	}
	second := batchOf("a")
	if got := remaining(second); got != 4 {
		t.Fatalf("remaining %d, want 4", got)
	}
	for what, b := range map[string]*batch{"older": first, "another's number": batchOf("b")} {
		copy(b.blob[sessionAt+1:sessionAt+8], second.blob[sessionAt+1:sessionAt+8])
		if what == "older" {
			copy(b.blob[sessionAt+1:], appendI7(nil, 1))
		}
		if _, f := s.attempt(b, latest); f == nil || !errors.Is(f.Error, stint.NoMutation) {
			t.Errorf("%s: %v, want %s", what, f, stint.NoMutation)
		}
	}
	if got := remaining(second); got != 4 {
		t.Fatalf("remaining %d, want 4", got)
	}
}

// A record that became shorter is written anew: what it was longer by would
// spoil the answers.
func TestASessionRecordMayBecomeShorter(t *testing.T) {
	server := redistest.Start(t)
	_, several := anyPolicies(t)
	s := lonely(t, server.Addr())
	latest := time.Now().Add(20 * time.Second)
	for _, p := range []*stint.Policy{several[3], several[0]} { // two limits, then one
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
		b, err := s.prepare([]*stint.Group{&g}, latest, manner{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if answers, f := s.attempt(b, latest); f != nil || answers[0].err != nil {
				t.Fatalf("%v, %v", answers, f)
			}
		}
	}
}

// C34: the script is loaded wherever it is missing, and nothing is lost or
// counted twice by that.
func TestNoScript(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	_, several := anyPolicies(t)
	store := open(t, patient(server.Addr()))
	for i, p := range several {
		for _, g := range []stint.Group{
			group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}),
			group(stint.Take, stint.NewEvaluationID("test", fmt.Sprint(i)), epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}),
			group(stint.Peek, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}),
		} {
			if err := admin.ScriptFlush(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			if d := decide(t, store, g); d.Outcome != stint.Allowed {
				t.Errorf("%s: %v", p.ID, d.Outcome)
			}
		}
	}
	t.Run("100 at once", func(t *testing.T) {
		p := policy(t, stint.Policy{ID: "many", Limits: []stint.Limit{stint.FixedWindow{Limit: 1000, Window: time.Hour}}})
		g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
		admin.ScriptFlush(ctx)
		errs := make(chan error)
		for range 100 {
			go func() {
				_, err := store.Decide(ctx, g)
				errs <- err
			}()
		}
		for range 100 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		g.Op = stint.Peek
		if d := decide(t, store, g); d.Remaining != 900 {
			t.Errorf("%d remain of 1000 after 100", d.Remaining)
		}
	})
}

// While the server is busy, evaluations gather and then share a round trip;
// when it is not, none waits for company.
func TestWhatWaitsSharesARoundTrip(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	single, several := anyPolicies(t)
	c := patient(server.Addr())
	c.Senders = 1
	s := open(t, c)
	calls := func() (n int) {
		for line := range strings.Lines(admin.Info(context.Background(), "commandstats").Val()) {
			if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
				_, _ = fmt.Sscanf(rest, "%d,", &n)
			}
		}
		return n
	}
	ask := func(p *stint.Policy, who string) error {
		v, err := s.Decide(context.Background(), group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject(who), Cost: 1}))
		if err == nil && !v.Allowed {
			err = errors.New("denied")
		}
		return err
	}
	for _, p := range several { // the scripts are loaded, and alone each costs a call
		if err := ask(p, "warm"); err != nil {
			t.Fatal(err)
		}
	}
	before := calls()
	server.Pause()
	errs := make(chan error)
	const each = 40
	for i := range each {
		go func() { errs <- ask(single[0], fmt.Sprint("a", i)) }()
		go func() { errs <- ask(several[3], fmt.Sprint("b", i)) }()
	}
	eventually(t, "all but one batch wait", func() bool { return s.topology.(standalone).lane.queue.length() >= 2*each-maximumBatch })
	server.Resume()
	for range 2 * each {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := calls() - before; n > 10 {
		t.Errorf("%d evaluations took %d calls", 2*each, n)
	}
}
