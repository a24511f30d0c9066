package algorithm_test

import (
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/algorithm"
)

// day is an instant, in epoch ms, at which every window of these tests begins.
const day = int64(20_000 * 86_400_000)

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// terms reduces a limit that must be valid.
func terms(t tb, l stint.Limit) *stint.Terms {
	t.Helper()
	p, err := stint.NewPolicy(stint.Policy{ID: "p", Limits: []stint.Limit{l}})
	if err != nil {
		t.Fatal(err)
	}
	return &p.Terms()[0]
}

// counter is what a store keeps of one limit, and how it uses this package.
type counter struct {
	terms *stint.Terms
	state algorithm.State
	at    int64
	known bool
}

// advanced is the state at an instant that is not behind.
func (c *counter) advanced(t tb, now int64) algorithm.State {
	t.Helper()
	if !c.known {
		return algorithm.Fresh(c.terms, now)
	}
	s, ok := algorithm.Advance(c.terms, c.state, c.at, now)
	if !ok {
		t.Fatalf("%+v is damaged: %+v at %d", c.terms, c.state, c.at)
	}
	return s
}

// take spends cost if it passes; wait is 0 then, else how long until it does.
func (c *counter) take(t tb, now, cost int64) (wait, remaining int64) {
	t.Helper()
	now = max(now, c.at)
	s := c.advanced(t, now)
	if at := algorithm.Wait(c.terms, s, now, cost); at != 0 {
		return at - now, algorithm.Remaining(c.terms, s, now)
	}
	s.Spent += cost
	c.state, c.at, c.known = s, now, true
	return 0, algorithm.Remaining(c.terms, s, now)
}

// passes reports whether cost would pass at an instant that is not behind.
func (c *counter) passes(t tb, now, cost int64) bool {
	t.Helper()
	return algorithm.Wait(c.terms, c.advanced(t, now), now, cost) == 0
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
