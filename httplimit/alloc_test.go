//go:build !race

// The race detector empties pools at random, so allocations say nothing there.

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/httplimit"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/subject"
)

// discard is a ResponseWriter that keeps nothing, so that what is measured is
// the middleware.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

var plenty = []stint.Limit{stint.TokenBucket{Capacity: 1 << 40, Refill: 1 << 40, Every: time.Second}}

// serving returns a function that serves one request through h.
func serving(h http.Handler) func() {
	r := httptest.NewRequest(http.MethodGet, "/orders/7", nil)
	w := &discard{header: http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func limited(tb testing.TB, policies []stint.Policy, c httplimit.Config) http.Handler {
	tb.Helper()
	l, err := stint.New(memstore.New(memstore.Config{}), policies)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := httplimit.New(l, subject.EphemeralKeyRing(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return m.Handler(bare)
}

var bare = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

func onePolicy() ([]stint.Policy, httplimit.Config) {
	return []stint.Policy{{ID: "api", Limits: plenty}}, httplimit.Config{}
}

func twoPoliciesByRoute() ([]stint.Policy, httplimit.Config) {
	return []stint.Policy{{ID: "api", Limits: plenty}, {ID: "address", Limits: plenty}}, httplimit.Config{
		Routes: []httplimit.Route{{ID: "orders", Match: "GET /orders/{id}", Charges: []httplimit.Charge{
			{Policy: "api", Subject: subject.Everyone}, {Policy: "address"},
		}}},
	}
}

func TestAllocatesLittleOverTheBareHandler(t *testing.T) {
	for name, tt := range map[string]struct {
		setup func() ([]stint.Policy, httplimit.Config)
		most  float64
	}{
		"one policy":                     {onePolicy, 5},
		"two policies, matched by route": {twoPoliciesByRoute, 10},
	} {
		t.Run(name, func(t *testing.T) {
			policies, config := tt.setup()
			with, without := serving(limited(t, policies, config)), serving(bare)
			got := testing.AllocsPerRun(200, with) - testing.AllocsPerRun(200, without)
			t.Logf("%v allocations", got)
			if got > tt.most {
				t.Errorf("%v allocations over the bare handler, want at most %v", got, tt.most)
			}
		})
	}
}

func BenchmarkMiddleware(b *testing.B) {
	one, oneConfig := onePolicy()
	two, twoConfig := twoPoliciesByRoute()
	for name, h := range map[string]http.Handler{
		"bare":           bare,
		"one-policy":     limited(b, one, oneConfig),
		"two-and-routes": limited(b, two, twoConfig),
	} {
		b.Run(name, func(b *testing.B) {
			serve := serving(h)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}
