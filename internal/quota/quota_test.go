package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/quota"
	"github.com/stintlimit/stint/memstore"
)

// world is a limiter on the memory store with a clock of its own.
type world struct {
	*quota.Answers
	limiter *stint.Limiter
	now     time.Time
}

// epoch is a whole number of minutes and hours.
var epoch = time.UnixMilli(1_699_999_200_000)

func newWorld(t testing.TB, retryAfter time.Duration, policies ...stint.Policy) *world {
	t.Helper()
	w := &world{now: epoch}
	var err error
	w.limiter, err = stint.New(memstore.New(memstore.Config{}), policies, stint.WithClock(func() time.Time { return w.now }))
	if err != nil {
		t.Fatal(err)
	}
	if w.Answers, err = quota.New(w.limiter, retryAfter); err != nil {
		t.Fatal(err)
	}
	return w
}

// take spends cost once under each policy, on subjects given by their first
// byte after a colon: "api", "api:b".
func (w *world) take(t testing.TB, cost int64, names ...string) ([]*stint.Policy, *stint.Verdict) {
	t.Helper()
	var requests []stint.Request
	var policies []*stint.Policy
	for _, name := range names {
		id, subject, _ := strings.Cut(name, ":")
		r := stint.Request{Policy: id, Cost: cost}
		copy(r.Subject.Digest[:], subject)
		requests = append(requests, r)
		policies = append(policies, w.limiter.Policy(id))
	}
	v, err := w.limiter.EvaluateGroup(context.Background(), stint.EvaluationID{}, requests)
	if err != nil {
		t.Fatal(err)
	}
	return policies, &v
}

func policy(id string, limits ...stint.Limit) stint.Policy {
	return stint.Policy{ID: id, Limits: limits}
}

func minutely(limit int64) stint.Limit { return stint.FixedWindow{Limit: limit, Window: time.Minute} }

// parse reads a field as a List of Items whose values are Strings.
func parse(t *testing.T, field string) []httpsfv.Item {
	t.Helper()
	list, err := httpsfv.UnmarshalList([]string{field})
	if err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	var items []httpsfv.Item
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if _, text := item.Value.(string); !ok || !text {
			t.Fatalf("%s: a member is no String", field)
		}
		items = append(items, item)
	}
	if canonical, err := httpsfv.Marshal(list); err != nil || canonical != field {
		t.Errorf("%s is not canonical: %s, %v", field, canonical, err)
	}
	return items
}

func TestPolicyFieldSaysQuotaAndWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		policy stint.Policy
		want   string
	}{
		"fixed window":   {policy("api", minutely(100)), `"api";q=100;w=60`},
		"sliding":        {policy("api", stint.SlidingCounter{Limit: 600, Window: time.Hour}), `"api";q=600;w=3600`},
		"named":          {policy("api", stint.FixedWindow{Name: "daily", Limit: 5, Window: 24 * time.Hour}), `"daily";q=5;w=86400`},
		"several limits": {policy("api", minutely(100), stint.SlidingCounter{Limit: 9, Window: time.Second}), `"api-1";q=100;w=60, "api-2";q=9;w=1`},
		"a bucket takes the time to become full": {policy("api", stint.TokenBucket{Capacity: 100, Refill: 10, Every: time.Second}),
			`"api";q=100;w=10`},
		"a bucket that fills by uneven steps": {policy("api", stint.TokenBucket{Capacity: 10, Refill: 3, Every: time.Second}),
			`"api";q=10;w=4`},
		"a bucket that fills at once": {policy("api", stint.TokenBucket{Capacity: 10, Refill: 1000, Every: 10 * time.Second}),
			`"api";q=10;w=10`},
		"a bucket by fractions of a second": {policy("api", stint.TokenBucket{Capacity: 10, Refill: 1, Every: 100 * time.Millisecond}),
			`"api";q=10;w=1`},
		"below a second":       {policy("api", stint.FixedWindow{Limit: 5, Window: 999 * time.Millisecond}), `"api";q=5`},
		"not whole seconds":    {policy("api", stint.FixedWindow{Limit: 5, Window: 1500 * time.Millisecond}), `"api";q=5`},
		"bucket not whole":     {policy("api", stint.TokenBucket{Capacity: 3, Refill: 1, Every: 500 * time.Millisecond}), `"api";q=3`},
		"beyond an sf-integer": {policy("api", stint.FixedWindow{Limit: stint.MaxInteger, Window: time.Hour}), `"api";q=999999999999999;w=3600`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, tt.policy)
			f := w.Fields(w.take(t, 1, "api"))
			if f.Policy != tt.want {
				t.Errorf("got %s, want %s", f.Policy, tt.want)
			}
			parse(t, f.Policy)
			parse(t, f.Limit)
		})
	}
}

func TestLimitFieldSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t, 0,
		policy("api", stint.TokenBucket{Name: "burst", Capacity: 3, Refill: 1, Every: 1500 * time.Millisecond}, minutely(100)),
		policy("address", minutely(5)),
		stint.Policy{ID: "trial", Limits: []stint.Limit{minutely(1)}, Mode: stint.Shadow},
	)
	w.now = epoch.Add(400 * time.Millisecond)
	for i, tt := range []struct {
		charges []string
		want    string
	}{
		{[]string{"api", "address"}, `"burst";r=2;t=2, "api-2";r=99;t=60, "address";r=4;t=60`},
		{[]string{"api", "trial", "address"}, `"burst";r=1;t=2, "api-2";r=98;t=60, "address";r=3;t=60`},
		{[]string{"trial"}, ``},
		{[]string{"api:b", "api", "address"}, `"burst";r=0;t=2, "api-2";r=97;t=60, "address";r=2;t=60`},
		{[]string{"api", "address"}, `"burst";r=0;t=2, "api-2";r=97;t=60, "address";r=2;t=60`},
		{[]string{"api", "api:b"}, `"burst";r=0;t=2, "api-2";r=97;t=60`},
	} {
		f := w.Fields(w.take(t, 1, tt.charges...))
		if f.Limit != tt.want {
			t.Errorf("%d: got %s, want %s", i, f.Limit, tt.want)
		}
		if f.Limit == "" {
			continue
		}
		limits, policies := parse(t, f.Limit), parse(t, f.Policy)
		for j := range limits {
			if limits[j].Value != policies[j].Value {
				t.Errorf("%d: %v and %v are not in one order", i, limits[j].Value, policies[j].Value)
			}
		}
	}
}

func TestLargeFiguresStayIntegersOfAField(t *testing.T) {
	w := newWorld(t, 0, policy("api", stint.FixedWindow{Limit: stint.MaxInteger, Window: stint.MaxDuration}))
	f := w.Fields(w.take(t, 1, "api"))
	if items := parse(t, f.Limit); !strings.HasPrefix(f.Limit, `"api";r=999999999999999;t=`) || len(items) != 1 {
		t.Errorf("got %s", f.Limit)
	}
}

func TestAWholeBudgetHasNoTime(t *testing.T) {
	w := newWorld(t, 0, policy("api", minutely(5)))
	v, err := w.limiter.PeekGroup(context.Background(), []stint.Request{{Policy: "api"}})
	if err != nil {
		t.Fatal(err)
	}
	if f := w.Fields([]*stint.Policy{w.limiter.Policy("api")}, &v); f.Limit != `"api";r=5` {
		t.Errorf("got %s", f.Limit)
	}
}

// waiting is the Retry-After of a refusal at an instant.
func waiting(t *testing.T, w *world, at time.Duration) int {
	t.Helper()
	w.now = epoch.Add(at)
	policies, v := w.take(t, 1, "api")
	if v.Allowed {
		t.Fatalf("at %v: allowed", at)
	}
	rec := httptest.NewRecorder()
	w.Denied(rec, policies, v)
	values := rec.Header()["Retry-After"]
	if len(values) != 1 {
		t.Fatalf("at %v: Retry-After is %q", at, values)
	}
	n, err := strconv.Atoi(values[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Case C19 of the field.
func TestWaitingAsLongAsAdvertisedIsEnough(t *testing.T) {
	for _, at := range []time.Duration{500 * time.Millisecond, 800 * time.Millisecond, 59_700 * time.Millisecond,
		59_980 * time.Millisecond, 59_999 * time.Millisecond, time.Second, 30 * time.Second} {
		w := newWorld(t, 0, policy("api", minutely(1)))
		w.now = epoch.Add(400 * time.Millisecond)
		w.take(t, 1, "api")
		n := waiting(t, w, at)
		if n < 1 || n > 61 {
			t.Errorf("at %v: Retry-After is %d", at, n)
		}
		if want := int((time.Minute - at + time.Second - 1) / time.Second); n != want {
			t.Errorf("at %v: Retry-After is %d, want %d", at, n, want)
		}
		w.now = w.now.Add(time.Duration(n) * time.Second)
		if _, v := w.take(t, 1, "api"); !v.Allowed {
			t.Errorf("denied at %v and again after %ds", at, n)
		}
	}
}

// The figures are those of the decision: what the clock does between it and
// the response, or where it stands on the globe, changes nothing.
func TestOnlyTheDecisionCounts(t *testing.T) {
	vienna := time.FixedZone("Vienna", 2*60*60) // the name of a zone needs a database
	for _, zone := range []*time.Location{time.UTC, vienna, time.FixedZone("", -11*3600)} {
		w := newWorld(t, 0, policy("api", minutely(1)))
		w.now = epoch.In(zone)
		w.take(t, 1, "api")
		w.now = epoch.Add(800 * time.Millisecond).In(zone)
		policies, v := w.take(t, 1, "api")
		w.now = epoch.Add(time.Hour)
		rec := httptest.NewRecorder()
		w.Denied(rec, policies, v)
		if got := rec.Header().Get("Retry-After") + " " + rec.Header().Get("RateLimit"); got != `60 "api";r=0;t=60` {
			t.Errorf("in %v: got %s", zone, got)
		}
	}
}

func TestRefusalSaysWhichLimits(t *testing.T) {
	w := newWorld(t, 0,
		policy("api", stint.FixedWindow{Name: "burst", Limit: 1, Window: time.Second}, stint.FixedWindow{Name: "daily", Limit: 5, Window: 24 * time.Hour}),
		policy("address", minutely(1)), policy("other", minutely(5)),
		stint.Policy{ID: "trial", Limits: []stint.Limit{minutely(1)}, Mode: stint.Shadow},
	)
	w.take(t, 1, "api", "address", "trial")
	policies, v := w.take(t, 1, "api", "other", "trial", "address", "address:b")
	rec := httptest.NewRecorder()
	rec.Header().Set("X-Ratelimit-Remaining", "7")
	w.Denied(rec, policies, v)
	want := http.Header{
		"Content-Type":          {"application/problem+json"},
		"Content-Length":        {strconv.Itoa(rec.Body.Len())},
		"Cache-Control":         {"no-store"},
		"Retry-After":           {"60"},
		"Ratelimit-Policy":      {`"burst";q=1;w=1, "daily";q=5;w=86400, "other";q=5;w=60, "address";q=1;w=60`},
		"Ratelimit":             rec.Header()["Ratelimit"],
		"X-Ratelimit-Remaining": {"7"},
	}
	if diff := cmp.Diff(want, rec.Header()); diff != "" || rec.Code != 429 {
		t.Errorf("status %d (-want +got):\n%s", rec.Code, diff)
	}
	const body = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
		`"violated-policies":["burst","address"]}` + "\n"
	if rec.Body.String() != body {
		t.Errorf("got  %swant %s", rec.Body, body)
	}
	for _, item := range parse(t, rec.Header().Get("RateLimit")) {
		if item.Value == "burst" || item.Value == "address" {
			if r, _ := item.Params.Get("r"); r != int64(0) {
				t.Errorf("%v has %v left", item.Value, r)
			}
		}
	}
}

func TestFailuresHaveNoFigures(t *testing.T) {
	w := newWorld(t, 1500*time.Millisecond, policy("api", minutely(1)))
	for reason, status := range map[stint.Reason]int{
		stint.PolicyUnknown: 500, stint.CostInvalid: 500, stint.StateIncompatible: 500, stint.EvaluationMismatch: 409,
		stint.AdmissionRejected: 503, stint.BeforeSend: 503, stint.NoMutation: 503, stint.ClockUnsafe: 503, stint.OutcomeUnknown: 503,
	} {
		t.Run(string(reason), func(t *testing.T) {
			rec := httptest.NewRecorder()
			w.Failed(rec, fmt.Errorf("wrapped: %w", &stint.Error{Reason: reason, Cause: errors.New("dial tcp 10.0.0.1:6379")}))
			h := rec.Header()
			wait := map[bool]string{true: "2"}[status == 503]
			if rec.Code != status || h.Get("Retry-After") != wait || h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got %d, %v", rec.Code, h)
			}
			for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
				if h.Get(field) != "" {
					t.Errorf("%s: %s", field, h.Get(field))
				}
			}
			var p quota.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != status || p.Title == "" || p.Violated != nil {
				t.Errorf("body %s: %v", rec.Body, err)
			}
			if capacity := p.Type == quota.TypeReducedCapacity; capacity != (status == 503) {
				t.Errorf("type %s", p.Type)
			}
			if strings.Contains(rec.Body.String(), "10.0.0.1") {
				t.Errorf("the body tells clients about the inside: %s", rec.Body)
			}
		})
	}
	rec := httptest.NewRecorder()
	w.Failed(rec, errors.New("not one of ours"))
	if rec.Code != 503 || !strings.Contains(rec.Body.String(), "unknown") {
		t.Errorf("an error that says nothing: %d %s", rec.Code, rec.Body)
	}
}

func TestUnidentifiedIs400(t *testing.T) {
	rec := httptest.NewRecorder()
	quota.BadRequest(rec, "The client's address cannot be told.")
	const body = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"The client's address cannot be told."}` + "\n"
	if rec.Code != 400 || rec.Body.String() != body || rec.Header().Get("Retry-After") != "" || rec.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %d, %v, %s", rec.Code, rec.Header(), rec.Body)
	}
}

func TestFieldsJoinWhatIsThere(t *testing.T) {
	h := http.Header{"Ratelimit": {`"outer";r=1`, `"outermost";r=2`}}
	quota.Fields{Policy: `"api";q=5`, Limit: `"api";r=4`}.AddTo(h)
	quota.Fields{}.AddTo(h)
	older := http.Header{"Ratelimit": {"limit=10, remaining=5, reset=1"}, "Ratelimit-Policy": {"10;w=1"}}
	quota.Fields{Policy: `"api";q=5`, Limit: `"api";r=4`}.AddTo(older)
	if got := older.Get("RateLimit") + older.Get("RateLimit-Policy"); got != "limit=10, remaining=5, reset=110;w=1" {
		t.Errorf("an earlier draft's fields became %s", got)
	}
	want := http.Header{"Ratelimit": {`"outer";r=1, "outermost";r=2, "api";r=4`}, "Ratelimit-Policy": {`"api";q=5`}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	if a, err := quota.New(nil, 0); a != nil || err == nil {
		t.Errorf("without a limiter: %v, %v", a, err)
	}
	w := newWorld(t, 0, policy("api", minutely(1)))
	if a, err := quota.New(w.limiter, -time.Second); a != nil || err == nil {
		t.Errorf("waiting for the past: %v, %v", a, err)
	}
	rec := httptest.NewRecorder()
	w.Failed(rec, stint.Unavailable)
	if got := rec.Header().Get("Retry-After"); got != "1" {
		t.Errorf("by default clients wait %s", got)
	}
}

// Case C20 of the field.
func TestRetrySecondsRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 1, 1: 1, time.Millisecond: 1, 493 * time.Millisecond: 1, time.Second: 1, time.Second + 1: 2,
		59_200 * time.Millisecond: 60, time.Minute: 60, 1<<63 - 1: 9223372037,
	} {
		if got := quota.RetrySeconds(d); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}

func BenchmarkFields(b *testing.B) {
	w := newWorld(b, 0, policy("api", minutely(100)), policy("address", minutely(5)))
	policies, v := w.take(b, 1, "api", "address")
	b.ReportAllocs()
	for b.Loop() {
		_ = w.Fields(policies, v)
	}
}
