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
		return &store{Store: memstore.New(memstore.Config{MaxSubjects: c.Memory.MaxSubjects})}, nil
	}
	r := c.Redis
	clock := redisstore.ServerClock
	if r.CallerClock {
		clock = redisstore.CallerClock
	}
	s, err := redisstore.Open(redisstore.Config{
		Addresses:        r.Addresses,
		Username:         r.Username,
		Password:         r.Password.Reveal(),
		Prefix:           r.Prefix,
		CommandTimeout:   r.CommandTimeout,
		Clock:            clock,
		MaximumClockSkew: r.MaximumClockSkew,
	})
	if err != nil {
		return nil, fmt.Errorf("store.redis: %w", err)
	}
	return &store{Store: s, ping: s.Ping, timeout: r.CommandTimeout, end: s.Close}, nil
}
