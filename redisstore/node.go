package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
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

func (n *node) ping(ctx context.Context) error { return n.probe.Ping(ctx).Err() }
