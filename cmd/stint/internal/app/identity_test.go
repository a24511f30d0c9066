package app

import (
	"fmt"
	"testing"
)

const byKey = `
identity: {trusted_proxies: [127.0.0.0/8]}
policies:
  - {id: tenant, limits: [{token-bucket: {capacity: 120, refill: 1, every: 1h}}]}
  - {id: address, limits: [{token-bucket: {capacity: 100, refill: 1, every: 1h}}]}
default:
  charge:
    - {policy: tenant, subject: api-key, missing: %s}
    - {policy: address, subject: client-ip}
`

// C48: without the header nobody shares a budget, and nobody goes unlimited.
func TestAnAbsentKeyIsNoSharedBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		missing string
		status  int
		counted string
	}{
		"refused as unidentified": {"refuse", 400, `stint_decisions_total{outcome="unidentified",policy="tenant"} 130`},
		"left to the address":     {"skip", 200, `stint_decisions_total{outcome="allowed",policy="address"} 130`},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fmt.Sprintf(byKey, tt.missing))
			for i := range 130 {
				r := s.do("GET", "/", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i+1))
				if r.status != tt.status {
					t.Fatalf("request %d: %d %s", i, r.status, r.body)
				}
			}
			if !s.counted(tt.counted) {
				t.Errorf("not counted: %s", tt.counted)
			}
		})
	}
}

// C48: 150 invented keys from one address are cut off by the address's budget.
func TestInventedKeysBuyNothing(t *testing.T) {
	s := start(t, fmt.Sprintf(byKey, "skip"))
	passed := 0
	for i := range 150 {
		r := s.do("GET", "/", "X-API-Key", fmt.Sprintf("invented-%d", i), "X-Forwarded-For", "192.0.2.1")
		if r.status == 200 {
			passed++
		}
	}
	if passed != 100 {
		t.Errorf("%d of 150 passed, want 100", passed)
	}
}

func TestPrincipalsAreBelievedFromTrustedProxiesOnly(t *testing.T) {
	const text = `
identity: {trusted_proxies: [%s], principal_header: X-Auth-User}
policies: [{id: person, limits: [{token-bucket: {capacity: 1, refill: 1, every: 1h}}]}]
default: {charge: [{policy: person, subject: principal}]}
`
	trusting := start(t, fmt.Sprintf(text, "127.0.0.0/8"))
	for _, tt := range []struct {
		user string
		want int
	}{{"alice", 200}, {"alice", 429}, {"bob", 200}} {
		if r := trusting.do("GET", "/", "X-Auth-User", tt.user); r.status != tt.want {
			t.Errorf("%s: %d, want %d", tt.user, r.status, tt.want)
		}
	}
	wary := start(t, fmt.Sprintf(text, "192.0.2.0/24"))
	if r := wary.do("GET", "/", "X-Auth-User", "alice"); r.status != 400 {
		t.Errorf("from anybody: %d, want 400", r.status)
	}
}

// What a client sends chooses neither cost, policy nor evaluation.
func TestHeadersOfTheRequestChooseNothing(t *testing.T) {
	s := start(t, tenEachTime)
	for i := range 10 {
		r := s.do("GET", "/", "Idempotency-Key", "same", "RateLimit", `"api";r=1000`, "RateLimit-Policy", `"none"`, "X-Cost", "0")
		if want := fmt.Sprintf(`"api";r=%d`, 9-i); r.status != 200 || len(r.header["Ratelimit"]) != 1 || r.header.Get("RateLimit")[:len(want)] != want {
			t.Fatalf("request %d: %d %v", i, r.status, r.header)
		}
	}
	if r := s.do("GET", "/", "Idempotency-Key", "same"); r.status != 429 {
		t.Errorf("%d", r.status)
	}
}

func TestExemptRequestsAreNotCharged(t *testing.T) {
	s := start(t, "exempt: {paths: [/healthz], networks: [198.51.100.0/24]}\nidentity: {trusted_proxies: [127.0.0.0/8]}"+tenEachTime)
	for range 20 {
		if r := s.do("GET", "/healthz"); r.status != 200 || r.header.Get("RateLimit") != "" {
			t.Fatalf("%d %v", r.status, r.header)
		}
		if r := s.do("GET", "/", "X-Forwarded-For", "198.51.100.7"); r.status != 200 {
			t.Fatalf("%d", r.status)
		}
	}
}
