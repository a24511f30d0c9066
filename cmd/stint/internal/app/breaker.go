package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/cmd/stint/internal/telemetry"
)

// breakBefore puts a breaker before the store, if the configuration asks for
// one. Pings go past it.
func (s *store) breakBefore(c *config.Config, metrics *telemetry.Telemetry, log *slog.Logger) error {
	if c.Store.Redis == nil || c.Store.Redis.Breaker.Off {
		return nil
	}
	wanted := c.Store.Redis.Breaker
	var opened func()
	b, err := breaker.New(s.Store, breaker.Config{
		Failures: wanted.Failures,
		Cooldown: wanted.Cooldown,
		Patience: fairTime(c.Deadline),
	}, breaker.WithOnChange(func(from, to breaker.State) {
		switch {
		case from == breaker.Closed:
			opened()
			log.Warn("the store keeps failing: the breaker is open, and refuses without asking it", "cooldown", wanted.Cooldown)
		case to == breaker.Closed:
			log.Info("the store answers again: the breaker is closed")
		}
	}))
	if err != nil {
		return fmt.Errorf("store.redis.breaker: %w", err)
	}
	var states []string
	for _, state := range breaker.States() {
		states = append(states, string(state))
	}
	opened = metrics.Breaker(states, func() string { return string(b.State()) })
	s.Store = b
	return nil
}

// fairTime is how much of an evaluation's time must be left when it reaches
// the breaker for a timeout to be the store's failure. Where the configuration
// leaves no evaluation as much as a breaker asks for by default, timeouts must
// count all the same.
func fairTime(deadline time.Duration) time.Duration {
	return min(breaker.DefaultPatience, deadline/2)
}
