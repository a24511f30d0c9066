package storetest_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

func newFixture(testing.TB) storetest.Fixture {
	s := memstore.New(memstore.Config{})
	return storetest.Fixture{Store: s, Forget: func() error { s.Reset(); return nil }}
}

// recorder is a testing.TB that keeps complaints.
type recorder struct {
	testing.TB
	complaints []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.complaints = append(r.complaints, args[0].(string)) }

func TestParseTraceNamesFileLineAndFault(t *testing.T) {
	const api = "policy api fixed-window limit=3 window=10s\n"
	for _, c := range []struct{ name, text, want string }{
		{"another verb", "take alice 1", `t.txt:1: "take" is no line: policy, at or forget`},
		{"no policy", "\nat 0s take alice 1 allowed", `t.txt:2: "alice": which of 0 policies? subject@policy`},
		{"an unknown policy", api + "at 0s take alice@apo 1 allowed", `t.txt:2: no policy is named "apo"`},
		{"which of two", api + strings.Replace(api, "api", "two", 1) + "at 0s take alice 1 allowed", `t.txt:3: "alice": which of 2 policies?`},
		{"an unknown algorithm", "policy api leaky limit=3", `t.txt:1: "leaky" is no limit: fixed-window, sliding-counter or token-bucket`},
		{"a field of another algorithm", "policy api fixed-window capacity=3 window=1s", `t.txt:1: "capacity" is no part of a fixed-window or of a policy`},
		{"no limit", "policy api", `t.txt:1: no limit`},
		{"a policy that is none", "policy api fixed-window limit=0 window=1s", "t.txt:1: policy \"api\": Limits[0].Limit: 0 is out of range"},
		{"a bad number", "policy api fixed-window limit=three window=1s", `t.txt:1: limit: strconv.ParseInt: parsing "three"`},
		{"a bad mode", "policy api fixed-window limit=3 window=1s mode=off", `t.txt:1: mode: "off" is no mode: enforce or shadow`},
		{"a bad dedup", "policy api fixed-window limit=3 window=1s dedup=maybe", `t.txt:1: dedup: "maybe": on or off`},
		{"a bad time", api + "at noon take alice 1 allowed", `t.txt:2: "noon" is no time`},
		{"a part of a millisecond", api + "at 1us take alice 1 allowed", `t.txt:2: "1us" is no time`},
		{"another evaluation", api + "at 0s give alice 1 allowed", `t.txt:2: "give" is no evaluation: take, peek or refund`},
		{"nothing after the time", api + "at 0s", `t.txt:2: at "0s": a time, take, peek or refund, charges and an answer`},
		{"no answer", api + "at 0s take alice 1", `t.txt:2: no answer: one of allowed,`},
		{"no charge", api + "at 0s take allowed", `t.txt:2: "" is no subject`},
		{"a cost of nothing", api + "at 0s take alice 0 allowed", `t.txt:2: "0" is no cost: 1 to 3`},
		{"a cost beyond the limit", api + "at 0s take alice 4 allowed", `t.txt:2: "4" is no cost: 1 to 3`},
		{"the same counter twice", api + "at 0s take alice 1, alice 1 allowed: allowed, allowed", `t.txt:2: "alice" is charged twice`},
		{"too few decisions", api + "at 0s take alice 1, bob 1 allowed: allowed", `t.txt:2: 1 decisions on 2 charges`},
		{"a single answer for two", api + "at 0s take alice 1, bob 1 allowed", `t.txt:2: 1 decisions on 2 charges; several are written`},
		{"an answer for several to one", api + "at 0s take alice 1 allowed: allowed", `t.txt:2: 1 decisions on 1 charges; several are written`},
		{"an unknown outcome", api + "at 0s take alice 1, bob 1 allowed: maybe, allowed", `t.txt:2: "maybe" is no outcome`},
		{"an unknown figure", api + "at 0s take alice 1 allowed remainin=1", `t.txt:2: "remainin" is no figure`},
		{"a bad figure", api + "at 0s take alice 1 allowed retry=1", `t.txt:2: retry: "1" is no time`},
		{"an unknown reason", api + "at 0s take alice 1 error OOPS", `t.txt:2: "error OOPS": error and one of`},
		{"a binding charge that is not there", api + "at 0s take alice 1, bob 1 allowed: binding=2 allowed, allowed", `t.txt:2: "binding=2": a charge, 0 to 1`},
		{"a refund of nothing that has a name", api + "at 0s refund alice 1 allowed", `t.txt:2: a refund needs an id`},
		{"a refund that nothing could remember", strings.Replace(api, "\n", " dedup=off\n", 1) + "at 0s refund alice 1 id=a allowed", `t.txt:2: a refund needs an id, and a first policy that`},
		{"a refund of no cost", api + "at 0s refund alice 0 id=a allowed", `t.txt:2: "0" is no cost: 1 to 3`},
		{"a receipt that is no time", api + "at 0s refund alice 1 spent=now id=a allowed", `t.txt:2: "now" is no time`},
		{"a receipt of what is being spent", api + "at 0s take alice 1 spent=0s allowed", `t.txt:2: "1 spent=0s": only a refund`},
		{"forget something", "forget alice", `t.txt:1: forget takes nothing, not "alice"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := storetest.ParseTrace("t.txt", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestReplayReportsEveryDifference(t *testing.T) {
	const head = "policy api fixed-window limit=3 window=10s\nat 0s take alice 2 allowed remaining=1\n"
	for _, c := range []struct{ name, line, want string }{
		{"another outcome", "at 0s take alice 2 allowed", "allowed=false, want true"},
		{"another figure", "at 0s take alice 1 allowed remaining=1", "remaining=0, want 1"},
		{"another time", "at 1s take alice 2 denied retry=8s", "retry=9s, want 8s"},
		{"an error that did not come", "at 0s take alice 1 error CLOCK_UNSAFE", `reason "", want "CLOCK_UNSAFE"`},
		{"another binding charge", "at 0s take alice 1, bob 1 allowed: binding=1 allowed, allowed", "charge 0 binds, want 1"},
		{"a replay that is none", "at 0s take alice 1 allowed replayed", "replayed=false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := storetest.ParseTrace("t.txt", head+c.line)
			if err != nil {
				t.Fatal(err)
			}
			r := &recorder{TB: t}
			tr.Replay(r, newFixture(t))
			if len(r.complaints) != 1 || !strings.HasPrefix(r.complaints[0], "t.txt:3: "+c.line) || !strings.Contains(r.complaints[0], c.want) {
				t.Errorf("got %q, want one about line 3: %s", r.complaints, c.want)
			}
		})
	}
}

// FuzzParseTrace: whatever parses can be replayed, and errors have a place.
func FuzzParseTrace(f *testing.F) {
	dir := os.DirFS("testdata")
	files, err := fs.Glob(dir, "*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := storetest.ParseTrace("fuzz.txt", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.txt:") {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		tr.Replay(&recorder{TB: t}, newFixture(t))
	})
}

func TestFaultyAnswersWithItsReason(t *testing.T) {
	for _, r := range []stint.Reason{stint.AdmissionRejected, stint.BeforeSend, stint.OutcomeUnknown, stint.StateIncompatible} {
		v, err := storetest.Faulty(r).Decide(t.Context(), stint.Group{})
		if v.Len() != 0 || stint.ReasonOf(err) != r {
			t.Errorf("%s: got %v, %v", r, v, err)
		}
	}
}
