package edge_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/storetest"
	"github.com/stintlimit/stint/subject"
)

func failing(r stint.Reason) stint.Store { return storetest.Faulty(r) }

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// Whatever a client sends, id, cost, policy and subject are the route's.
func TestClientsChooseNothing(t *testing.T) {
	b := bridge(t, edge.Config{
		Routes: []edge.Route{{ID: "orders", Match: "/orders", Cost: 2, Charges: []edge.Charge{
			charge("api", subject.ClientIP), charge("address", subject.ClientIP),
		}}},
	})
	plain := request("POST", "/orders")
	if !b.allowed(t, plain) {
		t.Fatal("refused")
	}
	want := b.store.counters()
	names := []string{
		"Idempotency-Key", "X-Idempotency-Key", "X-Request-Id", "Request-Id", "X-Evaluation-Id", "Traceparent",
		"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Cost", "X-RateLimit-Limit",
		"X-RateLimit-Cost", "X-RateLimit-Policy", "X-Cost", "Cost", "X-Policy", "Policy", "X-Stint-Cost", "X-Stint-Policy",
		"X-Stint-Id", "X-HTTP-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-For", "X-Real-IP", "Forwarded",
		"Retry-After", "Deadline", "Grpc-Timeout", "X-Auth-User",
	}
	for _, name := range names {
		for _, value := range []string{"0", "99", "address", "trial", "198.51.100.9", "/healthz"} {
			r := request("POST", "/orders?cost="+value+"&policy="+value+"&id="+value+"&idempotency_key="+value, name, value)
			if _, err := b.Decide(r); err != nil {
				t.Fatalf("%s: %s: %v", name, value, err)
			}
			g := b.store.groups[len(b.store.groups)-1]
			if diff := cmp.Diff(want, b.store.counters()); diff != "" {
				t.Fatalf("%s: %s: other counters: %s", name, value, diff)
			}
			for _, c := range g.Charges() {
				if !g.ID.IsZero() || c.Cost != 2 || g.Op != stint.Take {
					t.Fatalf("%s: %s: id %v, cost %d, op %v", name, value, g.ID, c.Cost, g.Op)
				}
			}
		}
	}
}

func TestRepeatedRequestsAreChargedAgain(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address")})
	for i := range 6 {
		if got, want := b.allowed(t, request("POST", "/", "Idempotency-Key", "same")), i < 5; got != want {
			t.Errorf("request %d: allowed %v", i, got)
		}
	}
}

type traceKey struct{}

func TestAClientThatHangsUpIsNoFailure(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address")})
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), traceKey{}, "trace"))
	cancel()
	if !b.allowed(t, request("GET", "/").WithContext(ctx)) {
		t.Error("refused")
	}
	got := b.store.ctxs[0]
	if got.Err() != nil || got.Value(traceKey{}) != "trace" {
		t.Errorf("the store's context: error %v, value %v", got.Err(), got.Value(traceKey{}))
	}
}

func TestDeadlineIsTheBudgetOrTheRequestsOwn(t *testing.T) {
	deadline := func(ctx context.Context, options ...stint.Option) time.Duration {
		store := &spy{next: failing(stint.ClockUnsafe)}
		b := bridge(t, edge.Config{Limiter: newLimiter(t, store, policies(), options...), Default: byAddress("address")})
		start := time.Now()
		if _, err := b.Decide(request("GET", "/").WithContext(ctx)); !errors.Is(err, stint.ClockUnsafe) {
			t.Fatal(err)
		}
		return store.groups[0].Deadline.Sub(start).Round(50 * time.Millisecond)
	}
	if got := deadline(context.Background()); got != 750*time.Millisecond {
		t.Errorf("by default: %v", got)
	}
	if got := deadline(context.Background(), stint.WithBudget(10*time.Second)); got != 10*time.Second {
		t.Errorf("configured: %v", got)
	}
	soon, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if got := deadline(soon); got != 300*time.Millisecond {
		t.Errorf("of the request: %v", got)
	}
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	b := bridge(t, edge.Config{Default: byAddress("address")})
	if _, err := b.Decide(request("GET", "/").WithContext(past)); !errors.Is(err, stint.AdmissionRejected) {
		t.Errorf("past: %v", err)
	}
}

func TestErrorsNeverAllow(t *testing.T) {
	for _, reason := range []stint.Reason{
		stint.PolicyUnknown, stint.CostInvalid, stint.EvaluationMismatch, stint.StateIncompatible, stint.AdmissionRejected,
		stint.BeforeSend, stint.NoMutation, stint.ClockUnsafe, stint.OutcomeUnknown,
	} {
		for name, charges := range map[string][]edge.Charge{
			"one charge":  {charge("api", subject.ClientIP)},
			"two charges": {charge("api", subject.ClientIP), charge("address", subject.ClientIP)},
			"with shadow": {charge("trial", subject.ClientIP), charge("address", subject.ClientIP)},
		} {
			b := bridge(t, edge.Config{
				Limiter: newLimiter(t, failing(reason), policies()),
				Routes:  []edge.Route{{ID: "all", Match: "/", Charges: charges}},
			})
			result, err := b.Decide(request("GET", "/"))
			if !errors.Is(err, reason) || result.Allowed || result.Route != "all" {
				t.Errorf("%s, %s: got %+v, %v", reason, name, result, err)
			}
		}
	}
}

func TestGroupsAreAllOrNothing(t *testing.T) {
	b := bridge(t, edge.Config{
		Routes:  []edge.Route{{ID: "special", Match: "/bar/special", Charges: []edge.Charge{charge("special", subject.Everyone), charge("bar", subject.Everyone)}}},
		Default: &edge.Route{Charges: []edge.Charge{charge("bar", subject.Everyone)}},
	}, fixed("bar", 10), fixed("special", 3))
	count := func(target string, n int) (passed int) {
		for range n {
			if b.allowed(t, request("GET", target)) {
				passed++
			}
		}
		return passed
	}
	if got := count("/bar/special", 5); got != 3 {
		t.Errorf("%d of 5 special requests passed, want 3", got)
	}
	if got := count("/bar/hello", 8); got != 7 {
		t.Errorf("%d of 8 other requests passed, want 7", got)
	}
}

func TestPerRouteGivesARouteItsOwnBudget(t *testing.T) {
	own := edge.Charge{Policy: "address", Subject: subject.Everyone, PerRoute: true}
	shared := charge("address", subject.Everyone)
	b := bridge(t, edge.Config{Routes: []edge.Route{
		{ID: "a", Match: "/a", Charges: []edge.Charge{own}}, {ID: "b", Match: "/b", Charges: []edge.Charge{own}},
		{ID: "c", Match: "/c", Charges: []edge.Charge{shared}}, {ID: "d", Match: "/d", Charges: []edge.Charge{shared}},
	}})
	counter := func(target string) string {
		if !b.allowed(t, request("GET", target)) {
			t.Fatal("refused")
		}
		return b.store.counters()[0]
	}
	if counter("/a") == counter("/b") || counter("/a") == counter("/c") || counter("/c") != counter("/d") {
		t.Error("budgets are not shared as configured")
	}
}

func TestExemptNetworksAreOfTheClientNotThePeer(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address"), ExemptNetworks: prefixes("10.1.0.0/16", "::ffff:198.51.100.0/120")})
	for name, tt := range map[string]struct {
		r    *http.Request
		want bool
	}{
		"peer in the network":            {from("10.1.2.3:1", request("GET", "/")), true},
		"client in the network":          {from("10.0.0.1:1", request("GET", "/", "X-Forwarded-For", "198.51.100.9")), true},
		"forged by a client":             {request("GET", "/", "X-Forwarded-For", "198.51.100.9"), false},
		"forged behind the proxy":        {from("10.0.0.1:1", request("GET", "/", "X-Forwarded-For", "198.51.100.9, 192.0.2.7")), false},
		"outside":                        {request("GET", "/"), false},
		"a proxy in the network, client": {from("10.1.2.3:1", request("GET", "/", "X-Forwarded-For", "192.0.2.7")), false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := b.Decide(tt.r)
			if exempt := result.Route == ""; err != nil || !result.Allowed || exempt != tt.want {
				t.Errorf("got %+v, %v; want exempt %v", result, err, tt.want)
			}
		})
	}
	if _, err := b.Decide(from("", request("GET", "/"))); err == nil {
		t.Error("nobody is exempt")
	}
}
