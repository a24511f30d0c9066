// Package app builds a server from its configuration and runs it.
//
// Everything that can fail is done before the first listener opens. The
// package knows every other room of the server; none of them knows it. It
// parses no flags and handles no signals: its caller does.
package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/cmd/stint/internal/gateway"
	"github.com/stintlimit/stint/cmd/stint/internal/telemetry"
)

// Options are what the program around a server decides.
type Options struct {
	Version string
	Logger  *slog.Logger // nil: nothing is logged

	// Started is called once, when both listeners accept connections.
	Started func(Addresses)
}

// Addresses are where a server listens, also if it was asked for port 0.
type Addresses struct{ Listen, Admin string }

// NewLogger returns the logger that a configuration asks for.
func NewLogger(w io.Writer, c config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level}
	if c.JSON {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// Run serves until ctx is done, then drains and returns nil; or returns why it
// could not.
func Run(ctx context.Context, c *config.Config, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := build(c, o)
	if err != nil {
		return err
	}
	defer s.close()
	return s.serve(ctx)
}

// server is a configuration made ready to serve.
type server struct {
	config    *config.Config
	options   Options
	store     *store
	proxy     *gateway.Proxy // nil without an upstream
	limited   http.Handler
	admin     http.Handler
	readiness *readiness
}

func build(c *config.Config, o Options) (*server, error) {
	opened, err := openStore(c.Store)
	if err != nil {
		return nil, err
	}
	s := &server{config: c, options: o, store: opened, readiness: newReadiness(opened)}
	if err := s.assemble(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) assemble() error {
	c := s.config
	var ids []string
	for _, p := range c.Policies {
		ids = append(ids, p.ID)
	}
	metrics := telemetry.New(ids, s.options.Version, c.Digest)
	metrics.Reachable(s.readiness.reachable.Load)
	if s.store.held != nil {
		metrics.Subjects(s.store.held, s.store.limit)
	}
	if err := s.store.breakBefore(c, metrics, s.options.Logger); err != nil {
		return err
	}
	limiter, err := stint.New(s.store, c.Policies, stint.WithBudget(c.Deadline), stint.WithObserver(metrics.Observe))
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	behind, err := s.behind()
	if err != nil {
		return err
	}
	s.limited, err = s.limit(limiter, metrics, behind)
	if err != nil {
		return err
	}
	s.admin = adminHandler(s.readiness, metrics.Handler())
	return nil
}

func (s *server) close() {
	if s.proxy != nil {
		s.proxy.Close()
	}
	if err := s.store.Close(); err != nil {
		s.options.Logger.Warn("closing the store", "error", err)
	}
}
