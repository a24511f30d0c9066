package config

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stintlimit/stint/internal/edge"
)

// TestPatternsAreRefusedWhereTheServerRefusesThem: what `stint check` accepts
// starts, and what it refuses would not have.
func TestPatternsAreRefusedWhereTheServerRefusesThem(t *testing.T) {
	for match, sound := range map[string]bool{
		"/": true, "POST /orders/{id}": true, "api.example.com/h": true, "CONNECT example.com:443/": true,
		"/a%3Fb": true, "": false, "orders": false, "G@T /b": false, "/c/{x": false,
		"POST Api.Example.com/h": false, "localhost:8080/p": false, "example.com./k": false, "[::1]/p": false,
		"*.example.com/": false, "/x/../e": false, "/x//f": false, "/%2e/f": false, "/e?x=1": false, "post /c": false,
	} {
		text := fmt.Sprintf(`
policies: [{id: api, limits: [{fixed-window: {limit: 10, window: 1m}}]}]
routes: [{id: a, match: %q, charge: [{policy: api, subject: client-ip}]}]
default: {charge: []}
`, match)
		_, err := parse("a.yaml", []byte(text), Overrides{}, func(string) (string, bool) { return "", false })
		if (err == nil) != sound {
			t.Errorf("check of %q: %v", match, err)
		}
		_, err = edge.New(edge.Config{Routes: []edge.Route{{ID: "a", Match: match}}})
		var invalid *edge.ConfigError
		if !errors.As(err, &invalid) {
			t.Fatalf("edge accepts a configuration of nothing but a route: %v", err)
		}
		refused := slices.ContainsFunc(invalid.Problems, func(p edge.Problem) bool { return p.Field == "Routes[0].Match" })
		if refused == sound {
			t.Errorf("edge of %q: %v", match, err)
		}
	}
}
