package edge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/subject"
)

// spy is a Store that remembers what crossed the port.
type spy struct {
	next stint.Store

	mu     sync.Mutex
	groups []stint.Group
	ctxs   []context.Context
}

func (s *spy) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	s.mu.Lock()
	s.groups, s.ctxs = append(s.groups, g), append(s.ctxs, ctx)
	s.mu.Unlock()
	return s.next.Decide(ctx, g)
}

// counters are the policy and the subject of each charge of the last group.
func (s *spy) counters() []string {
	var out []string
	for _, c := range s.groups[len(s.groups)-1].Charges() {
		out = append(out, c.Policy.ID+" "+c.Subject.String())
	}
	return out
}

type bench struct {
	*edge.Bridge
	store  *spy
	missed []string // policy ids, "shadow " before those of shadow policies
}

func fixed(id string, limit int64) stint.Policy {
	return stint.Policy{ID: id, Limits: []stint.Limit{stint.FixedWindow{Limit: limit, Window: time.Minute}}}
}

func shadowed(p stint.Policy) stint.Policy {
	p.Mode = stint.Shadow
	return p
}

// policies that most tests use.
func policies() []stint.Policy {
	return []stint.Policy{fixed("api", 100), fixed("address", 5), shadowed(fixed("trial", 1))}
}

func newLimiter(t testing.TB, store stint.Store, ps []stint.Policy, options ...stint.Option) *stint.Limiter {
	t.Helper()
	options = append([]stint.Option{stint.WithClock(func() time.Time { return time.UnixMilli(1_700_000_000_000) })}, options...)
	l, err := stint.New(store, ps, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bridge builds over the memory store, and fills in what c leaves out.
func bridge(t testing.TB, c edge.Config, ps ...stint.Policy) *bench {
	t.Helper()
	if ps == nil {
		ps = policies()
	}
	b := &bench{store: &spy{next: memstore.New(memstore.Config{})}}
	if c.Limiter == nil {
		c.Limiter = newLimiter(t, b.store, ps)
	}
	if c.Keys == nil {
		c.Keys = subject.EphemeralKeyRing()
	}
	if c.ClientIP.Trusted == nil {
		c.ClientIP = clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: "X-Forwarded-For"}
	}
	c.APIKeyHeader, c.PrincipalHeader = "X-API-Key", "X-Auth-User"
	if c.Default == nil {
		c.Default = &edge.Route{}
	}
	c.OnUnidentified = func(policy string, shadow bool) {
		if shadow {
			policy = "shadow " + policy
		}
		b.missed = append(b.missed, policy)
	}
	var err error
	if b.Bridge, err = edge.New(c); err != nil {
		t.Fatal(err)
	}
	return b
}

// request makes one from 192.0.2.1; headers are name, value, name, value.
func request(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func from(peer string, r *http.Request) *http.Request {
	r.RemoteAddr = peer
	return r
}

// allowed decides on a request that is expected to be decided on.
func (b *bench) allowed(t *testing.T, r *http.Request) bool {
	t.Helper()
	result, err := b.Decide(r)
	if err != nil {
		t.Fatal(err)
	}
	return result.Allowed
}

func charge(policy string, s subject.Kind) edge.Charge {
	return edge.Charge{Policy: policy, Subject: s}
}

func byAddress(policy string) *edge.Route {
	return &edge.Route{Charges: []edge.Charge{charge(policy, subject.ClientIP)}}
}
