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
// errStore and errNeither. given is what the caller left until its deadline.
func (s *Store) blame(ctx context.Context, deadline time.Time, given time.Duration, err error) error {
	if err == nil {
		return nil
	}
	switch r := stint.ReasonOf(err); {
	case r == stint.AdmissionRejected:
		return errNeither
	case r == stint.ClockUnsafe || r.Kind() == stint.Incompatible:
		return nil
	}
	switch cancelled := ctx.Err(); {
	case errors.Is(cancelled, context.Canceled):
		return errNeither
	case given < s.config.Patience && (cancelled != nil || !time.Now().Before(deadline)):
		return errNeither
	}
	return errStore
}
