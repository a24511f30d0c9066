package stint

import (
	"slices"
	"strconv"
	"time"
	"unique"
)

// Bounds and defaults of a policy.
const (
	MaxLimits = 8 // limits of one policy

	DefaultMaximumClockRegression = 5 * time.Second
	DefaultCleanupGrace           = 30 * time.Second
	DefaultDedupTTL               = 5 * time.Second
	DefaultDedupMaxEntries        = 256
	DefaultDedupMaxBytes          = 64 << 10

	// MaxInteger bounds every quantity: above it a double, the only number
	// of Redis's Lua, no longer tells neighbouring integers apart.
	MaxInteger = 1<<53 - 1

	// MaxDuration bounds every duration of a policy, so that an instant plus
	// a few of them stays below MaxInteger.
	MaxDuration = 100 * 365 * 24 * time.Hour
)

// layoutVersion is the first letter of every shape. It changes when the bytes
// of a stored state change their meaning; two releases with different layouts
// then run side by side on different keys.
const layoutVersion = "1"

// Mode says whether a policy refuses or only reports.
type Mode uint8

const (
	// Enforce refuses what does not pass.
	Enforce Mode = iota
	// Shadow counts and reports, and never refuses.
	Shadow
)

// String returns the name that configuration files use.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}

// Dedup bounds the records that make a caller's repeated [EvaluationID]
// harmless. The zero value is on, with the defaults. Records are kept for
// each counter; an admission that cannot be recorded is refused.
type Dedup struct {
	Off        bool
	TTL        time.Duration // how long an id is remembered; 0: 5s
	MaxEntries int           // ids remembered at once, for each counter; 0: 256
	MaxBytes   int           // bytes of them; 0: 64 KiB
}

// Policy is a named set of limits, decided together on one counter for each
// subject. Write one as a literal; [New] or [NewPolicy] validates, copies and
// freezes it. A frozen policy is safe for concurrent use.
type Policy struct {
	ID       string // ^[A-Za-z][A-Za-z0-9._-]{0,31}$
	Revision uint32 // a new revision starts every budget afresh
	Limits   []Limit

	// MaximumCost is the most that one request may spend, at most the
	// smallest quota, which is also its default. Every RetryAfter is finite
	// because no cost above a quota is ever evaluated.
	MaximumCost int64

	// MaximumClockRegression is how far a clock may stand behind the newest
	// instant a counter has seen before the evaluation is refused. 0: 5s.
	MaximumClockRegression time.Duration

	// CleanupGrace is how much longer than needed a counter is kept. 0: 30s.
	CleanupGrace time.Duration

	Dedup Dedup
	Mode  Mode

	// What NewPolicy derives.
	key   string
	tag   unique.Handle[string]
	terms []Terms
	names []string
}

// Frozen reports whether p came from [NewPolicy] or a [Limiter]. Stores accept
// frozen policies only.
func (p *Policy) Frozen() bool { return p.terms != nil }

// Key is "<id>:<revision>:<shape>": what a counter's identity takes from its
// policy. Two policies with one key share counters.
func (p *Policy) Key() string { return p.key }

// Tag is Key as a word: cheap to compare and to hash.
func (p *Policy) Tag() unique.Handle[string] { return p.tag }

// Terms returns the limits in canonical order, the order of stored state. The
// caller must not change them.
func (p *Policy) Terms() []Terms { return p.terms }

// LimitName is what response fields call limit i: its own name; or the
// policy's id where it is the only limit; or "<id>-<i+1>".
func (p *Policy) LimitName(i int) string { return p.names[i] }

// NewPolicy validates p, fills in its defaults, and returns a frozen copy. The
// error is an [*InvalidPolicyError] with every problem found.
func NewPolicy(p Policy) (*Policy, error) {
	problems := p.validate()
	if len(problems) > 0 {
		return nil, &InvalidPolicyError{Policy: p.ID, Problems: problems}
	}
	p.Limits = slices.Clone(p.Limits)
	p.terms = make([]Terms, len(p.Limits))
	p.names = make([]string, len(p.Limits))
	smallest := int64(MaxInteger)
	for i, l := range p.Limits {
		p.terms[i] = l.terms()
		p.terms[i].Index = i
		p.names[i] = limitName(p.ID, l, i, len(p.Limits))
		smallest = min(smallest, p.terms[i].Quota)
	}
	slices.SortFunc(p.terms, compareTerms)
	shape := layoutVersion
	for i, t := range p.terms {
		if i > 0 {
			shape += "-"
		}
		shape += t.shape()
	}
	p.key = p.ID + ":" + strconv.FormatUint(uint64(p.Revision), 10) + ":" + shape
	p.tag = unique.Make(p.key)
	p.MaximumCost = orDefault(p.MaximumCost, smallest)
	p.MaximumClockRegression = orDefault(p.MaximumClockRegression, DefaultMaximumClockRegression)
	p.CleanupGrace = orDefault(p.CleanupGrace, DefaultCleanupGrace)
	p.Dedup.TTL = orDefault(p.Dedup.TTL, DefaultDedupTTL)
	p.Dedup.MaxEntries = orDefault(p.Dedup.MaxEntries, DefaultDedupMaxEntries)
	p.Dedup.MaxBytes = orDefault(p.Dedup.MaxBytes, DefaultDedupMaxBytes)
	return &p, nil
}

func orDefault[T ~int | ~int64](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}

func limitName(policy string, l Limit, i, n int) string {
	switch {
	case l.name() != "":
		return l.name()
	case n == 1:
		return policy
	}
	return policy + "-" + strconv.Itoa(i+1)
}
