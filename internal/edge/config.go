package edge

import (
	"net/http"
	"net/netip"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/clientip"
	"github.com/stintlimit/stint/subject"
)

// DefaultIPv6Prefix groups IPv6 clients by the network that one customer gets
// at least.
const DefaultIPv6Prefix = 64

// DefaultRoute is the id of [Config.Default].
const DefaultRoute = "default"

// Config is what a [Bridge] is built from. [New] copies it.
type Config struct {
	Limiter *stint.Limiter   // required
	Keys    *subject.KeyRing // required

	// Normalisers map spellings of one identity to one. A kind without a
	// normaliser is taken byte for byte.
	Normalisers map[subject.Kind]subject.Normaliser

	// ClientIP says which proxies are believed about the client's address.
	ClientIP clientip.Config

	// APIKeyHeader is where clients send their API key. It is not verified
	// here: anybody can invent one.
	APIKeyHeader string

	// PrincipalHeader is where a trusted proxy writes whom it authenticated.
	// It is believed from the peers that ClientIP trusts, and from no other.
	PrincipalHeader string

	// Principal returns whom the program itself has authenticated, "" for
	// nobody. It replaces PrincipalHeader.
	Principal func(*http.Request) string

	// ExemptNetworks are client networks that are never charged.
	ExemptNetworks []netip.Prefix

	// ExemptPaths are ServeMux patterns of requests that are never charged.
	// They hold for the canonical spelling of a path only.
	ExemptPaths []string

	// Routes say what is charged for which requests. As in a ServeMux, the
	// most specific pattern wins.
	Routes []Route

	// Default is what is charged for requests that no route matches. It is
	// required, has no Match, and may have no charges: then the rest passes.
	Default *Route

	// OnUnidentified is called for each charge whose subject could not be
	// identified and that was not skipped: the request is refused, or, for a
	// shadow policy, passes uncharged. It must be safe for concurrent use.
	OnUnidentified func(policy string, shadow bool)
}

// Route is a class of requests, and what each of them is charged. A pattern
// with a host takes the client's word for it: use one only where a request
// that names another host goes elsewhere.
type Route struct {
	ID      string // ^[A-Za-z][A-Za-z0-9._-]{0,31}$
	Match   string // a ServeMux pattern, such as "POST /orders/{id}"
	Cost    int64  // of each charge; 0: 1
	Charges []Charge
}

// Charge is one budget that a route draws on.
type Charge struct {
	Policy  string       // its id
	Subject subject.Kind // ClientIP, APIKey, Principal or Everyone

	// PerRoute gives the route a budget of its own. Otherwise a policy
	// charged on several routes is one budget for each subject.
	PerRoute bool

	// Missing says what happens to a request without this identity.
	Missing Missing

	// IPv6Prefix is how many bits of an IPv6 client address count, 1 to 128;
	// 0: 64. Only for ClientIP.
	IPv6Prefix int
}

// Missing is what happens to a request that lacks an identity.
type Missing uint8

const (
	// Refuse answers that the client is unidentified.
	Refuse Missing = iota
	// Skip leaves the charge out. It is allowed only beside a charge that
	// cannot be skipped. An identity that is there and malformed is refused.
	Skip
)
