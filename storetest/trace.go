package storetest

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stintlimit/stint"
)

// Trace is a script of evaluations with the answers that any store gives, in a
// language that a person can read:
//
//	# Comments and empty lines mean nothing.
//	policy api fixed-window limit=3 window=10s
//	policy two token-bucket capacity=5 refill=1 every=1s + sliding-counter limit=9 window=1m mode=shadow
//
//	at 0s    take alice 2                 allowed remaining=1 reset=10s
//	at 0s    take alice 2                 denied remaining=1 retry=10s
//	at 1s    peek alice@two 1             allowed
//	at 1s    take alice@api 1, bob@two 2 id=a   allowed: allowed remaining=0, allowed
//	at 1s    take alice 1 id=a            error EVALUATION_MISMATCH
//	at 2s    refund alice 1 id=b          allowed
//	at 2s    refund alice 1 spent=0s id=c allowed remaining=2
//	forget
//
// Times are offsets from an instant at which every window of a whole part of a
// day begins. A charge names a subject, its policy where there are several,
// and a cost; that of a refund, also when it was spent, if its caller knows. A
// policy whose id is known replaces that one.
//
// Of a decision its outcome is compared, whether it is replayed, and every
// figure that is named: remaining, limit (its index), retry, more, reset, and
// now (the instant of the decision). An allowed one has no retry in any case.
//
// A policy can also say revision=, mode=, maximum_cost=, regression=, grace=,
// dedup=off, dedup_ttl=, dedup_entries= and dedup_bytes=.
type Trace struct {
	Name  string
	steps []step
}

// step is one line that does something.
type step struct {
	line    int
	text    string
	forget  bool
	group   func() stint.Group
	reason  stint.Reason // of the error expected, or ""
	allowed bool
	binding int // expected, or -1
	wants   []want
}

// want is what is expected of one decision.
type want struct {
	outcome  stint.Outcome
	replayed bool
	figures  []figure
}

// figure is one expected number, in milliseconds where it is a time.
type figure struct {
	name  string
	value int64
}

//go:embed testdata/*.txt
var testdata embed.FS

// traces parses the traces of this package.
func traces(t testing.TB) []*Trace {
	t.Helper()
	files, err := fs.Glob(testdata, "testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	var all []*Trace
	for _, file := range files {
		text, err := testdata.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := ParseTrace(path.Base(file), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}

// Replay runs the trace on a store that is empty. It reports every line whose
// answer differs.
func (tr *Trace) Replay(t testing.TB, f Fixture) {
	t.Helper()
	for _, problem := range tr.replay(f) {
		t.Error(problem)
	}
}

func (tr *Trace) replay(f Fixture) (problems []string) {
	for _, s := range tr.steps {
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s\n\t%s", tr.Name, s.line, s.text, fmt.Sprintf(format, args...)))
		}
		if s.forget {
			if err := f.Forget(); err != nil {
				complain("%v", err)
			}
			continue
		}
		g := s.group()
		v, err := f.Store.Decide(context.Background(), g)
		if problem := malformed(&g, &v, err); problem != "" {
			complain("%s", problem)
		} else if problem := s.differs(&v, err); problem != "" {
			complain("got %s: %s", showAnswer(&v, err), problem)
		}
	}
	return problems
}

// differs says what is not as expected, or "".
func (s *step) differs(v *stint.Verdict, err error) string {
	if got := stint.ReasonOf(err); got != s.reason {
		return fmt.Sprintf("reason %q, want %q", got, s.reason)
	}
	if err != nil {
		return ""
	}
	if v.Allowed != s.allowed {
		return fmt.Sprintf("allowed=%v, want %v", v.Allowed, s.allowed)
	}
	if s.binding >= 0 && v.Binding != s.binding {
		return fmt.Sprintf("charge %d binds, want %d", v.Binding, s.binding)
	}
	var problems []string
	for i, w := range s.wants {
		d := v.Decision(i)
		if problem := w.differs(&d); problem != "" {
			problems = append(problems, fmt.Sprintf("decision %d: %s", i, problem))
		}
	}
	return strings.Join(problems, "; ")
}

func (w *want) differs(d *stint.Decision) string {
	if d.Outcome != w.outcome || d.Replayed != w.replayed {
		return fmt.Sprintf("%v, replayed=%v", d.Outcome, d.Replayed)
	}
	named := false
	for _, f := range w.figures {
		named = named || f.name == "retry"
		if got := figureNames[f.name](d); got != f.value {
			return fmt.Sprintf("%s=%s, want %s", f.name, showFigure(f.name, got), showFigure(f.name, f.value))
		}
	}
	if !named && w.outcome == stint.Allowed && d.RetryAfter != 0 {
		return fmt.Sprintf("allowed, with a retry of %v", d.RetryAfter)
	}
	return ""
}
