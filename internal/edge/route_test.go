package edge_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/subject"
)

func route(id, match string) edge.Route {
	return edge.Route{ID: id, Match: match, Charges: []edge.Charge{charge("api", subject.Everyone)}}
}

// classified returns the id of a request's route, "exempt" for none.
func classified(t *testing.T, b *bench, r *http.Request) string {
	t.Helper()
	result, err := b.Decide(r)
	if err != nil {
		t.Fatal(err)
	}
	if result.Route == "" {
		return "exempt"
	}
	return result.Route
}

func TestEverySpellingOfAPathHasItsRoute(t *testing.T) {
	b := bridge(t, edge.Config{
		Routes: []edge.Route{
			route("login", "POST /login"), route("verify", "POST /verify/{code}"), route("tree", "/tree/"),
			route("admin", "admin.example.com/"), route("root", "GET /{$}"),
		},
		ExemptPaths: []string{"/healthz", "/static/"},
	})
	for _, tt := range []struct{ method, target, want string }{
		{"POST", "/login", "login"},
		{"POST", "/login?x=1", "login"},
		{"POST", "//login", "login"},
		{"POST", "///login", "login"},
		{"POST", "/./login", "login"},
		{"POST", "/a/../login", "login"},
		{"POST", "/a/..//./login", "login"},
		{"POST", "/%6Cogin", "login"},
		{"POST", "/%6cogin", "login"},
		{"POST", "/%2e/login", "login"},
		{"POST", "/a/%2E%2e/login", "login"},
		{"POST", "/a/.%2e/%6cogin", "login"},
		{"POST", "/login/", "default"},
		{"POST", "/login;v=1", "default"},
		{"POST", "/LOGIN", "default"},
		// %2F is no separator to RFC 3986, but to upstreams that decode first:
		// it separates where the spelling as it came has no route.
		{"POST", "/%2Flogin", "login"},
		{"POST", "/%2flogin", "login"},
		{"POST", "/%5Clogin", "login"},
		{"POST", "/%5clogin", "login"},
		{"POST", `/\login`, "login"},
		{"POST", "/verify%2F1", "verify"},
		{"POST", "/verify%5C1", "verify"},
		{"POST", "/a%2F..%2Fverify%2F1", "verify"},
		{"POST", "/a%2f%2e%2e%2fverify%2f1", "verify"},
		{"CONNECT", "/tree%2Fx", "tree"},
		{"GET", "http://Admin.example.com/a%2Fb", "admin"},
		{"POST", "/log%2Fin", "default"},
		{"POST", "/%252Flogin", "default"},
		{"POST", "/%256Cogin", "default"}, // decoded once
		{"GET", "/login", "default"},
		{"HEAD", "/login", "default"},
		{"POST", "/verify/1", "verify"},
		{"POST", "/verify/2", "verify"},
		{"POST", "/verify/a%2Fb", "verify"},
		{"POST", "//verify//3", "verify"},
		{"POST", "/verify/", "default"},
		{"GET", "/tree", "tree"},
		{"GET", "/tree/", "tree"},
		{"GET", "/tree/x//../y", "tree"},
		{"OPTIONS", "/tree/x", "tree"},
		{"TRACE", "/tree/x", "tree"},
		{"BREW", "/tree/x", "tree"},
		{"GET", "/", "root"},
		{"HEAD", "/", "root"},
		{"GET", "//", "root"},
		{"GET", "/.", "root"},
		{"GET", "/..", "root"},
		{"OPTIONS", "/", "default"},
		{"GET", "/nothing", "default"},
		{"GET", "http://admin.example.com/x", "admin"},
		{"GET", "http://ADMIN.Example.com/x", "admin"},
		{"GET", "http://admin.example.com./x", "admin"},
		{"GET", "http://admin.example.com:8443/x", "admin"},
		{"GET", "http://Admin.example.com.:8443//x", "admin"},
		{"GET", "http://other.example.com/x", "default"},
		{"GET", "/healthz", "exempt"},
		{"POST", "/healthz?x", "exempt"},
		{"GET", "/static/a.js", "exempt"},
		{"GET", "/static/", "exempt"},
		// Whatever else might be served under these spellings is charged.
		{"GET", "//healthz", "default"},
		{"GET", "/./healthz", "default"},
		{"GET", "/healthz/", "default"},
		{"GET", "/%68ealthz", "default"},
		{"GET", "/static", "default"},
		{"GET", "/static/../nothing", "default"},
		{"POST", "/static/../login", "login"},
		{"POST", "/static/%2e%2e/login", "login"},
		{"POST", "/static/..%2Flogin", "login"},
		{"POST", "/static/..%5Clogin", "login"},
		{"POST", `/static/..\login`, "login"},
		{"POST", "/static/..;/login", "default"},
		{"POST", "/static/a;/../../login", "login"},
		{"POST", "/static/%252e%252e/login", "default"},
		{"GET", "/static/a%3Bb", "default"},
		{"GET", "/static%2Fa.js", "default"},
		{"GET", "/%2Fhealthz", "default"},
		{"GET", "/%5Chealthz", "default"},
		{"GET", "/static//a.js", "default"},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			if got := classified(t, b, request(tt.method, tt.target)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A server hands these on although no client library would send them.
func TestStrangeTargetsAreCharged(t *testing.T) {
	b := bridge(t, edge.Config{Routes: []edge.Route{route("login", "/login"), route("tree", "/tree/")}})
	for name, tt := range map[string]struct {
		r    http.Request
		want string
	}{
		"the server itself":        {http.Request{Method: http.MethodOptions, URL: &url.URL{Path: "*"}}, "default"},
		"an empty path":            {http.Request{Method: http.MethodGet, URL: &url.URL{}}, "default"},
		"a relative path":          {http.Request{Method: http.MethodGet, URL: &url.URL{Path: "login"}}, "login"},
		"CONNECT to an authority":  {http.Request{Method: http.MethodConnect, Host: "example.com:443", URL: &url.URL{Host: "example.com:443"}}, "default"},
		"CONNECT to a path":        {http.Request{Method: http.MethodConnect, URL: &url.URL{Path: "/login"}}, "login"},
		"CONNECT to an odd path":   {http.Request{Method: http.MethodConnect, URL: &url.URL{Path: "//a/../login"}}, "login"},
		"CONNECT to a tree's root": {http.Request{Method: http.MethodConnect, URL: &url.URL{Path: "/tree"}}, "tree"},
		"an IPv6 host":             {http.Request{Method: http.MethodGet, Host: "[2001:DB8::1]:80", URL: &url.URL{Path: "/login"}}, "login"},
		"an odd host":              {http.Request{Method: http.MethodGet, Host: ":::", URL: &url.URL{Path: "/login"}}, "login"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classified(t, b, &tt.r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// As "POST a:http://x/login HTTP/1.1" is read: no path, and a proxy sends
// "http://x/login" on.
func TestATargetThatIsNoPathIsRefused(t *testing.T) {
	for name, c := range map[string]edge.Config{
		"with routes":         {Routes: []edge.Route{route("login", "/login")}},
		"without routes":      {Default: byAddress("address")},
		"from exempt clients": {ExemptNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		"with an exempt root": {ExemptPaths: []string{"/"}, Routes: []edge.Route{route("login", "/login")}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bridge(t, c)
			for _, target := range []string{"a:http://x/login", "a:login", "http:x"} {
				r := read(t, "POST "+target)
				if result, err := b.Decide(r); !errors.Is(err, edge.ErrTarget) || result.Allowed || result.Route != "" {
					t.Errorf("%s: %+v, %v", target, result, err)
				}
			}
			for _, line := range []string{"OPTIONS *", "CONNECT example.com:443", "GET http://x/login", "GET http:/login"} {
				if result, err := b.Decide(read(t, line)); err != nil || !result.Allowed {
					t.Errorf("%s: %+v, %v", line, result, err)
				}
			}
		})
	}
}

// read makes a request of a request line, as a server does.
func read(t *testing.T, line string) *http.Request {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: x\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	return from("192.0.2.1:1", r)
}

func TestMostSpecificPatternWins(t *testing.T) {
	b := bridge(t, edge.Config{
		Routes:      []edge.Route{route("all", "/"), route("orders", "/orders/"), route("create", "POST /orders/{id}"), route("latest", "GET /orders/latest")},
		ExemptPaths: []string{"GET /orders/status"},
	})
	for target, want := range map[string]string{
		"/": "all", "/x": "all", "/orders/7": "orders", "/orders/latest": "latest", "/orders/status": "exempt", "/orders/7/8": "orders",
	} {
		if got := classified(t, b, request("GET", target)); got != want {
			t.Errorf("GET %s: got %s, want %s", target, got, want)
		}
	}
	if got := classified(t, b, request("POST", "/orders/7")); got != "create" {
		t.Errorf("POST: got %s", got)
	}
	if got := classified(t, b, request("POST", "/orders/status")); got != "create" {
		t.Errorf("POST to what is exempt from GET: got %s", got)
	}
}

func TestNothingIsMatchedWithoutRoutes(t *testing.T) {
	b := bridge(t, edge.Config{Default: byAddress("address")})
	for _, target := range []string{"/", "//x", "/%2e"} {
		if got := classified(t, b, request("GET", target)); got != "default" {
			t.Errorf("%s: got %s", target, got)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, seed := range []string{"/login", "//login", "/%2e/login", "/a/../login", "/healthz", "/static/../login", "*", "", "%", "/%zz", "/%2Flogin", "/static/..%5Clogin", "/static/..;/login", "a:http://x/login"} {
		f.Add("POST", "example.com", seed)
	}
	b := bridge(f, edge.Config{
		Routes:      []edge.Route{{ID: "login", Match: "POST /login", Charges: []edge.Charge{charge("trial", subject.Everyone)}}},
		ExemptPaths: []string{"/healthz", "/static/"},
	})
	// Behind the bridge stands a mux: what reaches its handler was charged.
	reached := false
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(http.ResponseWriter, *http.Request) { reached = true })
	f.Fuzz(func(t *testing.T, method, host, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			u = &url.URL{Path: target}
		}
		r := &http.Request{Method: method, Host: host, URL: u, Header: http.Header{}, RemoteAddr: "192.0.2.1:1"}
		result, err := b.Decide(r)
		if u.Opaque != "" && errors.Is(err, edge.ErrTarget) {
			return
		}
		if err != nil || !result.Allowed {
			t.Fatalf("%+v, %v", result, err)
		}
		reached = false
		if h, _ := mux.Handler(r); h != nil {
			h.ServeHTTP(discard{}, r)
		}
		if reached && result.Route != "login" {
			t.Errorf("%s %s reached the handler as %q", method, target, result.Route)
		}
	})
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
