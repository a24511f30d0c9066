package edge_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/subject"
)

// sound is a configuration to break.
func sound(t *testing.T) edge.Config {
	t.Helper()
	return edge.Config{
		Limiter:         newLimiter(t, memstore.New(memstore.Config{}), policies()),
		Keys:            subject.EphemeralKeyRing(),
		ClientIP:        clientip.Config{Trusted: prefixes("10.0.0.0/8"), Header: "X-Forwarded-For"},
		APIKeyHeader:    "X-API-Key",
		PrincipalHeader: "X-Auth-User",
		Routes:          []edge.Route{route("orders", "/orders")},
		Default:         &edge.Route{},
	}
}

func TestEachProblemNamesItsPlace(t *testing.T) {
	with := func(charges ...edge.Charge) func(*edge.Config) {
		return func(c *edge.Config) { c.Routes[0].Charges = charges }
	}
	skip := func(policy string, s subject.Kind) edge.Charge {
		return edge.Charge{Policy: policy, Subject: s, Missing: edge.Skip}
	}
	for name, tt := range map[string]struct {
		breakIt func(*edge.Config)
		field   string
		message string
	}{
		"no limiter":           {func(c *edge.Config) { c.Limiter = nil }, "Limiter", "is nil"},
		"no keys":              {func(c *edge.Config) { c.Keys = nil }, "Keys", "EphemeralKeyRing"},
		"nil normaliser":       {func(c *edge.Config) { c.Normalisers = map[subject.Kind]subject.Normaliser{"api-key": nil} }, "Normalisers", "nil"},
		"trusts no network":    {func(c *edge.Config) { c.ClientIP.Trusted = append(c.ClientIP.Trusted, netip.Prefix{}) }, "ClientIP.Trusted[1]", "not a network"},
		"trusts everybody":     {func(c *edge.Config) { c.ClientIP.Trusted[0] = netip.MustParsePrefix("::/0") }, "ClientIP.Trusted[0]", "everybody"},
		"bad address header":   {func(c *edge.Config) { c.ClientIP.Header = "X Y" }, "ClientIP.Header", "not a header name"},
		"bad key header":       {func(c *edge.Config) { c.APIKeyHeader = "X-API-Key:" }, "APIKeyHeader", "not a header name"},
		"one header twice":     {func(c *edge.Config) { c.PrincipalHeader = "x-api-key" }, "PrincipalHeader", "already the APIKeyHeader"},
		"nobody believed":      {func(c *edge.Config) { c.ClientIP = clientip.Config{} }, "PrincipalHeader", "never believed"},
		"exempts no network":   {func(c *edge.Config) { c.ExemptNetworks = []netip.Prefix{{}} }, "ExemptNetworks[0]", "not a network"},
		"exempts no path":      {func(c *edge.Config) { c.ExemptPaths = []string{"/a", "healthz"} }, "ExemptPaths[1]", "healthz"},
		"exempts a route":      {func(c *edge.Config) { c.ExemptPaths = []string{"/orders"} }, "Routes[0].Match", `conflicts with pattern "/orders"`},
		"no default":           {func(c *edge.Config) { c.Default = nil }, "Default", "is missing"},
		"default with a match": {func(c *edge.Config) { c.Default.Match = "/" }, "Default.Match", "matches what the others do not"},
		"default with an id":   {func(c *edge.Config) { c.Default.ID = "rest" }, "Default.ID", "is called"},
		"default's policy":     {func(c *edge.Config) { c.Default = byAddress("nobody") }, "Default.Charges[0].Policy", `"nobody"`},
		"default's cost":       {func(c *edge.Config) { c.Default = byAddress("address"); c.Default.Cost = 6 }, "Default.Cost", "maximum cost"},
		"no id":                {func(c *edge.Config) { c.Routes[0].ID = "" }, "Routes[0].ID", "not an id"},
		"bad id":               {func(c *edge.Config) { c.Routes[0].ID = "a:b" }, "Routes[0].ID", "not an id"},
		"id of the default":    {func(c *edge.Config) { c.Routes[0].ID = "default" }, "Routes[0].ID", "default route"},
		"id taken":             {func(c *edge.Config) { c.Routes = append(c.Routes, route("orders", "/x")) }, "Routes[1].ID", "Routes[0]"},
		"no pattern":           {func(c *edge.Config) { c.Routes[0].Match = "" }, "Routes[0].Match", "is empty"},
		"bad pattern":          {func(c *edge.Config) { c.Routes[0].Match = "GET  orders" }, "Routes[0].Match", "orders"},
		"bad wildcard":         {func(c *edge.Config) { c.Routes[0].Match = "/a/{x" }, "Routes[0].Match", "{x"},
		"host in capitals":     {func(c *edge.Config) { c.Routes[0].Match = "POST Api.Example.com/h" }, "Routes[0].Match", `write "POST api.example.com/h"`},
		"host with a port":     {func(c *edge.Config) { c.Routes[0].Match = "localhost:8080/p" }, "Routes[0].Match", `write "localhost/p"`},
		"host with a dot":      {func(c *edge.Config) { c.Routes[0].Match = "example.com./k" }, "Routes[0].Match", `write "example.com/k"`},
		"unclean path":         {func(c *edge.Config) { c.Routes[0].Match = "/x/../e" }, "Routes[0].Match", `write "/e"`},
		"doubled slash":        {func(c *edge.Config) { c.Routes[0].Match = "/x//f" }, "Routes[0].Match", `write "/x/f"`},
		"query":                {func(c *edge.Config) { c.Routes[0].Match = "/e?x=1" }, "Routes[0].Match", `write "/e"`},
		"method in small":      {func(c *edge.Config) { c.Routes[0].Match = "post /c" }, "Routes[0].Match", `write "POST /c"`},
		"exempts what is not":  {func(c *edge.Config) { c.ExemptPaths = []string{"get /h"} }, "ExemptPaths[0]", `write "GET /h"`},
		"pattern taken":        {func(c *edge.Config) { c.Routes = append(c.Routes, route("b", "/orders")) }, "Routes[1].Match", "(route orders)"},
		"patterns conflict": {func(c *edge.Config) {
			c.Routes = []edge.Route{route("a", "/{x}/b"), route("b", "/a/{x}")}
		}, "Routes[1].Match", "(route a)"},
		"no charges":         {with(), "Routes[0].Charges", "charges something"},
		"negative cost":      {func(c *edge.Config) { c.Routes[0].Cost = -1 }, "Routes[0].Cost", "out of range"},
		"cost above maximum": {func(c *edge.Config) { c.Routes[0].Cost = 101 }, "Routes[0].Cost", "maximum cost of policy \"api\", 100"},
		"unknown policy":     {with(charge("dayly", "everyone")), "Routes[0].Charges[0].Policy", `"dayly"`},
		"unknown subject":    {with(charge("api", "tenant")), "Routes[0].Charges[0].Subject", `"tenant"`},
		"no subject":         {with(charge("api", "")), "Routes[0].Charges[0].Subject", "client-ip, api-key"},
		"charged twice":      {with(charge("api", "everyone"), charge("api", "everyone")), "Routes[0].Charges[1].Policy", "Charges[0]"},
		"too many charges":   {with(make([]edge.Charge, stint.MaxCharges+1)...), "Routes[0].Charges", "at most 32"},
		"no key header": {func(c *edge.Config) {
			c.APIKeyHeader = ""
			with(charge("api", "api-key"), charge("api", "client-ip"))(c)
		}, "Routes[0].Charges[0].Subject", "no header"},
		"no principal header": {func(c *edge.Config) { c.PrincipalHeader = ""; with(charge("api", "principal"))(c) }, "Routes[0].Charges[0].Subject", "no header"},
		"bad missing":         {with(edge.Charge{Policy: "api", Subject: "client-ip", Missing: 2}), "Routes[0].Charges[0].Missing", "neither"},
		"everyone skipped":    {with(charge("address", "everyone"), skip("api", "everyone")), "Routes[0].Charges[1].Missing", "never missing"},
		"prefix too long":     {with(edge.Charge{Policy: "api", Subject: "client-ip", IPv6Prefix: 129}), "Routes[0].Charges[0].IPv6Prefix", "1 to 128"},
		"prefix negative":     {with(edge.Charge{Policy: "api", Subject: "client-ip", IPv6Prefix: -1}), "Routes[0].Charges[0].IPv6Prefix", "1 to 128"},
		"prefix of no address": {with(edge.Charge{Policy: "api", Subject: "everyone", IPv6Prefix: 64}),
			"Routes[0].Charges[0].IPv6Prefix", "client-ip"},
		"skip alone":                   {with(skip("api", "principal")), "Routes[0].Charges[0].Missing", "would lift every limit"},
		"skip beside skip":             {with(skip("api", "principal"), skip("address", "client-ip")), "Routes[0].Charges[1].Missing", "would lift every limit"},
		"skip beside shadow":           {with(skip("api", "principal"), charge("trial", "client-ip")), "Routes[0].Charges[0].Missing", "would lift every limit"},
		"key alone":                    {with(charge("api", "api-key")), "Routes[0].Charges[0].Subject", "must also charge client-ip"},
		"key beside everyone":          {with(charge("api", "api-key"), charge("address", "everyone")), "Routes[0].Charges[0].Subject", "must also charge client-ip"},
		"key beside a skipped address": {with(charge("api", "api-key"), skip("address", "client-ip")), "Routes[0].Charges[0].Subject", "must also charge client-ip"},
		"key beside a shadow address":  {with(charge("api", "api-key"), charge("trial", "client-ip")), "Routes[0].Charges[0].Subject", "must also charge client-ip"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound(t)
			tt.breakIt(&c)
			b, err := edge.New(c)
			var invalid *edge.ConfigError
			if b != nil || !errors.As(err, &invalid) {
				t.Fatalf("got %v, %v", b, err)
			}
			for _, p := range invalid.Problems {
				if strings.Contains(p.Message, ".go") {
					t.Errorf("a place in our source: %s", p.Message)
				}
				if p.Field == tt.field && strings.Contains(p.Message, tt.message) {
					return
				}
			}
			t.Errorf("got %v; want %s: … %s …", invalid.Problems, tt.field, tt.message)
		})
	}
}

func TestSoundCompanionsAreAccepted(t *testing.T) {
	for name, charges := range map[string][]edge.Charge{
		"a key skipped beside an address": {{Policy: "api", Subject: subject.APIKey, Missing: edge.Skip}, charge("address", subject.ClientIP)},
		"a principal skipped by everyone": {{Policy: "api", Subject: subject.Principal, Missing: edge.Skip}, charge("address", subject.Everyone)},
		"shadows beside shadows":          {{Policy: "trial", Subject: subject.APIKey, Missing: edge.Skip}, charge("trial", subject.ClientIP)},
		"a budget for the route and one for all": {charge("api", subject.ClientIP),
			{Policy: "api", Subject: subject.ClientIP, PerRoute: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound(t)
			c.Routes[0].Charges = charges
			if _, err := edge.New(c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	_, err := edge.New(edge.Config{
		ExemptPaths: []string{"x"},
		Routes: []edge.Route{
			{ID: "a", Match: "/a", Charges: []edge.Charge{charge("api", "tenant")}},
			{ID: "a", Match: "/a", Cost: -1},
		},
	})
	var invalid *edge.ConfigError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.Field+" "+p.Route)
	}
	want := []string{
		"Limiter ", "Keys ", "Default ", "ExemptPaths[0] ", "Routes[0].Charges[0].Subject a", "Routes[1].ID a",
		"Routes[1].Charges a", "Routes[1].Cost a", "Routes[1].Match a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if text := err.Error(); !strings.Contains(text, `Routes[1].Cost (route "a"): -1 is out of range`) {
		t.Errorf("the text names no place: %s", text)
	}
}
