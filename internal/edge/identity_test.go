package edge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/subject"
)

func unidentified(t *testing.T, err error, cause error) {
	t.Helper()
	var u *edge.UnidentifiedError
	if !errors.As(err, &u) || !errors.Is(err, cause) {
		t.Errorf("got %v, want unidentified: %v", err, cause)
	}
}

// Case C44 of the field.
func TestClientsOfOneIPv6NetworkShareABudget(t *testing.T) {
	for _, tt := range []struct {
		prefix    int
		neighbour bool
	}{{0, true}, {64, true}, {56, false}} {
		t.Run(fmt.Sprintf("prefix %d", tt.prefix), func(t *testing.T) {
			b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{
				{Policy: "address", Subject: subject.ClientIP, IPv6Prefix: tt.prefix},
			}}})
			for i := range 6 {
				peer := fmt.Sprintf("[2001:db8:0:1::%x]:80", i*77777%65536)
				if got, want := b.allowed(t, from(peer, request("GET", "/"))), i < 5; got != want {
					t.Errorf("address %d: allowed %v", i, got)
				}
			}
			if got := b.allowed(t, from("[2001:db8:0:2::1]:80", request("GET", "/"))); got != tt.neighbour {
				t.Errorf("the neighbouring network: allowed %v", got)
			}
			for i := range 6 {
				if !b.allowed(t, from(fmt.Sprintf("203.0.113.%d:80", i), request("GET", "/"))) {
					t.Errorf("IPv4 address %d shares a budget", i)
				}
			}
		})
	}
}

// Case C45 of the field.
func TestNobodyHasTheEmptyIdentity(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address")})
	for _, peer := range []string{"", "@"} {
		_, err := b.Decide(from(peer, request("GET", "/", "X-Forwarded-For", "198.51.100.9")))
		unidentified(t, err, clientip.NoAddress)
	}
	_, err := b.Decide(from("10.0.0.1:1", request("GET", "/", "X-Forwarded-For", "unknown")))
	unidentified(t, err, clientip.Malformed)
	if len(b.store.groups) != 0 {
		t.Error("the store was asked about nobody")
	}
	if want := []string{"address", "address", "address"}; !slices.Equal(b.missed, want) {
		t.Errorf("reported %v, want %v", b.missed, want)
	}

	unix := bridge(t, edge.Config{
		Default:  byAddress("address"),
		ClientIP: clientip.Config{Trusted: prefixes("10.0.0.0/8"), TrustUnix: true, Header: "X-Forwarded-For"},
	})
	through := func(peer string) []string {
		if _, err := unix.Decide(from(peer, request("GET", "/", "X-Forwarded-For", "198.51.100.9"))); err != nil {
			t.Fatal(err)
		}
		return unix.store.counters()
	}
	if diff := cmp.Diff(through("10.0.0.1:1"), through("@")); diff != "" {
		t.Errorf("one client through two proxies is two: %s", diff)
	}
}

// C48: A header that anybody can invent limits nobody by itself: the address does.
func TestInventedKeysAreCutOffByTheAddress(t *testing.T) {
	keys := func(missing edge.Missing) edge.Config {
		return edge.Config{Default: &edge.Route{Charges: []edge.Charge{
			{Policy: "api", Subject: subject.APIKey, Missing: missing},
			{Policy: "address", Subject: subject.ClientIP},
		}}}
	}
	b := bridge(t, keys(edge.Refuse))
	for i := range 130 {
		_, err := b.Decide(from(fmt.Sprintf("198.51.100.%d:80", i), request("GET", "/")))
		unidentified(t, err, edge.ErrMissing)
	}
	passed := 0
	for i := range 150 {
		if b.allowed(t, request("GET", "/", "X-API-Key", fmt.Sprintf("invented-%d", i))) {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d of 150 invented keys passed from one address, want 5", passed)
	}

	skipping := bridge(t, keys(edge.Skip))
	passed = 0
	for i := range 130 {
		if skipping.allowed(t, from(fmt.Sprintf("198.51.100.%d:80", i%13), request("GET", "/"))) {
			passed++
		}
	}
	if passed != 13*5 {
		t.Errorf("%d passed without a key from 13 addresses, want 65", passed)
	}
}

func TestPrincipalIsBelievedFromTrustedPeersOnly(t *testing.T) {
	b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{charge("api", subject.Principal)}}})
	if !b.allowed(t, from("10.0.0.1:1", request("GET", "/", "X-Auth-User", "alice"))) {
		t.Error("the proxy is not believed")
	}
	_, err := b.Decide(request("GET", "/", "X-Auth-User", "alice"))
	unidentified(t, err, edge.ErrMissing)
	_, err = b.Decide(from("10.0.0.1:1", request("GET", "/")))
	unidentified(t, err, edge.ErrMissing)
	_, err = b.Decide(from("10.0.0.1:1", request("GET", "/", "X-Auth-User", "")))
	unidentified(t, err, edge.ErrMissing)
	_, err = b.Decide(from("10.0.0.1:1", request("GET", "/", "X-Auth-User", "alice", "X-Auth-User", "bob")))
	unidentified(t, err, edge.ErrAmbiguous)
}

func TestAMalformedIdentityIsNotSkipped(t *testing.T) {
	b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{
		{Policy: "api", Subject: subject.APIKey, Missing: edge.Skip},
		{Policy: "address", Subject: subject.ClientIP},
	}}})
	_, err := b.Decide(request("GET", "/", "X-API-Key", "a", "X-API-Key", "b"))
	unidentified(t, err, edge.ErrAmbiguous)
	if !b.allowed(t, request("GET", "/", "X-API-Key", "")) {
		t.Error("an empty key is not skipped")
	}
	if len(b.missed) != 1 {
		t.Errorf("reported %v: what is skipped is not unidentified", b.missed)
	}
}

func TestProgramsCanNameThePrincipalThemselves(t *testing.T) {
	c := edge.Config{
		Keys:      subject.EphemeralKeyRing(),
		Limiter:   newLimiter(t, &spy{next: failing(stint.ClockUnsafe)}, policies()),
		Principal: func(r *http.Request) string { return r.Header.Get("X-Session") },
		Default:   &edge.Route{Charges: []edge.Charge{charge("api", subject.Principal)}},
	}
	b, err := edge.New(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Decide(request("GET", "/"))
	unidentified(t, err, edge.ErrMissing)
	if _, err = b.Decide(request("GET", "/", "X-Session", "alice")); !errors.Is(err, stint.ClockUnsafe) {
		t.Errorf("got %v", err)
	}
}

// What a client sends reaches the store as a pseudonym or not at all.
func TestNoRawIdentityCrossesThePort(t *testing.T) {
	b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{
		charge("api", subject.APIKey), charge("address", subject.ClientIP),
		charge("address", subject.Principal), charge("trial", subject.Everyone),
	}}})
	r := from("10.0.0.1:1", request("GET", "/secret-path?secret-query",
		"X-Forwarded-For", "198.51.100.9", "X-API-Key", "secret-key", "X-Auth-User", "secret-alice"))
	if _, err := b.Decide(r); err != nil {
		t.Fatal(err)
	}
	g := b.store.groups[0]
	if g.Len() != 4 {
		t.Fatalf("%d charges, want 4", g.Len())
	}
	var seen strings.Builder
	for _, c := range g.Charges() {
		fmt.Fprintf(&seen, "%+v %s %s\n", *c, c.Subject, c.Subject.Digest)
	}
	fmt.Fprintf(&seen, "%+v", g)
	for _, raw := range []string{"198.51", "secret", "alice", "10.0.0.1"} {
		if strings.Contains(seen.String(), raw) {
			t.Errorf("%q crossed the port", raw)
		}
	}
}

func TestShadowChargesRefuseNobody(t *testing.T) {
	b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{charge("trial", subject.APIKey), charge("trial", subject.ClientIP)}}})
	for range 3 {
		if !b.allowed(t, from("", request("GET", "/"))) {
			t.Error("refused for a missing identity")
		}
		if !b.allowed(t, request("GET", "/", "X-API-Key", "k")) {
			t.Error("refused by a shadow limit")
		}
	}
	if want := slices.Repeat([]string{"shadow trial", "shadow trial"}, 3); !slices.Equal(b.missed, want) {
		t.Errorf("reported %v, want %v", b.missed, want)
	}
	down := bridge(t, edge.Config{
		Limiter: newLimiter(t, failing(stint.OutcomeUnknown), policies()),
		Default: byAddress("trial"),
	})
	if !down.allowed(t, request("GET", "/")) {
		t.Error("refused for a failing store")
	}

	mixed := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{charge("trial", subject.APIKey), charge("address", subject.ClientIP)}}})
	result, err := mixed.Decide(request("GET", "/"))
	if err != nil || !result.Allowed || len(result.Policies) != 1 || result.Policies[0].ID != "address" || result.Verdict.Len() != 1 {
		t.Errorf("beside a shadow without an identity: %+v, %v", result, err)
	}
}

func TestResultNamesThePolicyOfEachDecision(t *testing.T) {
	b := bridge(t, edge.Config{Default: &edge.Route{Charges: []edge.Charge{
		{Policy: "api", Subject: subject.APIKey, Missing: edge.Skip},
		{Policy: "trial", Subject: subject.Principal},
		{Policy: "address", Subject: subject.ClientIP},
		{Policy: "api", Subject: subject.Principal, Missing: edge.Skip},
	}}})
	for want, headers := range map[string][]string{
		"address":               nil,
		"api address":           {"X-API-Key", "k"},
		"trial address api":     {"X-Auth-User", "alice"},
		"api trial address api": {"X-API-Key", "k", "X-Auth-User", "alice"},
	} {
		for range 2 { // the second time shows whether the first changed the route
			result, err := b.Decide(from("10.0.0.1:1", request("GET", "/", headers...)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range result.Policies {
				got = append(got, p.ID)
			}
			if strings.Join(got, " ") != want || result.Verdict.Len() != len(got) {
				t.Errorf("got %v and %d decisions, want %s", got, result.Verdict.Len(), want)
			}
		}
	}
}

func TestErrorsQuoteNothingOfTheClient(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address")})
	_, err := b.Decide(from("10.0.0.1:1", request("GET", "/", "X-Forwarded-For", "198.51.100.9;secret")))
	if want := "edge: unidentified client-ip for policy address: clientip: malformed forwarding header"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
