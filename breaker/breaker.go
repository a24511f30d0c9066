package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/stintlimit/stint"
)

// Store is a breaker and the store behind it. It is safe for concurrent use.
type Store struct {
	behind   stint.Store
	config   Config
	changed  func(from, to State) // may be nil
	circuit  *gobreaker.CircuitBreaker[struct{}]
	rowBegan time.Time // of the failures in a row; only for callbacks, which the circuit calls one at a time
}

var _ stint.Store = (*Store)(nil)

// New returns a breaker before a store. The error names every problem of c.
func New(behind stint.Store, c Config, options ...Option) (*Store, error) {
	c, err := c.withDefaults()
	if behind == nil {
		err = errors.Join(errors.New("breaker: the store is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{behind: behind, config: c}
	for _, o := range options {
		o(s)
	}
	s.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   uint32(c.Probes),
		Timeout:       c.Cooldown,
		IsExcluded:    func(err error) bool { return errors.Is(err, errNeither) },
		IsSuccessful:  s.successful,
		ReadyToTrip:   s.opens,
		OnStateChange: s.onChange,
	})
	return s, nil
}

// State returns where the breaker stands. One that is open becomes half-open
// when somebody asks, be it here.
func (s *Store) State() State { return state(s.circuit.State()) }

// Decide implements stint.Store. It refuses, or returns what the store behind
// it returns.
func (s *Store) Decide(ctx context.Context, g stint.Group) (v stint.Verdict, err error) {
	asked := time.Now()
	// The circuit learns only whom to blame. The answer goes past it, so that
	// the closure stays on the stack.
	_, refusal := s.circuit.Execute(func() (struct{}, error) {
		v, err = s.behind.Decide(ctx, g)
		return struct{}{}, s.blame(ctx, asked, g.Deadline, err)
	})
	if errors.Is(refusal, gobreaker.ErrOpenState) || errors.Is(refusal, gobreaker.ErrTooManyRequests) {
		return stint.Verdict{}, errRefused
	}
	return v, err
}

// successful is asked about each result that is not excluded. It notes when a
// row of failures began.
func (s *Store) successful(blame error) bool {
	switch {
	case blame == nil:
		s.rowBegan = time.Time{}
	case s.rowBegan.IsZero():
		s.rowBegan = time.Now()
	}
	return blame == nil
}

// opens is asked after each failure while the breaker is closed.
func (s *Store) opens(c gobreaker.Counts) bool {
	return int64(c.ConsecutiveFailures) >= int64(s.config.Failures) && time.Since(s.rowBegan) >= s.config.Span
}

func (s *Store) onChange(_ string, from, to gobreaker.State) {
	if s.changed != nil {
		s.changed(state(from), state(to))
	}
}

func state(s gobreaker.State) State {
	switch s {
	case gobreaker.StateClosed:
		return Closed
	case gobreaker.StateHalfOpen:
		return HalfOpen
	}
	return Open
}
