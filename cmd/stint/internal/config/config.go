// Package config reads the file that describes a stint server.
//
// It is strict: whatever the reference in docs/configuration.md does not name
// is refused, and everything wrong with a file is reported at once, each
// problem with its line and column. A Config that it returns can be run as it
// stands: keys and passwords have been read, and every reference resolves.
//
// It opens no connection and no listener, and it neither watches nor rewrites
// the file.
package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

// Config is a whole server. It is not changed after it was read, and is then
// safe for concurrent use.
type Config struct {
	Listen       string // host:port of what is limited; port 0 picks a free one
	AdminListen  string // host:port of probes and metrics
	Upstream     *url.URL
	Deadline     time.Duration // budget of one evaluation
	DrainTimeout time.Duration // how long requests in flight may take to end after SIGTERM
	RetryAfter   time.Duration // what a refusal for want of a decision advises
	Log          Log
	Store        Store
	Identity     Identity
	Policies     []stint.Policy
	Exempt       Exempt
	Routes       []Route
	Default      []Charge // what a request is charged that no route matches

	// Digest names the text that the Config was read from: the first bytes of
	// its SHA-256 in hexadecimal. Two files with one digest are one.
	Digest string
}

// Log says what is logged, and how.
type Log struct {
	Level slog.Level
	JSON  bool
}

// Store is where budgets live. Exactly one field is set.
type Store struct {
	Memory *Memory
	Redis  *Redis
}

// Memory keeps budgets in this process.
type Memory struct {
	MaxSubjects int // live counters at once
}

// Redis keeps budgets on a Redis or Valkey server, or on several. Exactly one
// of Addresses, URL and Sentinel says where they are.
type Redis struct {
	Addresses        []string // host:port, or a redis:// or rediss:// URL without an account; several with Cluster only
	URL              Secret   // redis:// or rediss://, perhaps with an account; empty: none
	Sentinel         *Sentinel
	Cluster          bool
	Username         string
	Password         Secret
	TLS              TLS    // none: as the URLs say
	Prefix           string // of every key
	CommandTimeout   time.Duration
	CallerClock      bool // decide on this process's clock, not on the server's
	MaximumClockSkew time.Duration
	Breaker          Breaker
}

// Sentinel says who knows where the primary of a replicated server is.
type Sentinel struct {
	Master    string   // the name that it is watched by
	Addresses []string // host:port
	Username  string
	Password  Secret
}

// Breaker says when a store that fails is left alone for a while.
type Breaker struct {
	Off      bool
	Failures int           // in a row, until it opens
	Cooldown time.Duration // how long it stays open before it lets a probe through
}

// Identity says how callers are told apart.
type Identity struct {
	Keys            []subject.Key // empty: make one at start
	ActiveVersion   uint32
	TrustedProxies  []netip.Prefix
	ClientIPHeader  string
	APIKeyHeader    string
	PrincipalHeader string // empty: no principals
}

// Exempt is what is neither charged nor identified.
type Exempt struct {
	Networks []netip.Prefix
	Paths    []string // ServeMux patterns
}

// Route charges the requests that a ServeMux pattern matches.
type Route struct {
	ID      string
	Match   string
	Cost    int64
	Charges []Charge
}

// Charge spends a route's cost under one policy.
type Charge struct {
	Policy      string
	Subject     subject.Kind
	IPv6Prefix  int  // bits of an IPv6 address that are one client
	SkipMissing bool // pass over the charge, instead of refusing, when nobody is identified
	PerRoute    bool // a budget of its own on each route
}
