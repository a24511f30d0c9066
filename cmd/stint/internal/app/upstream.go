package app

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// upstreamLogInterval is how often a failing upstream is logged at most: an
// outage fails every request.
const upstreamLogInterval = 10 * time.Second

// upstreamLog logs requests that the upstream did not answer, sparsely.
type upstreamLog struct {
	logger  *slog.Logger
	start   time.Time
	next    atomic.Int64 // when a line may be written, since start
	omitted atomic.Int64
}

func newUpstreamLog(l *slog.Logger) *upstreamLog {
	return &upstreamLog{logger: l, start: time.Now()}
}

func (l *upstreamLog) failed(err error) {
	now, next := int64(time.Since(l.start)), l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(upstreamLogInterval)) {
		l.omitted.Add(1)
		return
	}
	l.logger.Error("the upstream did not answer", "error", err, "unlogged", l.omitted.Swap(0))
}
