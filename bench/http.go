package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/httplimit"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/subject"
)

// HTTP measures what the middleware adds to a handler that does next to
// nothing, on the embedded store: time and allocations.
func HTTP(s Size) (Table, error) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	limiter, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{bucket()})
	if err != nil {
		return Table{}, err
	}
	middleware, err := httplimit.New(limiter, subject.EphemeralKeyRing(), httplimit.Config{})
	if err != nil {
		return Table{}, err
	}
	limited := middleware.Handler(handler)

	addresses := make([]string, s.Keys)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.%d.%d.%d:40000", i>>16&255, i>>8&255, i&255)
	}
	all := []contestant{
		timed("the bare handler", 1, s.Operations, requests(handler, addresses)),
		timed("with httplimit", 1, s.Operations, requests(limited, addresses)),
	}
	medians, err := measure(s.Rounds, all)
	if err != nil {
		return Table{}, err
	}
	added := medians[1]["allocations"] - medians[0]["allocations"]
	t := Table{
		Title:   "The middleware",
		Columns: []string{"", "ns a request", "allocations"},
		Notes: []string{fmt.Sprintf("Each request from one of %d addresses, allowed, one limit. The middleware adds %.1f allocations and %.0f ns. Promised: at most 10 allocations.",
			s.Keys, added, medians[1]["ns"]-medians[0]["ns"])},
	}
	for i, c := range all {
		t.Rows = append(t.Rows, Row{c.name, []string{
			fmt.Sprintf("%.0f", medians[i]["ns"]), fmt.Sprintf("%.2f", medians[i]["allocations"]),
		}})
	}
	return t, nil
}

// requests serves requests from addresses in turn. Each has a response of its
// own, as from a server.
func requests(h http.Handler, addresses []string) func(from, n int) error {
	return func(from, n int) error {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := range n {
			r.RemoteAddr = addresses[(from+i)%len(addresses)]
			w := response{header: http.Header{}}
			h.ServeHTTP(&w, r)
			if w.status != http.StatusOK {
				return errRefused
			}
		}
		return nil
	}
}

// response keeps nothing but what these measurements ask for.
type response struct {
	header http.Header
	status int
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) Write(b []byte) (int, error) { return len(b), nil }
func (r *response) WriteHeader(status int)      { r.status = status }
