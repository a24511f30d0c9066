package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// pingInterval bounds how long after the store's return a server is not
	// ready yet.
	pingInterval = 250 * time.Millisecond

	// pingFailures in a row make a store unreachable: a single slow answer
	// should take no server out of service.
	pingFailures = 3
)

// readiness is what /readyz tells. It is safe for concurrent use.
type readiness struct {
	serving   atomic.Bool // both listeners accept connections, and none drains
	reachable atomic.Bool // the store answers
}

func newReadiness(s *store) *readiness {
	r := &readiness{}
	r.reachable.Store(s.ping == nil)
	return r
}

// obstacles returns why the server is not ready; empty: it is.
func (r *readiness) obstacles() []string {
	var all []string
	if !r.serving.Load() {
		all = append(all, "not serving: starting or draining")
	}
	if !r.reachable.Load() {
		all = append(all, "the store is not reachable")
	}
	return all
}

// watch keeps reachable up to date until ctx is done.
func (r *readiness) watch(ctx context.Context, s *store, log *slog.Logger) {
	if s.ping == nil {
		return
	}
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	failures := 0
	for first := true; ; first = false {
		err := ping(ctx, s)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			if !r.reachable.Swap(true) {
				log.Info("the store is reachable")
			}
		default:
			failures++
			gone := failures >= pingFailures && r.reachable.Swap(false)
			if gone || first {
				log.Error("the store is not reachable: nothing is admitted", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func ping(ctx context.Context, s *store) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.ping(ctx)
}
