package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

// Store decides on a Redis or Valkey server. It is safe for concurrent use.
type Store struct {
	lane    *lane
	senders []*sender
	probe   *redis.Client
}

var _ stint.Store = (*Store)(nil)

// Open returns a store on the server that c describes. It opens no connection:
// a server that is down shows in Ping and in evaluations, and is used as soon
// as it answers. The error names every problem of c.
func Open(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	silenceClient()
	e := &encoder{scripts: newScripts(), prefix: c.Prefix, clock: c.Clock, skew: stint.MaxInteger}
	if c.Clock == CallerClock && c.MaximumClockSkew != SkewUnchecked {
		e.skew = c.MaximumClockSkew.Milliseconds()
	}
	clock := newServerClock()
	s := &Store{probe: newClient(c, new(wire), clock)}
	for range c.Senders {
		s.senders = append(s.senders, newSender(c, e, clock))
	}
	s.lane = newLane(c.Queue, s.senders)
	return s, nil
}

// silenceClient keeps the client library from writing to standard error: what
// it has to say reaches the caller as an error.
var silenceClient = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Decide implements stint.Store.
func (s *Store) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	return s.lane.decide(ctx, g)
}

// Ping reports whether the server can be used: reachable, of a version that
// will do, and willing to talk to the account.
func (s *Store) Ping(ctx context.Context) error { return s.probe.Ping(ctx).Err() }

// Close answers what still waits with stint.AdmissionRejected and closes every
// connection: what is under way ends as the loss of a connection does.
// Evaluations after it are refused. Closing twice is harmless.
func (s *Store) Close() error {
	s.lane.close()
	errs := []error{s.probe.Close()}
	for _, sender := range s.senders {
		errs = append(errs, sender.client.Close())
	}
	s.lane.drain()
	for i, err := range errs {
		if errors.Is(err, redis.ErrClosed) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}
