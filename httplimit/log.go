package httplimit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stintlimit/stint"
)

// intervalLog writes at most one line an interval: an outage fails every
// request, and one line says as much as a million.
type intervalLog struct {
	logger   *slog.Logger
	interval time.Duration
	start    time.Time
	next     atomic.Int64 // when a line may be written, since start
	unlogged atomic.Int64
}

func newIntervalLog(l *slog.Logger, interval time.Duration) *intervalLog {
	return &intervalLog{logger: l, interval: interval, start: time.Now()}
}

// failed logs an evaluation without a decision. Neither the error nor the
// route's id holds an identity.
func (l *intervalLog) failed(ctx context.Context, route string, err error) {
	now := int64(time.Since(l.start))
	next := l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(l.interval)) {
		l.unlogged.Add(1)
		return
	}
	reason := stint.ReasonOf(err)
	l.logger.LogAttrs(ctx, slog.LevelError, "rate limit not decided",
		slog.String("route", route),
		slog.String("kind", string(reason.Kind())),
		slog.String("reason", string(reason)),
		slog.String("error", err.Error()),
		slog.Int64("unlogged", l.unlogged.Swap(0)))
}
