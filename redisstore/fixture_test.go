package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/memstore"
	"github.com/stintlimit/stint/storetest"
)

// patient is the configuration of tests that are not about time: one slow
// moment of the machine must not look like a failure of the server.
func patient(addr string) Config {
	return Config{
		Addresses: []string{addr}, Prefix: "stint", CommandTimeout: 20 * time.Second,
		Clock: CallerClock, MaximumClockSkew: SkewUnchecked, Senders: 4,
	}
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// inspect returns a plain client, to look at what a store keeps.
func inspect(t testing.TB, addr string) *redis.Client {
	t.Helper()
	silenceClient()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// shared starts one server for many subtests; each gets it empty.
func shared(t *testing.T) func(testing.TB) storetest.Fixture {
	t.Helper()
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	forget := func() error { return admin.FlushAll(context.Background()).Err() }
	return func(t testing.TB) storetest.Fixture {
		if err := forget(); err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{Store: open(t, patient(server.Addr())), Forget: forget}
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, shared(t)) }

// Memory is the oracle: one arithmetic, written in Go and in Lua.
func TestAgreesWithMemory(t *testing.T) {
	fixture := shared(t)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := memstore.New(memstore.Config{})
			storetest.Agree(t, storetest.Fixture{Store: m, Forget: func() error { m.Reset(); return nil }}, fixture(t), seed, 500)
		})
	}
}

// addressOf returns where a store on one server finds it.
func addressOf(s *Store) string {
	addr, _ := s.topology.(standalone).wires[0].locate(context.Background())
	return addr
}

// policy freezes a policy.
func policy(t testing.TB, p stint.Policy) *stint.Policy {
	t.Helper()
	frozen, err := stint.NewPolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}

func subject(name string) stint.Pseudonym {
	p := stint.Pseudonym{Version: 1}
	copy(p.Digest[:], name)
	return p
}

// epoch is where tests with their own time start: a day's beginning.
const epoch = int64(20_000 * 24 * time.Hour / time.Millisecond)

// group is a group with a generous deadline.
func group(op stint.Op, id stint.EvaluationID, now int64, charges ...stint.Charge) stint.Group {
	g := stint.Group{Op: op, ID: id, Now: now, Deadline: time.Now().Add(30 * time.Second)}
	for _, c := range charges {
		g.Append(c)
	}
	return g
}

func decide(t testing.TB, s stint.Store, g stint.Group) stint.Decision {
	t.Helper()
	v, err := s.Decide(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	return v.Decision(0)
}

// eventually polls until a condition holds, for long enough that only a fault
// can make it fail.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}
