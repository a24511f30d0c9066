package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/memstore"
)

func scrape(t *testing.T, m *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d", w.Code)
	}
	return w.Body.String()
}

// series returns the names and labels of what begins with stint_.
func series(body string) []string {
	var all []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "stint_") {
			all = append(all, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return all
}

var policies = []stint.Policy{
	{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 2, Window: time.Hour}}},
	{ID: "watched", Mode: stint.Shadow, Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Hour}}},
}

func observed(t *testing.T, store stint.Store, m *Telemetry) *stint.Limiter {
	t.Helper()
	l, err := stint.New(store, policies, stint.WithObserver(m.Observe),
		stint.WithClock(func() time.Time { return time.Unix(1_000_000, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type failing struct{ err error }

func (f failing) Decide(context.Context, stint.Group) (stint.Verdict, error) {
	return stint.Verdict{}, f.err
}

func TestOutcomesAreCountedByPolicy(t *testing.T) {
	m := New([]string{"api", "watched"}, "v1", "digest")
	l := observed(t, memstore.New(memstore.Config{}), m)
	ctx := context.Background()
	for range 3 {
		_, _ = l.Evaluate(ctx, stint.Request{Policy: "api", Cost: 1})
		_, _ = l.Evaluate(ctx, stint.Request{Policy: "watched", Cost: 1})
	}
	_, _ = l.Peek(ctx, stint.Request{Policy: "api", Cost: 1})
	_, _ = l.Evaluate(ctx, stint.Request{Policy: "nobody", Cost: 1})
	_, _ = l.Evaluate(ctx, stint.Request{Policy: "api", Cost: 3})
	for _, reason := range []stint.Reason{stint.BeforeSend, stint.OutcomeUnknown} {
		down := observed(t, failing{&stint.Error{Reason: reason}}, m)
		_, _ = down.Evaluate(ctx, stint.Request{Policy: "api", Cost: 1})
		_, _ = down.Evaluate(ctx, stint.Request{Policy: "watched", Cost: 1})
	}
	_, _ = observed(t, failing{errors.New("no idea")}, m).Evaluate(ctx, stint.Request{Policy: "api", Cost: 1})
	m.Unidentified("api", false)
	m.Unidentified("watched", true)
	m.Unidentified("nobody", false)

	body := scrape(t, m)
	for _, want := range []string{
		`{outcome="allowed",policy="api"} 2`,
		`{outcome="denied",policy="api"} 1`,
		`{outcome="incompatible",policy="api"} 1`,
		`{outcome="unavailable",policy="api"} 1`,
		`{outcome="indeterminate",policy="api"} 2`,
		`{outcome="unidentified",policy="api"} 1`,
		`{outcome="shadow_failed",policy="api"} 0`,
		`{outcome="allowed",policy="watched"} 1`,
		`{outcome="shadow_denied",policy="watched"} 2`,
		`{outcome="shadow_failed",policy="watched"} 3`,
		`{outcome="denied",policy="watched"} 0`,
	} {
		if !strings.Contains(body, "stint_decisions_total"+want+"\n") {
			t.Errorf("%s is missing in:\n%s", want, decisionsIn(body))
		}
	}
	if !strings.Contains(body, "stint_decision_duration_seconds_count 12\n") {
		t.Errorf("duration: %v", regexp.MustCompile(`stint_decision_duration_seconds_count.*`).FindString(body))
	}
}

func decisionsIn(body string) string {
	return strings.Join(regexp.MustCompile(`(?m)^stint_decisions.*$`).FindAllString(body, -1), "\n")
}

func TestSeriesDependOnTheConfigurationOnly(t *testing.T) {
	m := New([]string{"api", "watched"}, "v1", "digest")
	before := series(scrape(t, m))
	l := observed(t, memstore.New(memstore.Config{}), m)
	for i := range 100 {
		_, _ = l.Evaluate(context.Background(), stint.Request{
			Policy: "api", Cost: 1, Subject: stint.Pseudonym{Digest: [16]byte{byte(i)}},
		})
		m.Unidentified(fmt.Sprint("invented-", i), false)
	}
	if diff := cmp.Diff(before, series(scrape(t, m))); diff != "" {
		t.Errorf("series changed (-before +after):\n%s", diff)
	}
	decisions := slices.DeleteFunc(slices.Clone(before), func(s string) bool { return !strings.HasPrefix(s, "stint_decisions_total") })
	if len(decisions) != 2*8 {
		t.Errorf("%d series of decisions, want 8 for each of 2 policies:\n%s", len(decisions), strings.Join(decisions, "\n"))
	}
}

func TestProgramAndConfigurationAreNamed(t *testing.T) {
	body := scrape(t, New([]string{"api"}, "v1.2.3", "0123456789abcdef"))
	for _, want := range []string{
		`stint_config_info{digest="0123456789abcdef"} 1`, `version="v1.2.3"`,
		`le="0.0001"`, `le="0.02"`, `le="1"`, "go_goroutines", "process_",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestTwoInstancesShareNothing(t *testing.T) {
	a, b := New([]string{"api"}, "", ""), New([]string{"api"}, "", "")
	a.Unidentified("api", false)
	if strings.Contains(scrape(t, b), `outcome="unidentified",policy="api"} 1`) {
		t.Error("a counter of one shows in the other")
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	m := New([]string{"api"}, "", "")
	p, err := stint.NewPolicy(policies[0])
	if err != nil {
		t.Fatal(err)
	}
	o := stint.Observation{Policy: p, Decision: stint.Decision{Outcome: stint.Allowed}, Elapsed: time.Millisecond}
	if n := testing.AllocsPerRun(100, func() { m.Observe(o) }); n != 0 {
		t.Errorf("%v allocations a charge", n)
	}
}
