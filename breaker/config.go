package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/stintlimit/stint"
)

// Defaults of a Config.
const (
	DefaultFailures = 5
	DefaultSpan     = 100 * time.Millisecond
	DefaultCooldown = 500 * time.Millisecond
	DefaultProbes   = 1
	DefaultPatience = 10 * time.Millisecond
)

// Config says when a breaker opens and closes. The zero Config is good.
type Config struct {
	// Failures is how many calls in a row fail before it opens: 1 to
	// 1,000,000. 0: 5.
	Failures int

	// Span is the least time from the first of these failures to the newest:
	// 1ns to an hour. 0: 100ms.
	Span time.Duration

	// Cooldown is how long it stays open before it lets a probe through: 1ms
	// to an hour. 0: 500ms.
	Cooldown time.Duration

	// Probes is how many calls are let through then, and must all succeed: 1
	// to 1000. 0: 1.
	Probes int

	// Patience is how much time a caller must leave the store for a deadline
	// that passes to be the store's failure: 1ns to an hour. 0: 10ms.
	Patience time.Duration
}

// withDefaults validates c and fills it in. The error names every problem.
func (c Config) withDefaults() (Config, error) {
	var problems []error
	problems = append(problems,
		fill("Failures", &c.Failures, DefaultFailures, 1, 1_000_000),
		fill("Span", &c.Span, DefaultSpan, 1, time.Hour),
		fill("Cooldown", &c.Cooldown, DefaultCooldown, time.Millisecond, time.Hour),
		fill("Probes", &c.Probes, DefaultProbes, 1, 1000),
		fill("Patience", &c.Patience, DefaultPatience, 1, time.Hour),
	)
	return c, errors.Join(problems...)
}

// fill replaces 0 by the fallback, and refuses what is out of range.
func fill[T int | time.Duration](field string, v *T, fallback, least, most T) error {
	if *v == 0 {
		*v = fallback
	}
	if *v < least || *v > most {
		return fmt.Errorf("breaker: %s: %v is out of range: %v to %v", field, *v, least, most)
	}
	return nil
}

// State is where a breaker stands.
type State string

// The states. Their text is stable.
const (
	Closed   State = "closed"    // calls go to the store
	Open     State = "open"      // calls are refused
	HalfOpen State = "half-open" // probes go to the store, other calls are refused
)

// States returns all states.
func States() []State { return []State{Closed, HalfOpen, Open} }

// An Option changes the behaviour of a [Store].
type Option func(*Store)

// WithOnChange calls changed whenever the state changes. Calls are in order,
// and everybody who uses the store waits for them: changed must be fast, and
// must not use the store itself.
func WithOnChange(changed func(from, to State)) Option {
	return func(s *Store) { s.changed = changed }
}

// ErrOpen is the cause of a refusal by a breaker.
var ErrOpen = errors.New("circuit open: the store kept failing and is not asked; nothing was sent")

// errRefused is shared by all refusals: an outage allocates nothing.
var errRefused = &stint.Error{Reason: stint.AdmissionRejected, Cause: ErrOpen}
