package redisstore

import (
	"context"
	"time"
)

// Status is how much a Finding matters.
type Status uint8

const (
	StatusPass Status = iota + 1 // as it should be
	StatusInfo                   // a choice that can be made either way
	StatusWarn                   // works, and somebody should look; or could not be looked at
	StatusFail                   // evaluations fail, or limits do not hold
)

// String returns PASS, INFO, WARN or FAIL.
func (s Status) String() string {
	names := [...]string{StatusPass: "PASS", StatusInfo: "INFO", StatusWarn: "WARN", StatusFail: "FAIL"}
	if int(s) >= len(names) || s == 0 {
		return "UNKNOWN"
	}
	return names[s]
}

// Finding is what one check saw. It holds no password.
type Finding struct {
	Check  string // a word that stays the same over releases, such as "eviction"
	Node   string // host:port; empty when the check is about all servers together
	Status Status
	Detail string // what was seen
	Advice string // what to do; empty when there is nothing to do
}

// InspectOption changes how Inspect works.
type InspectOption func(*inspection)

// WithInspector looks at what evaluations do not need under an account of its
// own, the InspectionAccount of an ACL file. Without it Inspect asks under the
// configured account, and what that may not ask is StatusWarn.
func WithInspector(username, password string) InspectOption {
	return func(in *inspection) { in.username, in.password = username, password }
}

// WithHostClock replaces time.Now as this host's clock.
func WithHostClock(now func() time.Time) InspectOption {
	return func(in *inspection) { in.now = now }
}

// Inspect looks at the servers that c describes as evaluations would meet
// them, and at what would make limits fail on them. It takes seconds at most
// on a server that answers.
//
// It writes nothing: it peeks, asks, and tries calls that are refused for
// their arguments if not for the account. A try that the account may not make
// leaves a line in the server's ACL LOG. The first peek loads a script, as the
// first evaluation would.
//
// The error names every problem of c. Whatever is wrong with the servers is a
// Finding.
func Inspect(ctx context.Context, c Config, options ...InspectOption) ([]Finding, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	silenceClient()
	in := &inspection{config: c, username: c.Username, password: c.Password, now: time.Now}
	for _, o := range options {
		o(in)
	}
	in.run(ctx)
	return in.findings, nil
}

// inspection is one run of Inspect.
type inspection struct {
	config             Config
	username, password string // of the inspection account
	now                func() time.Time
	findings           []Finding
}

func (in *inspection) report(f Finding) { in.findings = append(in.findings, f) }

// run looks at the servers one by one, and then at what they do together.
func (in *inspection) run(ctx context.Context) {
	primaries := in.primaries(ctx)
	defer func() {
		for _, p := range primaries {
			p.close()
		}
	}()
	usable := len(primaries) > 0
	for _, p := range primaries {
		usable = p.inspect(ctx) && usable
	}
	in.spread(primaries)
	if usable {
		in.peek(ctx)
	}
}
