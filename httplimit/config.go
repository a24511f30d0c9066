package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/internal/edge"
	"github.com/stintlimit/stint/subject"
)

// Config says what is charged, and to whom. The zero Config charges every
// request to its client's address under the only policy of the limiter.
type Config struct {
	// Charges are what a request costs that no route matches. Empty: one
	// charge to the client's address, if the limiter has only one policy and
	// there are no routes; otherwise such requests pass uncharged.
	Charges []Charge

	// Routes charge some requests differently. As in a ServeMux, the most
	// specific pattern wins.
	Routes []Route

	// ExemptPaths are ServeMux patterns of requests that are never charged.
	ExemptPaths []string

	// ExemptNetworks are client networks that are never charged.
	ExemptNetworks []netip.Prefix

	// TrustedProxies are the networks whose ClientIPHeader is believed. Empty:
	// the client is always the peer of the connection.
	TrustedProxies []netip.Prefix

	// TrustUnix believes the headers of peers without an address, which is
	// how a proxy on this machine connects over a Unix socket.
	TrustUnix bool

	// ClientIPHeader is the one header with the client's address:
	// X-Forwarded-For, Forwarded, or one that holds a single address.
	ClientIPHeader string

	// APIKeyHeader holds the key for charges to subject.APIKey. Keys are not
	// verified, so a route with such a charge must charge the address too.
	APIKeyHeader string

	// PrincipalHeader holds the name for charges to subject.Principal. It is
	// believed from trusted proxies only.
	PrincipalHeader string

	// Principal returns whom the program has authenticated, "" for nobody. It
	// replaces PrincipalHeader.
	Principal func(*http.Request) string

	// Normalisers map spellings of one identity to one.
	Normalisers map[subject.Kind]subject.Normaliser

	// RetryAfter is what a 503 asks clients to wait, rounded up to whole
	// seconds. 0: 1s.
	RetryAfter time.Duration
}

// Route is a class of requests, and what each of them is charged.
type Route struct {
	ID      string // ^[A-Za-z][A-Za-z0-9._-]{0,31}$
	Match   string // a ServeMux pattern, such as "POST /orders/{id}"
	Cost    int64  // of each charge; 0: 1
	Charges []Charge
}

// Charge is one budget that a request draws on. All charges of a request pass,
// or none is spent.
type Charge struct {
	Policy  string       // the id of one of the limiter's policies
	Subject subject.Kind // "": subject.ClientIP

	// PerRoute gives the route a budget of its own. Otherwise a policy
	// charged on several routes is one budget for each subject.
	PerRoute bool

	// SkipMissing leaves the charge out of requests without this identity,
	// instead of refusing them. It is allowed only beside a charge that
	// cannot be skipped.
	SkipMissing bool

	// IPv6Prefix is how many bits of an IPv6 client address count, 1 to 128;
	// 0: 64. Only for subject.ClientIP.
	IPv6Prefix int
}

func (c *Config) bridge(policies []string) edge.Config {
	charges := c.Charges
	if len(charges) == 0 && len(c.Routes) == 0 && len(policies) == 1 {
		charges = []Charge{{Policy: policies[0]}}
	}
	e := edge.Config{
		Normalisers:     c.Normalisers,
		ClientIP:        clientip.Config{Trusted: c.TrustedProxies, TrustUnix: c.TrustUnix, Header: c.ClientIPHeader},
		APIKeyHeader:    c.APIKeyHeader,
		PrincipalHeader: c.PrincipalHeader,
		Principal:       c.Principal,
		ExemptNetworks:  c.ExemptNetworks,
		ExemptPaths:     c.ExemptPaths,
		Default:         &edge.Route{Charges: edgeCharges(charges)},
	}
	for _, r := range c.Routes {
		e.Routes = append(e.Routes, edge.Route{ID: r.ID, Match: r.Match, Cost: r.Cost, Charges: edgeCharges(r.Charges)})
	}
	return e
}

// fields are the names in Config of what the bridge calls otherwise.
var fields = strings.NewReplacer(
	"Default.Charges", "Charges",
	"ClientIP.TrustUnix", "TrustUnix",
	"ClientIP.Trusted", "TrustedProxies",
	"ClientIP.Header", "ClientIPHeader",
	"].Missing", "].SkipMissing",
)

// inConfig words the bridge's problems for the reader of a Config.
func inConfig(err error) error {
	var invalid *edge.ConfigError
	if !errors.As(err, &invalid) {
		return err
	}
	problems := make([]error, len(invalid.Problems))
	for i, p := range invalid.Problems {
		problems[i] = fmt.Errorf("%s: %s", fields.Replace(p.Field), p.Message)
	}
	return errors.Join(problems...)
}

func edgeCharges(charges []Charge) []edge.Charge {
	var out []edge.Charge
	for _, c := range charges {
		e := edge.Charge{Policy: c.Policy, Subject: c.Subject, PerRoute: c.PerRoute, IPv6Prefix: c.IPv6Prefix}
		if e.Subject == "" {
			e.Subject = subject.ClientIP
		}
		if c.SkipMissing {
			e.Missing = edge.Skip
		}
		out = append(out, e)
	}
	return out
}
