package app

import (
	"context"
	"fmt"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/cmd/stint/internal/config"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/redisstore"
)

// store is a stint.Store with what a server needs besides.
type store struct {
	stint.Store
	ping    func(context.Context) error // nil: it is always reachable
	timeout time.Duration               // of a ping
	end     func() error

	held  func() int // how many counters there are; nil: nobody knows
	limit int        // of held
}

// Close ends the store. Decisions after it fail.
func (s *store) Close() error {
	if s.end == nil {
		return nil
	}
	return s.end()
}

// openStore connects to nothing: a server that is down is no error here. There
// is no fallback from one store to the other.
func openStore(c config.Store) (*store, error) {
	if c.Redis == nil {
		m := memstore.New(memstore.Config{MaxSubjects: c.Memory.MaxSubjects})
		return &store{Store: m, held: m.Len, limit: c.Memory.MaxSubjects}, nil
	}
	s, err := redisstore.Open(RedisConfig(c.Redis))
	if err != nil {
		return nil, fmt.Errorf("store.redis: %w", err)
	}
	return &store{Store: s, ping: s.Ping, timeout: c.Redis.CommandTimeout, end: s.Close}, nil
}

// RedisConfig is what package redisstore is told of the servers that r
// describes. It holds the passwords, so it is not to be logged.
func RedisConfig(r *config.Redis) redisstore.Config {
	c := redisstore.Config{
		Addresses:        r.Addresses,
		Cluster:          r.Cluster,
		Username:         r.Username,
		Password:         r.Password.Reveal(),
		TLS:              r.TLS.Client(),
		Prefix:           r.Prefix,
		CommandTimeout:   r.CommandTimeout,
		Clock:            redisstore.ServerClock,
		MaximumClockSkew: r.MaximumClockSkew,
	}
	if u := r.URL.Reveal(); u != "" {
		c.Addresses = []string{u}
	}
	if s := r.Sentinel; s != nil {
		c.Sentinel = &redisstore.Sentinel{Master: s.Master, Addresses: s.Addresses, Username: s.Username, Password: s.Password.Reveal()}
	}
	if r.CallerClock {
		c.Clock = redisstore.CallerClock
	}
	return c
}
