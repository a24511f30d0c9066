package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinel describes how to find the primary of a replicated server. The
// Sentinels' own account is separate from the server's; Config.TLS is for both.
type Sentinel struct {
	Master    string   // the name that the Sentinels watch it by
	Addresses []string // host:port of each Sentinel; one that answers is enough
	Username  string
	Password  string // never logged, never part of an error
}

// watchEvery is how often the Sentinels are asked whether the primary has
// moved while connections to the old one still work.
const watchEvery = 500 * time.Millisecond

// sentinels finds the primary. It is safe for concurrent use.
type sentinels struct {
	master  string
	clients []*redis.SentinelClient

	mu     sync.Mutex
	newest int // which Sentinel answered last
}

func newSentinels(c Config) *sentinels {
	s := &sentinels{master: c.Sentinel.Master}
	for _, addr := range c.Sentinel.Addresses {
		s.clients = append(s.clients, redis.NewSentinelClient(&redis.Options{
			Addr: addr, Username: c.Sentinel.Username, Password: c.Sentinel.Password,
			Dialer:      func(ctx context.Context, _, addr string) (net.Conn, error) { return c.connect(ctx, addr) },
			DialTimeout: c.CommandTimeout, DialerRetries: 1,
			ReadTimeout: c.CommandTimeout, WriteTimeout: c.CommandTimeout,
			ContextTimeoutEnabled: true, MaxRetries: -1,
			PoolSize: failedDials, MaxActiveConns: 2, PoolTimeout: c.CommandTimeout,
			Protocol: 2, DisableIdentity: true,
		}))
	}
	return s
}

// primary asks the Sentinels in turn, beginning with the one that answered
// last, and returns host:port.
func (s *sentinels) primary(ctx context.Context) (string, error) {
	s.mu.Lock()
	first := s.newest
	s.mu.Unlock()
	var errs []error
	for i := range s.clients {
		n := (first + i) % len(s.clients)
		found, err := s.clients[n].GetMasterAddrByName(ctx, s.master).Result()
		switch {
		case err == nil && len(found) == 2:
			s.mu.Lock()
			s.newest = n
			s.mu.Unlock()
			return net.JoinHostPort(found[0], found[1]), nil
		case errors.Is(err, redis.Nil):
			err = fmt.Errorf("knows no primary named %q", s.master)
		case err == nil:
			err = fmt.Errorf("answered %q", found)
		}
		errs = append(errs, fmt.Errorf("sentinel %d: %w", n+1, err))
	}
	return "", errors.Join(errs...)
}

// watch calls moved with the primary's address every so often, until ctx ends.
func (s *sentinels) watch(ctx context.Context, moved func(addr string)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if addr, err := s.primary(ctx); err == nil {
			moved(addr)
		}
	}
}

func (s *sentinels) close() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
