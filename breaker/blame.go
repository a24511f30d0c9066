package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/stintlimit/stint"
)

// What the circuit is told of a call that was not answered.
var (
	errStore   = errors.New("breaker: a failure of the store")
	errNeither = errors.New("breaker: neither a failure nor a success of the store")
)

// blame says what a result means for the store: nil is a success, and see
// errStore and errNeither. The store had from asked to deadline, or to that of
// the context.
func (s *Store) blame(ctx context.Context, asked, deadline time.Time, err error) error {
	if err == nil {
		return nil
	}
	switch r := stint.ReasonOf(err); {
	case r == stint.AdmissionRejected:
		return errNeither
	case r == stint.ClockUnsafe || r.Kind() == stint.Incompatible:
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return errNeither
	}
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if deadline.Sub(asked) < s.config.Patience && !time.Now().Before(deadline) {
		return errNeither
	}
	return errStore
}
