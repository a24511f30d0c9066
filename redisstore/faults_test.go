//go:build faults

package redisstore_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/breaker"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/redisstore"
)

// TestFaults measures time and memory while the server is away, so it runs by
// itself and without the race detector: `make faults`. A case that is not in
// this list does not run.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"a server that never answers", aServerThatNeverAnswers},
		{"a server that stalls", aServerThatStalls},
		{"a server that is gone", aServerThatIsGone},
		{"the memory of a key", theMemoryOfAKey},
		{"keys leave by themselves", keysLeaveByThemselves},
	} {
		t.Run(c.name, c.test)
	}
}

const (
	budget = 50 * time.Millisecond // of one evaluation
	slack  = 50 * time.Millisecond // how much later it may return
	back   = time.Second           // how soon a server that is back is used
	forAll = 20 * time.Second      // what only a fault can outlast
)

// arrangements are the ways to use a store.
var arrangements = []struct {
	name   string
	before func(*testing.T, stint.Store) stint.Store
}{
	{"alone", func(_ *testing.T, s stint.Store) stint.Store { return s }},
	{"behind a breaker", func(t *testing.T, s stint.Store) stint.Store {
		b, err := breaker.New(s, breaker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}},
}

// C37: a listener that accepts and never answers, asked 1,000 times a second
// whatever became of the calls before. Each call ends with its deadline, and
// leaves nothing behind.
func aServerThatNeverAnswers(t *testing.T) {
	const calls, aSecond = 10_000, 1000
	for _, a := range arrangements {
		t.Run(a.name, func(t *testing.T) {
			l := limiter(t, a.before(t, open(t, redisstore.Config{Addresses: []string{deaf(t)}})), budget, window)
			results := make([]result, calls)
			before := measure()
			late := watch()
			openLoop(l, results, aSecond)
			machine := late()

			// Two things that are due may both be late: the end of the wait,
			// and the caller that is told.
			seen := tally(t, results, budget+slack+2*machine)
			t.Logf("%v; the machine itself was up to %v late", seen, machine)
			if seen.reasons[""] != 0 {
				t.Errorf("%d calls were decided", seen.reasons[""])
			}
			if a.name != "alone" && seen.open < calls*9/10 {
				t.Errorf("the breaker refused %d of %d calls", seen.open, calls)
			}
			before.wantFlat(t)
		})
	}
}

// C37: a server that stalls under 500 calls at once, over two connections and
// a short queue. What finds no room is told so, what was sent ends with its
// deadline, nothing of it is spent when the server goes on, and a second later
// all is as before.
func aServerThatStalls(t *testing.T) {
	const stall, callers, senders, queue, batch = 2 * time.Second, 500, 2, 64, 64
	for _, a := range arrangements {
		t.Run(a.name, func(t *testing.T) {
			server := redistest.Start(t)
			admin := client(t, server)
			s := open(t, redisstore.Config{Addresses: []string{server.Addr()}, Senders: senders, Queue: queue})
			l := limiter(t, a.before(t, s), budget, window)
			untilAdmitted(t, l, time.Now().Add(forAll))
			results := make([]result, callers)
			before := measure()
			late := watch()

			if err := admin.Do(t.Context(), "client", "pause", stall.Milliseconds(), "all").Err(); err != nil {
				t.Fatal(err)
			}
			goesOn := time.Now().Add(stall)
			allAtOnce(l, results)
			seen := tally(t, results, budget+slack+late())
			t.Log(seen)
			if n := seen.reasons[""]; n != 0 {
				t.Errorf("%d calls were decided by a server that is paused", n)
			}
			// There is room in the queue, and in a batch under way for each sender.
			if n := seen.reasons[stint.AdmissionRejected]; n < callers-queue-senders*batch {
				t.Errorf("%d calls of %d were told that there is no room", n, callers)
			}
			spent := 1 + untilAdmitted(t, l, goesOn.Add(back))
			t.Logf("admitting %v after the server went on", time.Since(goesOn).Round(time.Millisecond))
			patient := limiter(t, s, forAll, window)
			for range 200 {
				if d, err := patient.Evaluate(t.Context(), one(0)); err != nil || !d.Allowed() {
					t.Fatalf("after the stall: %v, %v", d.Outcome, err)
				}
				spent++
			}
			if d, err := patient.Peek(t.Context(), one(0)); err != nil || million-d.Remaining != spent {
				t.Errorf("%d spent, want the %d that were admitted (%v)", million-d.Remaining, spent, err)
			}
			before.wantFlat(t)
		})
	}
}

// C60: a million clients and more come while the server is gone, over several
// probes of the breaker. None of them leaves a trace.
func aServerThatIsGone(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	b, err := breaker.New(open(t, redisstore.Config{Addresses: []string{server.Addr()}}), breaker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := limiter(t, b, budget, window)
	deadline := time.Now().Add(forAll)
	for b.State() != breaker.Open && time.Now().Before(deadline) {
		_, _ = l.Evaluate(t.Context(), one(0))
	}
	before := measure()
	began := time.Now()
	const outage = 5 * breaker.DefaultCooldown
	clients, probes := 0, 0
	for ; clients < million || time.Since(began) < outage; clients++ {
		_, err := l.Evaluate(t.Context(), one(clients))
		if err == nil {
			t.Fatal("a client was admitted")
		}
		if !errors.Is(err, breaker.ErrOpen) {
			probes++
		}
	}
	took := time.Since(began)
	each := took / time.Duration(clients)
	t.Logf("%d clients, %v each, %d of them probes", clients, each, probes)
	if each > 20*time.Microsecond {
		t.Errorf("an outage costs each client %v", each)
	}
	if most := int(took/breaker.DefaultCooldown) + 1; probes < 1 || probes > most {
		t.Errorf("%d probes in %v, want 1 to %d", probes, took, most)
	}
	before.wantFlat(t)

	server.Restart()
	untilAdmitted(t, l, time.Now().Add(back))
}

// deaf listens, accepts and never says a word.
func deaf(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // keeps the connection until the client ends it
				defer c.Close()
				one := make([]byte, 1)
				for err == nil {
					_, err = c.Read(one)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func open(t *testing.T, c redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client is a plain one, to look at the server and to disturb it.
func client(t *testing.T, s *redistest.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// untilAdmitted asks until a call is admitted, which is the one that it
// counts, and fails after the deadline.
func untilAdmitted(t *testing.T, l *stint.Limiter, deadline time.Time) (admitted int64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		d, err := l.Evaluate(context.Background(), one(0))
		if err == nil && d.Allowed() {
			return 1
		}
		if time.Now().After(deadline) {
			t.Fatalf("not admitted in time: %v", err)
		}
		<-tick.C
	}
}
