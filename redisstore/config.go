package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/stintlimit/stint"
)

// Clock says whose clock decides.
type Clock uint8

const (
	// ServerClock: the server's TIME, read once a script. The callers' clocks
	// do not matter.
	ServerClock Clock = iota
	// CallerClock: Group.Now, refused as stint.ClockUnsafe when it stands
	// further than MaximumClockSkew from the server's TIME.
	CallerClock
)

// SkewUnchecked as MaximumClockSkew lets a caller's clock stand anywhere. One
// fast clock then spoils a counter for as long as it has traffic. It is for
// tests that choose their own time.
const SkewUnchecked time.Duration = -1

// Defaults of a Config.
const (
	DefaultPrefix           = "stint"
	DefaultCommandTimeout   = 250 * time.Millisecond
	DefaultMaximumClockSkew = 2 * time.Second
	DefaultSenders          = 4
	DefaultQueue            = 4096
)

// Config describes the servers and how to use them. Only Addresses, or
// Sentinel, is required.
type Config struct {
	// Addresses is one server, or some nodes of a Cluster: each is host:port,
	// or a redis:// or rediss:// URL with the account.
	Addresses []string

	// Cluster says that Addresses are some nodes of a Cluster, of which one
	// that answers is enough to find the others.
	Cluster bool

	// Sentinel finds the primary of a replicated server, instead of Addresses.
	Sentinel *Sentinel

	Username string // ACL user; empty for the default user
	Password string // never logged, never part of an error

	// TLS secures every connection, to Sentinels too, if it is set. Its
	// ServerName, or else the host that is dialled, is what the certificate
	// must carry.
	TLS *tls.Config

	// Prefix begins every key: a letter or digit, then at most 31 letters,
	// digits, '.', '_' or '-'. Empty: "stint".
	Prefix string

	// CommandTimeout bounds each attempt, from taking a connection to the
	// last byte of the reply; the evaluation's deadline can only shorten it.
	// 0: 250ms.
	CommandTimeout time.Duration

	Clock Clock

	// MaximumClockSkew is how far a caller's clock may stand from the
	// server's. Used with CallerClock only. 0: 2s.
	MaximumClockSkew time.Duration

	// Senders is the number of connections, to each primary of a Cluster, and
	// each has one batch under way. The fewer they are, the more evaluations
	// share a round trip under load. 0: 4.
	Senders int

	// Queue is how many evaluations may wait for a sender; one more is
	// refused as stint.AdmissionRejected. 0: 4096.
	Queue int
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// withDefaults validates c and fills it in. The error names every problem.
func (c Config) withDefaults() (Config, error) {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("redisstore: %s: %s", field, fmt.Sprintf(format, args...)))
	}
	c.locateServers(bad)
	if c.Username != "" && c.Password == "" {
		bad("Password", "is required with a Username")
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if !prefixPattern.MatchString(c.Prefix) {
		bad("Prefix", "%q is not a prefix: a letter or digit, then at most 31 letters, digits, '.', '_' or '-'", c.Prefix)
	}
	c.CommandTimeout = orDefault(c.CommandTimeout, DefaultCommandTimeout)
	if c.CommandTimeout < time.Millisecond {
		bad("CommandTimeout", "%v is out of range: at least 1ms", c.CommandTimeout)
	}
	if c.Clock > CallerClock {
		bad("Clock", "%d is no clock: ServerClock or CallerClock", c.Clock)
	}
	c.MaximumClockSkew = orDefault(c.MaximumClockSkew, DefaultMaximumClockSkew)
	if s := c.MaximumClockSkew; s != SkewUnchecked && (s < time.Millisecond || s > stint.MaxDuration) {
		bad("MaximumClockSkew", "%v is out of range: 1ms to %v", s, stint.MaxDuration)
	}
	c.Senders = orDefault(c.Senders, DefaultSenders)
	if c.Senders < 1 || c.Senders > 1024 {
		bad("Senders", "%d is out of range: 1 to 1024", c.Senders)
	}
	c.Queue = orDefault(c.Queue, DefaultQueue)
	if c.Queue < 1 || c.Queue > 1<<20 {
		bad("Queue", "%d is out of range: 1 to %d", c.Queue, 1<<20)
	}
	return c, errors.Join(problems...)
}

func orDefault[T ~int | ~int64](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}
