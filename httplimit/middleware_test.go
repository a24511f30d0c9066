package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/httplimit"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
	"github.com/stintlimit/stint/subject"
)

func daily(id string, limit int64) stint.Policy {
	return stint.Policy{ID: id, Limits: []stint.Limit{stint.FixedWindow{Limit: limit, Window: 24 * time.Hour}}}
}

func limiter(t testing.TB, store stint.Store, policies ...stint.Policy) *stint.Limiter {
	t.Helper()
	l, err := stint.New(store, policies, stint.WithClock(func() time.Time { return time.UnixMilli(0) }))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func middleware(t testing.TB, l *stint.Limiter, c httplimit.Config, options ...httplimit.Option) *httplimit.Middleware {
	t.Helper()
	m, err := httplimit.New(l, subject.EphemeralKeyRing(), c, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inMemory is a middleware that allows each address limit requests.
func inMemory(t testing.TB, limit int64) *httplimit.Middleware {
	return middleware(t, limiter(t, memstore.New(memstore.Config{}), daily("api", limit)), httplimit.Config{})
}

// counting counts how often the handler is reached.
type counting struct {
	http.Handler
	reached int
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.reached++
	c.Handler.ServeHTTP(w, r)
}

func TestOutcomesAsClientsSeeThem(t *testing.T) {
	full := memstore.New(memstore.Config{MaxSubjects: 1})
	other := stint.Request{Policy: "api", Cost: 1}
	if _, err := limiter(t, full, daily("api", 1)).Evaluate(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		store  stint.Store
		limit  int64
		peer   string
		status int
	}{
		"allowed":                {memstore.New(memstore.Config{}), 2, "192.0.2.1:1", 200},
		"over budget":            {memstore.New(memstore.Config{}), 1, "192.0.2.1:1", 429},
		"no address":             {memstore.New(memstore.Config{}), 2, "@", 400},
		"too many subjects":      {full, 2, "192.0.2.1:1", 503},
		"admission rejected":     {storetest.Faulty(stint.AdmissionRejected), 2, "192.0.2.1:1", 503},
		"store gone before send": {storetest.Faulty(stint.BeforeSend), 2, "192.0.2.1:1", 503},
		"store refused":          {storetest.Faulty(stint.NoMutation), 2, "192.0.2.1:1", 503},
		"clock unsafe":           {storetest.Faulty(stint.ClockUnsafe), 2, "192.0.2.1:1", 503},
		"reply lost":             {storetest.Faulty(stint.OutcomeUnknown), 2, "192.0.2.1:1", 503},
		"damaged state":          {storetest.Faulty(stint.StateIncompatible), 2, "192.0.2.1:1", 500},
		"no store behind":        {errorStore{}, 2, "192.0.2.1:1", 503},
	} {
		t.Run(name, func(t *testing.T) {
			m := middleware(t, limiter(t, tt.store, daily("api", tt.limit)), httplimit.Config{RetryAfter: 7 * time.Second})
			next := &counting{Handler: hello}
			h := m.Handler(next)
			var rec *httptest.ResponseRecorder
			for range 2 {
				rec = httptest.NewRecorder()
				r := request("GET", "/")
				r.RemoteAddr = tt.peer
				h.ServeHTTP(rec, r)
			}
			if rec.Code != tt.status {
				t.Errorf("status %d, want %d", rec.Code, tt.status)
			}
			wantReached := map[int]int{200: 2, 429: 1}[tt.status]
			if next.reached != wantReached {
				t.Errorf("the handler was reached %d times, want %d", next.reached, wantReached)
			}
			if figures := rec.Header().Get("RateLimit") != ""; figures != (tt.status == 200 || tt.status == 429) {
				t.Errorf("RateLimit: %q", rec.Header().Get("RateLimit"))
			}
			wantRetry := map[int]string{429: "86400", 503: "7"}[tt.status]
			if got := rec.Header().Get("Retry-After"); got != wantRetry {
				t.Errorf("Retry-After: %q, want %q", got, wantRetry)
			}
			if tt.status == 200 {
				return
			}
			var problem struct{ Status int }
			if err := json.Unmarshal(rec.Body.Bytes(), &problem); err != nil || problem.Status != tt.status {
				t.Errorf("body %s: %v", rec.Body, err)
			}
			if rec.Header().Get("Content-Type") != "application/problem+json" || rec.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", rec.Header())
			}
			for field, values := range rec.Header() {
				if len(values) != 1 {
					t.Errorf("%s has %d lines", field, len(values))
				}
			}
		})
	}
}

// errorStore breaks its contract: its errors are not of the right type.
type errorStore struct{}

func (errorStore) Decide(context.Context, stint.Group) (stint.Verdict, error) {
	return stint.Verdict{}, errors.New("a plain error")
}

func TestAllowedResponsesAreTheHandlers(t *testing.T) {
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("RateLimit", `"upstream";r=3`)
		h.Set("X-RateLimit-Remaining", "3")
		h.Set("Retry-After", "5")
		h.Set("Cache-Control", "max-age=60")
		h.Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	res := get(inMemory(t, 5).Handler(own), "/")
	want := http.Header{
		"Ratelimit":             {`"upstream";r=3`}, // what the handler sets wins
		"Ratelimit-Policy":      {`"api";q=5;w=86400`},
		"X-Ratelimit-Remaining": {"3"},
		"Retry-After":           {"5"},
		"Cache-Control":         {"max-age=60"},
		"Content-Type":          {"text/plain"},
	}
	if diff := cmp.Diff(want, res.Header); diff != "" || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d (-want +got):\n%s", res.StatusCode, diff)
	}
}

func TestTwoLimitersShareOneLineOfEachField(t *testing.T) {
	store := memstore.New(memstore.Config{})
	outer := middleware(t, limiter(t, store, daily("outer", 5)), httplimit.Config{})
	inner := middleware(t, limiter(t, store, daily("inner", 1)), httplimit.Config{})
	h := outer.Handler(inner.Handler(hello))
	for i, want := range []int{200, 429} {
		res := get(h, "/")
		if got := res.Header["Ratelimit"]; res.StatusCode != want || len(got) != 1 ||
			got[0] != fmt.Sprintf(`"outer";r=%d;t=86400, "inner";r=0;t=86400`, 4-i) {
			t.Errorf("%d: status %d, RateLimit %q", i, res.StatusCode, got)
		}
	}
}

func TestEveryMethodIsCharged(t *testing.T) {
	h := inMemory(t, 3).Handler(hello)
	for i, method := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, request(method, "/"))
		if got, want := rec.Code, map[bool]int{true: 200, false: 429}[i < 3]; got != want {
			t.Errorf("%s: status %d, want %d", method, got, want)
		}
	}
}

func TestHandlersOfOneMiddlewareShareABudget(t *testing.T) {
	m := inMemory(t, 1)
	if a, b := get(m.Handler(hello), "/a").StatusCode, get(m.Handler(hello), "/b").StatusCode; a != 200 || b != 429 {
		t.Errorf("got %d and %d", a, b)
	}
}

func TestConfigurationReachesTheBridge(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), daily("api", 100), daily("address", 1), daily("user", 1))
	m := middleware(t, l, httplimit.Config{
		TrustedProxies:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		ClientIPHeader:  "X-Forwarded-For",
		PrincipalHeader: "X-User",
		ExemptPaths:     []string{"/healthz"},
		ExemptNetworks:  []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
		Normalisers:     map[subject.Kind]subject.Normaliser{subject.Principal: subject.LowerASCII},
		Routes:          []httplimit.Route{{ID: "user", Match: "/user", Charges: []httplimit.Charge{{Policy: "user", Subject: subject.Principal}}}},
		Charges:         []httplimit.Charge{{Policy: "address", IPv6Prefix: 48}},
	})
	h := m.Handler(hello)
	for i, tt := range []struct {
		target  string
		headers []string
		want    int
	}{
		{"/", []string{"X-Forwarded-For", "2001:db8:1:2::1"}, 200},
		{"/", []string{"X-Forwarded-For", "2001:db8:1:3::1"}, 429},
		{"/", []string{"X-Forwarded-For", "2001:db8:2:3::1"}, 200},
		{"/", []string{"X-Forwarded-For", "198.51.100.7"}, 200},
		{"/", []string{"X-Forwarded-For", "198.51.100.7"}, 200},
		{"/", []string{"X-Forwarded-For", "nonsense"}, 400},
		{"/healthz", []string{"X-Forwarded-For", "nonsense"}, 200},
		{"/user", []string{"X-User", "Alice"}, 200},
		{"/user", []string{"X-User", "alice"}, 429},
		{"/user", nil, 400},
	} {
		if res := get(h, tt.target, tt.headers...); res.StatusCode != tt.want {
			t.Errorf("%d: status %d, want %d", i, res.StatusCode, tt.want)
		}
	}
}

func TestProblemsAreNamedAsInConfig(t *testing.T) {
	l := limiter(t, memstore.New(memstore.Config{}), daily("api", 1), daily("address", 1))
	one := limiter(t, memstore.New(memstore.Config{}), daily("api", 1))
	keys := subject.EphemeralKeyRing()
	for name, tt := range map[string]struct {
		limiter *stint.Limiter
		keys    *subject.KeyRing
		config  httplimit.Config
		options []httplimit.Option
		want    []string
	}{
		"no limiter":      {nil, keys, httplimit.Config{}, nil, []string{"the limiter is nil"}},
		"no keys":         {one, nil, httplimit.Config{}, nil, []string{"Keys: is nil", "EphemeralKeyRing"}},
		"nothing charged": {l, keys, httplimit.Config{}, nil, []string{"nothing is charged", "2 policies"}},
		"several at once": {l, keys, httplimit.Config{
			Charges:        []httplimit.Charge{{Policy: "apy", SkipMissing: true}},
			TrustedProxies: []netip.Prefix{{}},
			ClientIPHeader: "a b",
			Routes:         []httplimit.Route{{ID: "x", Match: "y"}},
			RetryAfter:     -1,
		}, nil, []string{`Charges[0].Policy: no policy has the id "apy"`, "Charges[0].SkipMissing", "TrustedProxies[0]", "ClientIPHeader", "Routes[0].Match", "Retry-After"}},
		"no logger":    {one, keys, httplimit.Config{}, []httplimit.Option{httplimit.WithLogger(nil)}, []string{"logger"}},
		"bad interval": {one, keys, httplimit.Config{}, []httplimit.Option{httplimit.WithLogInterval(0)}, []string{"interval"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := httplimit.New(tt.limiter, tt.keys, tt.config, tt.options...)
			if m != nil || err == nil {
				t.Fatalf("got %v, %v", m, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestUnidentifiedAreReported(t *testing.T) {
	shadow := daily("trial", 1)
	shadow.Mode = stint.Shadow
	l := limiter(t, memstore.New(memstore.Config{}), daily("api", 1), shadow)
	var got []string
	m := middleware(t, l, httplimit.Config{
		Charges:   []httplimit.Charge{{Policy: "trial", Subject: subject.Principal}, {Policy: "api"}},
		Principal: func(*http.Request) string { return "" },
	}, httplimit.WithUnidentified(func(policy string, shadow bool) { got = append(got, fmt.Sprint(policy, shadow)) }))
	r := request("GET", "/")
	r.RemoteAddr = ""
	rec := httptest.NewRecorder()
	m.Handler(hello).ServeHTTP(rec, r)
	if diff := cmp.Diff([]string{"trialtrue", "apifalse"}, got); diff != "" || rec.Code != 400 {
		t.Errorf("status %d (-want +got):\n%s", rec.Code, diff)
	}
}

// lines counts log lines.
type lines struct{ text []string }

func (l *lines) Write(b []byte) (int, error) {
	l.text = append(l.text, string(b))
	return len(b), nil
}

func TestAnOutageLogsOneLineAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		m := middleware(t, limiter(t, storetest.Faulty(stint.BeforeSend), daily("api", 1)), httplimit.Config{},
			httplimit.WithLogger(slog.New(slog.NewJSONHandler(&out, nil))), httplimit.WithLogInterval(time.Minute))
		h := m.Handler(hello)
		for range 100 {
			get(h, "/secret-path?secret-query", "X-API-Key", "secret-key")
		}
		if len(out.text) != 1 {
			t.Fatalf("%d lines in the first interval", len(out.text))
		}
		<-time.After(time.Minute)
		get(h, "/")
		if len(out.text) != 2 {
			t.Fatalf("%d lines after the second interval began", len(out.text))
		}
		var line struct {
			Level, Route, Kind, Reason string
			Unlogged                   int
		}
		if err := json.Unmarshal([]byte(out.text[1]), &line); err != nil {
			t.Fatal(err)
		}
		want := line
		want.Level, want.Route, want.Kind, want.Reason, want.Unlogged = "ERROR", "default", "unavailable", "UNAVAILABLE_BEFORE_SEND", 99
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, raw := range []string{"secret", "192.0.2.1"} {
			if strings.Contains(strings.Join(out.text, ""), raw) {
				t.Errorf("the log says %q", raw)
			}
		}
	})
}

func TestDenialsAreNotLogged(t *testing.T) {
	var out lines
	m := middleware(t, limiter(t, memstore.New(memstore.Config{}), daily("api", 1)), httplimit.Config{},
		httplimit.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
	for range 3 {
		get(m.Handler(hello), "/")
	}
	if len(out.text) != 0 {
		t.Errorf("logged %q", out.text)
	}
}
