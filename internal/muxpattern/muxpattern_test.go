package muxpattern_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stintlimit/stint/internal/muxpattern"
)

func TestWhatNeverMatchesIsToldWithWhatWould(t *testing.T) {
	for given, want := range map[string]struct{ why, right string }{
		"POST Api.Example.com/h":    {"small letters", "POST api.example.com/h"},
		"localhost:8080/p":          {`the port "8080"`, "localhost/p"},
		"localhost:/p":              {`the port ""`, "localhost/p"},
		"example.com./k":            {"ends with a dot", "example.com/k"},
		"Example.com.:443/k":        {"the port", "example.com/k"},
		"CONNECT Example.com:443/":  {"small letters", "CONNECT example.com:443/"},
		"[::1]/p":                   {"IPv6", "/p"},
		"::1/p":                     {"IPv6", "/p"},
		"*.example.com/p":           {"without wildcards", "/p"},
		"bücher.example/p":          {"as a browser sends it", "/p"},
		"/x/../e":                   {"not clean", "/e"},
		"/x//f":                     {"not clean", "/x/f"},
		"GET /x//f":                 {"not clean", "GET /x/f"},
		"CONNECT /x//f":             {"not clean", "CONNECT /x/f"},
		"/.":                        {"not clean", "/"},
		"//":                        {"not clean", "/"},
		"/x/./":                     {"not clean", "/x/"},
		"/x/%2e%2E/e":               {"not clean", "/e"},
		"//{id}":                    {"not clean", "/{id}"},
		"/e?x=1":                    {`the query "?x=1"`, "/e"},
		"POST /e/{id}?":             {"the query", "POST /e/{id}"},
		"post /c":                   {"capitals", "POST /c"},
		"Post \t/c":                 {"capitals", "POST /c"},
		"get Example.com:80/x//y?z": {"capitals", "GET example.com/x/y"},
	} {
		got := muxpattern.Fault(given)
		if !strings.Contains(got, want.why) || !strings.HasSuffix(got, "; write \""+want.right+"\"") {
			t.Errorf("%q: got %q, want %s … %s", given, got, want.why, want.right)
		}
		if again := muxpattern.Fault(want.right); again != "" {
			t.Errorf("what %q should be is wrong too: %s", given, again)
		}
	}
}

// TestWhatCanMatchDoes asks a mux, with the pattern's own text as a request.
func TestWhatCanMatchDoes(t *testing.T) {
	for _, sound := range []string{
		"/", "/a", "/a/", "/a/{id}", "/a/{rest...}", "/{$}", "/a.b/..c", "/a%2Fb", "/a%3Fb", "/a%2Eb",
		"GET /a", "M-SEARCH /a", "GET  \t/a", "example.com/", "POST api.example.com/a", "my_host-1/a", "127.0.0.1/a",
		"CONNECT example.com:443/",
	} {
		if fault := muxpattern.Fault(sound); fault != "" {
			t.Errorf("%q: %s", sound, fault)
		}
		mux := http.NewServeMux()
		mux.Handle(sound, http.NotFoundHandler())
		method, rest := http.MethodGet, sound
		if i := strings.IndexAny(sound, " \t"); i >= 0 {
			method, rest = sound[:i], strings.TrimLeft(sound[i:], " \t")
		}
		host, path, _ := strings.Cut(strings.Replace(rest, "{$}", "", 1), "/")
		r := httptest.NewRequest(method, "/", nil)
		r.Host = host
		r.URL.Host = host
		var err error
		if r.URL, err = r.URL.Parse("/" + path); err != nil {
			t.Fatal(err)
		}
		if _, matched := mux.Handler(r); matched != sound {
			t.Errorf("%q: its own text matches %q", sound, matched)
		}
	}
}

func TestWhatIsNoPatternIsLeftToTheMux(t *testing.T) {
	for _, text := range []string{"", "orders", "GET", "GET  orders", "/a b", "/a/{x?}", "/a/{x"} {
		if fault := muxpattern.Fault(text); fault != "" {
			t.Errorf("%q: %s", text, fault)
		}
	}
}
