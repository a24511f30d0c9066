package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

func TestTheServersClockIsBoundedByWhatRepliesTell(t *testing.T) {
	c := newServerClock()
	at := func(ms int) time.Time { return c.base.Add(time.Duration(ms) * time.Millisecond) }
	if got := c.fence(at(0)); got != 0 {
		t.Fatalf("without a reply the fence is %d", got)
	}
	steps := []struct {
		name           string
		server         int64
		sent, received int // ms since base
		want           int64
	}{
		{"the first reply", 1_000_100, 0, 100, 1_000_000},
		{"a faster one narrows", 1_000_199, 190, 191, 1_000_008},
		{"a slower one changes little", 1_000_300, 200, 400, 1_000_007},
		{"a step back starts over", 900_000, 500, 501, 899_499},
		{"a step ahead starts over", 2_000_000, 600, 601, 1_999_399},
	}
	for _, s := range steps {
		c.sample(s.server, at(s.sent), at(s.received))
		if got := c.fence(at(0)); got != s.want {
			t.Errorf("%s: the server's time at base is %d, want %d", s.name, got, s.want)
		}
	}
	if got := c.fence(at(5000)); got != 2_004_398 {
		t.Errorf("five seconds later, with what the clocks may drift, it is %d", got)
	}
}

// What was known of the server's clock is wrong, as after a step: the refusal
// tells the time, and the evaluation is sent once more.
func TestAServerWhoseClockSteppedAheadIsUnderstoodAtOnce(t *testing.T) {
	server := redistest.Start(t)
	s := lonely(t, server.Addr())
	single, _ := anyPolicies(t)
	now := time.Now()
	s.clock.sample(now.Add(-time.Hour).UnixMilli(), now, now)
	// The handshake of the first connection would correct the clock.
	if err := s.client.Ping(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	now = time.Now()
	s.clock.sample(now.Add(-time.Hour).UnixMilli(), now, now)
	g := group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1})
	if a := s.execute([]*stint.Group{&g}, g.Deadline, manner{})[0]; a.err != nil || !a.verdict.Allowed {
		t.Errorf("got %v, %v", a.verdict.Allowed, a.err)
	}
}

func TestACallersClockFarFromTheServersIsUnsafe(t *testing.T) {
	server := redistest.Start(t)
	c := patient(server.Addr())
	c.MaximumClockSkew = 2 * time.Second
	s := open(t, c)
	single, several := anyPolicies(t)
	for _, p := range append(single, several[3]) {
		for skew, want := range map[time.Duration]stint.Reason{
			-time.Hour: stint.ClockUnsafe, -30 * time.Second: stint.ClockUnsafe, 0: "",
			30 * time.Second: stint.ClockUnsafe, time.Hour: stint.ClockUnsafe,
		} {
			g := group(stint.Take, stint.EvaluationID{}, time.Now().Add(skew).UnixMilli(), stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
			if _, err := s.Decide(context.Background(), g); stint.ReasonOf(err) != want {
				t.Errorf("%s, %v off: %v, want %q", p.ID, skew, err, want)
			}
		}
	}
}

func TestWithTheServersClockTheCallersDoesNotMatter(t *testing.T) {
	server := redistest.Start(t)
	c := patient(server.Addr())
	c.Clock = ServerClock
	s := open(t, c)
	single, several := anyPolicies(t)
	for _, p := range append(single, several[3]) {
		for _, now := range []int64{0, epoch, time.Now().UnixMilli()} {
			before := time.Now().UnixMilli()
			d := decide(t, s, group(stint.Take, stint.EvaluationID{}, now, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
			if d.Outcome != stint.Allowed || d.At < before-1 || d.At > time.Now().UnixMilli()+1 {
				t.Errorf("%s at %d: %v at %d", p.ID, now, d.Outcome, d.At)
			}
		}
	}
}

// Two callers whose clocks differ by nearly all that is allowed never spend
// more than the limit's bound.
func TestTwoCallersWithSkewedClocksKeepTheBound(t *testing.T) {
	server := redistest.Start(t)
	c := patient(server.Addr())
	c.MaximumClockSkew = 2 * time.Second
	s := open(t, c)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 5, Window: 24 * time.Hour}},
		MaximumClockRegression: 4 * time.Second, CleanupGrace: time.Millisecond})
	allowed := map[int64]int{}
	for i := range 40 {
		skew := time.Duration(i%2*2-1) * 1900 * time.Millisecond
		g := group(stint.Take, stint.EvaluationID{}, time.Now().Add(skew).UnixMilli(), stint.Charge{Policy: p, Subject: subject("a"), Cost: 1})
		v, err := s.Decide(context.Background(), g)
		if err != nil {
			t.Fatal(err)
		}
		if d := v.Decision(0); v.Allowed {
			allowed[d.At/(24*time.Hour).Milliseconds()]++
		}
	}
	for day, n := range allowed {
		if n > 5 {
			t.Errorf("%d allowed in window %d of a limit of 5", n, day)
		}
	}
}

// A clock that is fast writes a TTL by its own now: the key must still be there
// when a slow clock is in the same window.
func TestAFastClocksKeyOutlivesTheWindowOfASlowOne(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	c := patient(server.Addr())
	c.MaximumClockSkew = 2 * time.Second
	s := open(t, c)
	const skew = 1900 * time.Millisecond
	for i, limits := range [][]stint.Limit{
		{stint.FixedWindow{Limit: 5, Window: 24 * time.Hour}},
		{stint.FixedWindow{Limit: 5, Window: 24 * time.Hour}, stint.TokenBucket{Capacity: 5, Refill: 5, Every: time.Second}},
	} {
		if err := admin.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		p := policy(t, stint.Policy{ID: fmt.Sprint("p", i), Limits: limits, CleanupGrace: time.Millisecond})
		fast := time.Now().Add(skew)
		key := spendOnce(t, s, admin, p, fast.UnixMilli(), 5)
		day := (24 * time.Hour).Milliseconds()
		windowEnd := time.UnixMilli(fast.UnixMilli() - fast.UnixMilli()%day + day)
		if expires := time.Now().Add(ttl(t, admin, key)); expires.Before(windowEnd.Add(skew)) {
			t.Errorf("%d limits: the key expires at %v; a slow clock leaves the window at %v", len(limits), expires, windowEnd.Add(skew))
		}
	}
}
