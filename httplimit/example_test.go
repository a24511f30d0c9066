package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/httplimit"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/subject"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

func get(h http.Handler, target string, headers ...string) *http.Response {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, request("GET", target, headers...))
	return rec.Result()
}

func request(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// Every client address may make two requests a day.
func Example() {
	daily := stint.Policy{ID: "daily", Limits: []stint.Limit{stint.TokenBucket{Capacity: 2, Refill: 2, Every: 24 * time.Hour}}}
	limiter, err := stint.New(memstore.New(memstore.Config{}), []stint.Policy{daily})
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(limiter, subject.EphemeralKeyRing(), httplimit.Config{})
	if err != nil {
		panic(err)
	}
	handler := limit.Handler(hello)

	for range 3 {
		res := get(handler, "/")
		fmt.Println(res.Status, res.Header.Get("RateLimit-Policy"), res.Header.Get("RateLimit"))
	}
	// Output:
	// 200 OK "daily";q=2;w=86400 "daily";r=1;t=86400
	// 200 OK "daily";q=2;w=86400 "daily";r=0;t=86400
	// 429 Too Many Requests "daily";q=2;w=86400 "daily";r=0;t=86400
}

// An API key's budget, and one for the address, since anybody can invent keys.
func Example_routes() {
	policies := []stint.Policy{
		{ID: "api", Limits: []stint.Limit{stint.FixedWindow{Limit: 100, Window: 24 * time.Hour}}},
		{ID: "address", Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: 24 * time.Hour}}},
	}
	limiter, err := stint.New(memstore.New(memstore.Config{}), policies, stint.WithClock(func() time.Time { return time.UnixMilli(0) }))
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(limiter, subject.EphemeralKeyRing(), httplimit.Config{
		APIKeyHeader: "X-API-Key",
		Routes: []httplimit.Route{{
			ID: "orders", Match: "/orders/{id}", Cost: 3,
			Charges: []httplimit.Charge{
				{Policy: "api", Subject: subject.APIKey, SkipMissing: true},
				{Policy: "address"},
			},
		}},
	})
	if err != nil {
		panic(err)
	}
	handler := limit.Handler(hello)

	fmt.Println(get(handler, "/orders/7", "X-API-Key", "k1").Header.Get("RateLimit"))
	fmt.Println(get(handler, "/orders/8").Header.Get("RateLimit"))
	fmt.Printf("%q\n", get(handler, "/about").Header.Get("RateLimit"))
	// Output:
	// "api";r=97;t=86400, "address";r=7;t=86400
	// "address";r=4;t=86400
	// ""
}
