package app

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// sparseInterval is how often one kind of failure is logged at most.
const sparseInterval = 10 * time.Second

// sparseLog logs one kind of failure, at most once an interval, since an
// outage fails every request.
type sparseLog struct {
	logger  *slog.Logger
	message string
	start   time.Time
	next    atomic.Int64 // when a line may be written, since start
	omitted atomic.Int64
}

func newSparseLog(l *slog.Logger, message string) *sparseLog {
	return &sparseLog{logger: l, message: message, start: time.Now()}
}

func (s *sparseLog) error(err error) {
	now, next := int64(time.Since(s.start)), s.next.Load()
	if now < next || !s.next.CompareAndSwap(next, now+int64(sparseInterval)) {
		s.omitted.Add(1)
		return
	}
	s.logger.Error(s.message, "error", err, "unlogged", s.omitted.Swap(0))
}
