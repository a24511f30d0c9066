package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

// Store decides on a Redis or Valkey server, or on several. It is safe for
// concurrent use.
type Store struct {
	topology topology
	stop     context.CancelFunc
	watchers sync.WaitGroup
}

// topology is the servers behind a store: one, wherever it is, or a Cluster.
type topology interface {
	decide(ctx context.Context, g stint.Group) (stint.Verdict, error)
	ping(ctx context.Context) error
	close() error
}

var _ stint.Store = (*Store)(nil)

// Open returns a store on the servers that c describes. It waits for no
// connection: a server that is down shows in Ping and in evaluations, and is
// used as soon as it answers. The error names every problem of c.
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
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{stop: stop}
	switch {
	case c.Sentinel != nil:
		r := newReplicated(c, e)
		s.topology = r
		s.watchers.Go(func() { r.sentinels.watch(ctx, r.leave) })
	case c.Cluster:
		cl := newCluster(c, e)
		s.topology = cl
		s.watchers.Go(func() { cl.watch(ctx) })
	default:
		s.topology = standalone{newNode(c, e, at(c.Addresses[0]))}
	}
	return s, nil
}

// silenceClient keeps the client library from writing to standard error: what
// it has to say reaches the caller as an error.
var silenceClient = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Decide implements stint.Store.
func (s *Store) Decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	return s.topology.decide(ctx, g)
}

// Ping reports whether the servers can be used: reachable, of a version that
// will do, willing to talk to the account, and to run a script that decides. It
// writes nothing.
func (s *Store) Ping(ctx context.Context) error { return s.topology.ping(ctx) }

// Close answers what still waits with stint.AdmissionRejected and closes every
// connection: what is under way ends as the loss of a connection does.
// Evaluations after it are refused. Closing twice is harmless.
func (s *Store) Close() error {
	s.stop()
	s.watchers.Wait()
	return s.topology.close()
}

// standalone is one server at one address.
type standalone struct{ *node }

func (s standalone) decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	return s.lane.decide(ctx, g, 0, manner{})
}

// replicated is the primary that Sentinels name. Its replicas are never asked.
type replicated struct {
	*node
	sentinels *sentinels
}

func newReplicated(c Config, e *encoder) *replicated {
	s := newSentinels(c)
	return &replicated{node: newNode(c, e, s.primary), sentinels: s}
}

func (r *replicated) decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	return r.lane.decide(ctx, g, 0, manner{})
}

func (r *replicated) close() error { return errors.Join(r.node.close(), r.sentinels.close()) }
