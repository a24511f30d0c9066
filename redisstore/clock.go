package redisstore

import (
	"sync"
	"time"
)

// maximumDrift widens what is known of the server's clock as it ages: 200 parts
// in a million, twice what a quartz clock is allowed.
const maximumDrift = 200e-6

// serverClock bounds the difference between the server's clock and this
// process's monotonic one. Every reply narrows the bounds; a reply that
// contradicts them says that a clock stepped, and starts over.
type serverClock struct {
	base time.Time

	mu      sync.Mutex
	known   bool
	low     float64 // ms: the server's epoch time at base is at least this
	high    float64 // and at most this
	sampled float64 // ms since base
}

func newServerClock() *serverClock { return &serverClock{base: time.Now()} }

func (c *serverClock) since(t time.Time) float64 {
	return float64(t.Sub(c.base).Microseconds()) / 1000
}

// sample learns from a reply that carried the server's time in whole ms, to a
// command that left after sent and was answered before received.
func (c *serverClock) sample(server int64, sent, received time.Time) {
	t0, t1 := c.since(sent), c.since(received)
	low, high := float64(server)-t1, float64(server)+1-t0
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		drift := (t1 - c.sampled) * maximumDrift
		if l, h := max(low, c.low-drift), min(high, c.high+drift); l <= h {
			low, high = l, h
		}
	}
	c.known, c.low, c.high, c.sampled = true, low, high, t1
}

// fence returns a server time in whole ms, at most the server's time at t: what
// runs before it runs before t. It is 0, before which nothing runs, while
// nothing is known of the server's clock.
func (c *serverClock) fence(t time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0
	}
	age := max(0, c.since(t)-c.sampled)
	return max(0, int64(c.low+c.since(t)-age*maximumDrift))
}
