package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// scripted is a store whose next answers a test chooses. It is for one
// goroutine at a time.
type scripted struct {
	decide func(context.Context, stint.Group) error
	calls  int
}

func (s *scripted) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	s.calls++
	if err := s.decide(ctx, g); err != nil {
		return stint.Verdict{}, err
	}
	var v stint.Verdict
	v.Append(stint.Decision{Outcome: stint.Denied})
	return v, nil
}

// rig is a breaker, the store behind it and what changed, in a bubble whose
// time moves only when a test waits.
type rig struct {
	*testing.T
	store   *scripted
	breaker *breaker.Store
	changes []string
}

func (r *rig) changed(from, to breaker.State) {
	r.changes = append(r.changes, string(from)+" → "+string(to))
}

func inBubble(t *testing.T, c breaker.Config, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, store: &scripted{}}
		var err error
		if r.breaker, err = breaker.New(r.store, c, breaker.WithOnChange(r.changed)); err != nil {
			t.Fatal(err)
		}
		r.answer("")
		test(r)
	})
}

// wait moves the bubble's clock on.
func wait(d time.Duration) { <-time.After(d) }

// answer makes the store answer every call with a reason, or a denial for "".
func (r *rig) answer(reason stint.Reason) {
	r.store.decide = func(context.Context, stint.Group) error { return errorOf(reason) }
}

func errorOf(reason stint.Reason) error {
	if reason == "" {
		return nil
	}
	return &stint.Error{Reason: reason}
}

// call asks once, leaving a second, and says whether the store was asked.
func (r *rig) call() (asked bool, err error) {
	r.Helper()
	return r.callWithin(r.Context(), time.Second)
}

func (r *rig) callWithin(ctx context.Context, patience time.Duration) (asked bool, err error) {
	r.Helper()
	before := r.store.calls
	v, err := r.breaker.Decide(ctx, stint.Group{Deadline: time.Now().Add(patience)})
	if err != nil && (v.Allowed || v.Len() != 0) {
		r.Errorf("a verdict beside the error %v", err)
	}
	return r.store.calls > before, err
}

// fail makes n calls that fail, over the given time.
func (r *rig) fail(n int, over time.Duration) {
	r.Helper()
	r.answer(stint.BeforeSend)
	for i := range n {
		if i > 0 {
			wait(over / time.Duration(n-1))
		}
		if asked, err := r.call(); !asked || !errors.Is(err, stint.BeforeSend) {
			r.Fatalf("failure %d: asked %v, %v", i, asked, err)
		}
	}
}

func (r *rig) want(s breaker.State) {
	r.Helper()
	if got := r.breaker.State(); got != s {
		r.Fatalf("the breaker is %s, want %s", got, s)
	}
}

func (r *rig) wantRefused() {
	r.Helper()
	asked, err := r.call()
	if asked || stint.ReasonOf(err) != stint.AdmissionRejected || !errors.Is(err, breaker.ErrOpen) || !errors.Is(err, stint.Unavailable) {
		r.Fatalf("asked %v, %v", asked, err)
	}
}

func (r *rig) wantChanges(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.changes); diff != "" {
		r.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestAnOutageIsMetOnceAndNotAgain(t *testing.T) {
	inBubble(t, breaker.Config{}, func(r *rig) {
		r.fail(breaker.DefaultFailures-1, 3*time.Second)
		r.want(breaker.Closed)
		r.fail(1, 0)
		r.want(breaker.Open)
		for range 1000 {
			r.wantRefused()
		}
		r.wantChanges("closed → open")
	})
}

func TestAStoreThatIsBackIsUsedAfterTheCooldownAndOneProbe(t *testing.T) {
	inBubble(t, breaker.Config{Cooldown: 2 * time.Second}, func(r *rig) {
		r.fail(5, time.Second)
		wait(2*time.Second - 1)
		r.wantRefused()
		wait(2)
		r.fail(1, 0) // the probe; the store is back right after it
		r.answer("")
		r.wantRefused()
		wait(2*time.Second + 1)
		if asked, err := r.call(); !asked || err != nil {
			t.Fatalf("asked %v, %v", asked, err)
		}
		r.want(breaker.Closed)
		r.wantChanges("closed → open", "open → half-open", "half-open → open", "open → half-open", "half-open → closed")
	})
}

func TestOneSuccessEndsTheRow(t *testing.T) {
	inBubble(t, breaker.Config{Failures: 3}, func(r *rig) {
		for range 10 {
			r.fail(2, time.Second)
			r.answer("")
			if asked, err := r.call(); !asked || err != nil {
				t.Fatalf("asked %v, %v", asked, err)
			}
		}
		r.wantChanges()
	})
}

// A connection that breaks fails all that is under way on it at once.
func TestOneEventIsNoOutage(t *testing.T) {
	inBubble(t, breaker.Config{}, func(r *rig) {
		r.fail(1, 0)
		wait(time.Hour)
		r.answer("") // that row is over
		if asked, err := r.call(); !asked || err != nil {
			t.Fatalf("asked %v, %v", asked, err)
		}
		r.fail(1000, 0)
		wait(breaker.DefaultSpan - 1)
		r.fail(1000, 0)
		r.want(breaker.Closed)
		wait(1)
		r.fail(1, 0)
		r.want(breaker.Open)
	})
}

func TestWhatCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		counts bool // as a failure
		ends   bool // the row of failures
	}{
		{"no connection", errorOf(stint.BeforeSend), true, false},
		{"an answer that nothing was done", errorOf(stint.NoMutation), true, false},
		{"no answer", errorOf(stint.OutcomeUnknown), true, false},
		{"an error of no known kind", errors.New("what?"), true, false},
		{"a wrapped error", fmt.Errorf("wrapped: %w", errorOf(stint.BeforeSend)), true, false},
		{"a full queue, or a bound", errorOf(stint.AdmissionRejected), false, false},
		{"a clock out of bounds", errorOf(stint.ClockUnsafe), false, true},
		{"damaged state", errorOf(stint.StateIncompatible), false, true},
		{"an id with another payload", errorOf(stint.EvaluationMismatch), false, true},
		{"a verdict", nil, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, breaker.Config{Span: 1}, func(r *rig) {
				r.fail(4, time.Second)
				r.store.decide = func(context.Context, stint.Group) error { return c.err }
				if asked, err := r.call(); !asked || !errors.Is(err, c.err) {
					t.Fatalf("asked %v, %v", asked, err)
				}
				if opened := r.breaker.State() == breaker.Open; opened != c.counts {
					t.Fatalf("open: %v", opened)
				}
				if c.counts {
					return
				}
				r.fail(1, 0)
				if ended := r.breaker.State() == breaker.Closed; ended != c.ends {
					t.Errorf("it ended the row: %v", ended)
				}
			})
		})
	}
}

func TestACallerWhoGivesUpSaysNothingOfTheStore(t *testing.T) {
	inBubble(t, breaker.Config{Failures: 1, Span: 1}, func(r *rig) {
		r.fail(1, 0) // begins the row; the span is not over
		wait(1)
		ctx, cancel := context.WithCancel(r.Context())
		r.store.decide = func(context.Context, stint.Group) error {
			cancel()
			return errorOf(stint.OutcomeUnknown)
		}
		for range 100 {
			_, _ = r.callWithin(ctx, time.Second)
		}
		r.wantChanges()
		r.fail(1, 0)
		r.want(breaker.Open)
	})
}

func TestADeadlineThatPassesIsTheStoresFailureIfItHadTime(t *testing.T) {
	for _, c := range []struct {
		name     string
		patience time.Duration // of the caller
		takes    time.Duration // what the store takes to fail
		opens    bool
	}{
		{"a deadline that no store could meet", breaker.DefaultPatience - 1, breaker.DefaultPatience - 1, false},
		{"enough time", breaker.DefaultPatience, breaker.DefaultPatience, true},
		{"a store that fails before a near deadline", breaker.DefaultPatience - 1, time.Microsecond, true},
		{"a deadline that was past", -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, byContext := range []bool{false, true} {
				inBubble(t, breaker.Config{Failures: 2}, func(r *rig) {
					for range 2 {
						r.store.decide = func(context.Context, stint.Group) error {
							wait(c.takes)
							return errorOf(stint.OutcomeUnknown)
						}
						ctx, cancel, ofGroup := r.Context(), func() {}, c.patience
						if byContext {
							ctx, cancel = context.WithTimeout(ctx, c.patience)
							ofGroup = time.Hour
						}
						_, _ = r.callWithin(ctx, ofGroup)
						cancel()
						wait(breaker.DefaultSpan)
					}
					if opened := r.breaker.State() == breaker.Open; opened != c.opens {
						t.Errorf("open: %v (deadline of the context: %v)", opened, byContext)
					}
				})
			}
		})
	}
}

// While probes are under way, everybody else is still refused.
func TestProbesAreBounded(t *testing.T) {
	inBubble(t, breaker.Config{Probes: 3}, func(r *rig) {
		r.fail(5, time.Second)
		wait(breaker.DefaultCooldown + 1)
		asked := make(chan struct{})
		release := make(chan struct{})
		ended := make(chan error)
		r.store.decide = func(context.Context, stint.Group) error {
			asked <- struct{}{}
			<-release
			return nil
		}
		for range 3 {
			go func() {
				_, err := r.breaker.Decide(context.Background(), stint.Group{Deadline: time.Now().Add(time.Second)})
				ended <- err
			}()
			<-asked
		}
		r.want(breaker.HalfOpen)
		for range 100 {
			r.wantRefused()
		}
		for range 3 {
			r.want(breaker.HalfOpen)
			release <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		r.want(breaker.Closed)
	})
}

func TestAProbeThatSaysNothingMakesRoomForAnother(t *testing.T) {
	inBubble(t, breaker.Config{}, func(r *rig) {
		r.fail(5, time.Second)
		wait(breaker.DefaultCooldown + 1)
		r.answer(stint.AdmissionRejected)
		for range 10 {
			if asked, err := r.call(); !asked || errors.Is(err, breaker.ErrOpen) {
				t.Fatalf("asked %v, %v", asked, err)
			}
		}
		r.answer("")
		if asked, err := r.call(); !asked || err != nil {
			t.Fatalf("asked %v, %v", asked, err)
		}
		r.want(breaker.Closed)
	})
}

// What was sent before the breaker opened, and fails or succeeds after it, is
// news of another time.
func TestLateResultsChangeNothing(t *testing.T) {
	for _, late := range []stint.Reason{"", stint.BeforeSend} {
		inBubble(t, breaker.Config{}, func(r *rig) {
			asked, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			r.store.decide = func(context.Context, stint.Group) error {
				close(asked)
				<-release
				return errorOf(late)
			}
			go func() {
				defer close(ended)
				_, _ = r.breaker.Decide(context.Background(), stint.Group{Deadline: time.Now().Add(time.Hour)})
			}()
			<-asked
			r.fail(5, time.Second)
			close(release)
			<-ended
			r.want(breaker.Open)
			r.wantChanges("closed → open")
		})
	}
}

func TestAPanicIsAFailureAndStaysAPanic(t *testing.T) {
	inBubble(t, breaker.Config{Failures: 1, Span: 1}, func(r *rig) {
		r.fail(1, 0)
		wait(1)
		r.store.decide = func(context.Context, stint.Group) error { panic("the store is broken") }
		func() {
			defer func() {
				if p := recover(); p != "the store is broken" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = r.call()
		}()
		r.want(breaker.Open)
	})
}

func TestConfigNamesEveryProblem(t *testing.T) {
	_, err := breaker.New(nil, breaker.Config{
		Failures: -1, Span: -1, Cooldown: time.Microsecond, Probes: 1001, Patience: 2 * time.Hour,
	})
	want := `breaker: the store is nil
breaker: Failures: -1 is out of range: 1 to 1000000
breaker: Span: -1ns is out of range: 1ns to 1h0m0s
breaker: Cooldown: 1µs is out of range: 1ms to 1h0m0s
breaker: Probes: 1001 is out of range: 1 to 1000
breaker: Patience: 2h0m0s is out of range: 1ns to 1h0m0s`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Fixture {
		m := memstore.New(memstore.Config{})
		s, err := breaker.New(m, breaker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{Store: s, Forget: func() error { m.Reset(); return nil }}
	})
}
