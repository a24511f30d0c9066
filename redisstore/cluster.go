package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
)

const (
	// learnEvery is how often the map of slots is read anew without a reason.
	learnEvery = 10 * time.Second
	// learnPause is the least time between two readings that have a reason.
	learnPause = 100 * time.Millisecond
	// maximumHops is how many redirections of one evaluation are followed.
	maximumHops = 8
)

// cluster decides each group on the primary that owns its slot. The map of
// slots is its own, and so is following a redirection: a client that does so by
// itself might repeat a command whose reply was lost.
type cluster struct {
	config  Config
	encoder *encoder
	owners  atomic.Pointer[owners] // nil until it was learned
	stale   chan struct{}          // of capacity 1: there is a reason to learn

	learning chan struct{} // of capacity 1: full while somebody reads the map

	mu       sync.Mutex
	nodes    map[string]*node // by address
	closed   bool
	retiring sync.WaitGroup
}

// owners is the map of slots: the primary of each, nil where there is none.
type owners [slotCount]*node

var errNoOwner = errors.New("no primary is known for the slot")

func newCluster(c Config, e *encoder) *cluster {
	return &cluster{config: c, encoder: e, stale: make(chan struct{}, 1), learning: make(chan struct{}, 1), nodes: map[string]*node{}}
}

// node returns the node at an address, a new one if it is not known.
func (c *cluster) node(addr string) (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	n := c.nodes[addr]
	if n == nil {
		n = newNode(c.config, c.encoder, at(addr))
		c.nodes[addr] = n
	}
	return n, nil
}

// keepOnly retires the nodes that a new map no longer names.
func (c *cluster) keepOnly(named map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, n := range c.nodes {
		if !named[addr] {
			delete(c.nodes, addr)
			c.retiring.Go(func() { _ = n.retire() })
		}
	}
}

// suspect says that the map may be out of date.
func (c *cluster) suspect() {
	select {
	case c.stale <- struct{}{}:
	default:
	}
}

// watch keeps the map fresh until ctx ends.
func (c *cluster) watch(ctx context.Context) {
	every := time.NewTicker(learnEvery)
	defer every.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 4*c.config.CommandTimeout)
		if err := c.learn(attempt); err != nil {
			c.suspect()
		}
		cancel()
		pause := time.NewTimer(learnPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		case <-c.stale:
		}
	}
}

// learnFirst is learn for those who have no map at all: they take the one that
// somebody else is reading.
func (c *cluster) learnFirst(ctx context.Context) error {
	select {
	case c.learning <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.learning }()
	if c.owners.Load() != nil {
		return nil
	}
	return c.read(ctx)
}

// learn reads the map anew, one reading at a time.
func (c *cluster) learn(ctx context.Context) error {
	select {
	case c.learning <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.learning }()
	return c.read(ctx)
}

// read reads the map from the first node that tells it: one that is known, or
// one of those configured.
func (c *cluster) read(ctx context.Context) error {
	var errs []error
	for _, n := range c.candidates() {
		// Not CLUSTER SHARDS: this one answers with the port that fits the
		// connection, with TLS or without.
		slots, err := n.probe.ClusterSlots(ctx).Result() //nolint:staticcheck // see above
		if err == nil && len(slots) == 0 {
			err = errors.New("it knows no slots")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return c.adopt(slots, n)
	}
	return fmt.Errorf("no node tells the map of slots: %w", errors.Join(errs...))
}

func (c *cluster) candidates() []*node {
	c.mu.Lock()
	var all []*node
	for _, n := range c.nodes {
		all = append(all, n)
	}
	c.mu.Unlock()
	for _, seed := range c.config.Addresses {
		if n, err := c.node(seed); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// adopt makes a map of what teller has told.
func (c *cluster) adopt(slots []redis.ClusterSlot, teller *node) error {
	table, named := new(owners), map[string]bool{}
	for _, seed := range c.config.Addresses {
		named[seed] = true
	}
	for _, r := range slots {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slotCount {
			continue
		}
		addr := completed(r.Nodes[0].Addr, teller)
		n, err := c.node(addr)
		if err != nil {
			return err
		}
		named[addr] = true
		for s := r.Start; s <= r.End; s++ {
			table[s] = n
		}
	}
	c.owners.Store(table)
	c.keepOnly(named)
	return nil
}

// completed fills in the host of an address that a node gave without one: it
// means itself.
func completed(addr string, teller *node) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" {
		return addr
	}
	own, _ := teller.where(context.Background())
	host, _, _ = net.SplitHostPort(own)
	return net.JoinHostPort(host, port)
}

// owner returns the primary of a slot, learning the map first if there is none.
func (c *cluster) owner(ctx context.Context, slot int, deadline time.Time) (*node, error) {
	table := c.owners.Load()
	if table == nil {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		if err := c.learnFirst(ctx); err != nil {
			return nil, &stint.Error{Reason: stint.BeforeSend, Cause: err}
		}
		table = c.owners.Load()
	}
	if n := table[slot]; n != nil {
		return n, nil
	}
	c.suspect()
	return nil, &stint.Error{Reason: stint.BeforeSend, Cause: errNoOwner}
}

// decide sends a group where its slot is.
func (c *cluster) decide(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	slot := c.slot(g.Charge(0))
	for i := 1; i < g.Len(); i++ {
		if c.slot(g.Charge(i)) != slot {
			return c.decideAcross(ctx, g)
		}
	}
	return c.decideAt(ctx, g, slot)
}

func (c *cluster) slot(charge *stint.Charge) int { return slotOf(c.encoder.counterKey(charge)) }

// decideAt decides a group of one slot, following redirections while its
// deadline is ahead. A redirection proves that nothing ran.
func (c *cluster) decideAt(ctx context.Context, g stint.Group, slot int) (stint.Verdict, error) {
	n, err := c.owner(ctx, slot, g.Deadline)
	if err != nil {
		return stint.Verdict{}, err
	}
	var by manner
	for hop := 0; ; hop++ {
		v, err := n.lane.decide(ctx, g, slot, by)
		if err == nil {
			return v, nil
		}
		if errors.Is(err, errClosed) { // it was retired before it took the group
			next, none := c.owner(ctx, slot, g.Deadline)
			if none != nil || next == n || hop == maximumHops {
				return stint.Verdict{}, err
			}
			n = next
			continue
		}
		next, how, follow := c.redirected(err, n, by, &g)
		if !follow || hop == maximumHops || time.Until(g.Deadline) <= 0 {
			return v, err
		}
		n, by = next, how
	}
}

// redirected reads where an error leads, and by what manner.
func (c *cluster) redirected(err error, from *node, by manner, g *stint.Group) (*node, manner, bool) {
	var reply redis.Error
	if stint.ReasonOf(err) == stint.BeforeSend {
		c.suspect()
		return nil, by, false
	}
	if stint.ReasonOf(err) != stint.NoMutation || !errors.As(err, &reply) {
		return nil, by, false
	}
	var kind, slot, addr string
	_, _ = fmt.Sscan(reply.Error(), &kind, &slot, &addr)
	switch kind {
	case "MOVED", "ASK":
		if kind == "MOVED" {
			c.suspect()
		}
		n, err := c.node(completed(addr, from))
		return n, manner{asking: kind == "ASK", alone: by.alone}, err == nil
	case "TRYAGAIN":
		// The slot is on the move, and its keys are on both sides: the
		// counter alone is on one.
		follow := !by.alone && canGoAlone(g)
		by.alone = true
		return from, by, follow
	case "READONLY", "CLUSTERDOWN", "LOADING", "MASTERDOWN":
		c.suspect()
	}
	return nil, by, false
}

// ping reports whether the map is known and at least one primary in it can be
// used: the rest is for the subjects of one slot or another.
func (c *cluster) ping(ctx context.Context) error {
	table := c.owners.Load()
	if table == nil {
		if err := c.learnFirst(ctx); err != nil {
			return err
		}
		table = c.owners.Load()
	}
	asked := map[*node]bool{nil: true}
	var errs []error
	for _, n := range table {
		if asked[n] {
			continue
		}
		asked[n] = true
		err := n.ping(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	c.suspect()
	return fmt.Errorf("no primary can be used: %w", errors.Join(errs...))
}

func (c *cluster) close() error {
	c.mu.Lock()
	c.closed = true
	nodes := c.nodes
	c.nodes = map[string]*node{}
	c.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.close())
	}
	c.retiring.Wait()
	return errors.Join(errs...)
}
