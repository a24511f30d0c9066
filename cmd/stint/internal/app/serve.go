package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds on what a connection may hold on to. There is none on how long a
// request or a response may take: streams last, and the upstream knows.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	adminTimeout      = 30 * time.Second
)

// serve opens the listeners, serves until ctx is done, and drains.
func (s *server) serve(ctx context.Context) error {
	limited, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	admin, err := net.Listen("tcp", s.config.AdminListen)
	if err != nil {
		_ = limited.Close()
		return fmt.Errorf("admin.listen: %w", err)
	}
	base, cut := context.WithCancel(context.Background())
	defer cut()
	var inFlight sync.WaitGroup
	public := s.public(base, &inFlight)
	operators := s.operators()

	var background sync.WaitGroup
	defer background.Wait()
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	background.Go(func() { s.readiness.watch(watching, s.store, s.options.Logger) })
	failed := make(chan error, 2)
	background.Go(func() { failed <- public.Serve(limited) })
	background.Go(func() { failed <- operators.Serve(admin) })
	defer operators.Close()
	defer public.Close()

	s.started(Addresses{Listen: limited.Addr().String(), Admin: admin.Addr().String()})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		s.drain(public, &inFlight)
		return nil
	}
}

func (s *server) started(a Addresses) {
	s.readiness.serving.Store(true)
	s.options.Logger.Info("serving", "listen", a.Listen, "admin", a.Admin, "version", s.options.Version, "config", s.config.Digest)
	if s.options.Started != nil {
		s.options.Started(a)
	}
}

// drain stops accepting and waits for requests in flight, upgraded connections
// included. What has not ended by the timeout is cut off by the caller.
func (s *server) drain(public *http.Server, inFlight *sync.WaitGroup) {
	s.readiness.serving.Store(false)
	s.options.Logger.Info("draining", "timeout", s.config.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	if err := public.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.options.Logger.Warn("requests were cut off: drain_timeout is over")
		return
	}
	ended := make(chan struct{})
	go func() {
		inFlight.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		s.options.Logger.Info("drained")
	case <-ctx.Done():
		s.options.Logger.Warn("upgraded connections were cut off: drain_timeout is over")
	}
}

// public is the server of what is limited. Its requests end with base.
func (s *server) public(base context.Context, inFlight *sync.WaitGroup) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inFlight.Add(1)
			defer inFlight.Done()
			s.limited.ServeHTTP(w, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
	}
}

func (s *server) operators() *http.Server {
	return &http.Server{
		Handler:           s.admin,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       adminTimeout,
		WriteTimeout:      adminTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
	}
}
