package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

// node is one server that decides: its connections, its clock, its lane.
type node struct {
	where   locate
	lane    *lane
	senders []*sender
	probe   *redis.Client
	wires   []*wire
}

func newNode(c Config, e *encoder, where locate) *node {
	clock := newServerClock()
	n := &node{where: where}
	another := func() *wire {
		w := newWire(where, c.connect)
		n.wires = append(n.wires, w)
		return w
	}
	n.probe = newClient(c, another(), clock, 0)
	for range c.Senders {
		n.senders = append(n.senders, newSender(c, e, clock, another()))
	}
	n.lane = newLane(c.Queue, n.senders)
	return n
}

// leave closes every connection that does not lead to addr.
func (n *node) leave(addr string) {
	for _, w := range n.wires {
		w.leave(addr)
	}
}

// retire lets what is under way end before the connections are closed, and
// takes nothing new.
func (n *node) retire() error {
	n.lane.close()
	n.lane.drain()
	return n.close()
}

// close answers what waits and closes every connection. Closing twice is
// harmless.
func (n *node) close() error {
	n.lane.close()
	errs := []error{n.probe.Close()}
	for _, s := range n.senders {
		errs = append(errs, s.client.Close())
	}
	n.lane.drain()
	for i, err := range errs {
		if errors.Is(err, redis.ErrClosed) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// rehearsal is the policy of the evaluation that a ping makes.
var rehearsal = sync.OnceValues(func() (*stint.Policy, error) {
	return stint.NewPolicy(stint.Policy{ID: "ping", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Second}}})
})

// ping reports whether the server answers and would decide: a peek, which
// writes nothing, is refused by whatever refuses evaluations, such as a server
// that has become a replica or is out of memory. A full queue is no fault of
// the server's.
func (n *node) ping(ctx context.Context) error {
	if err := n.probe.Ping(ctx).Err(); err != nil {
		return err
	}
	p, err := rehearsal()
	if err != nil {
		return err
	}
	now := time.Now()
	g := stint.Group{Op: stint.Peek, Now: now.UnixMilli(), Deadline: now.Add(stint.DefaultBudget)}
	if d, ok := ctx.Deadline(); ok {
		g.Deadline = d
	}
	g.Append(stint.Charge{Policy: p})
	_, err = n.lane.decide(ctx, g, 0, manner{})
	if errors.Is(err, errQueueFull) || redirects(err) {
		return nil
	}
	return err
}

// redirects reports whether a node of a Cluster answered that the slot is not
// its own: it is well.
func redirects(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && slices.Contains([]string{"MOVED", "ASK", "TRYAGAIN"}, firstWord(reply.Error()))
}
