//go:build faults

package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/redisstore"
)

const (
	clients  = 10_000
	senders  = 16
	counters = "stint:{*" // pattern of their keys
)

// C60: what a client costs the server depends on the algorithm, and not on the
// limit.
func theMemoryOfAKey(t *testing.T) {
	const most = 250 // bytes
	server := redistest.Start(t)
	admin := client(t, server)
	s := open(t, redisstore.Config{Addresses: []string{server.Addr()}, Senders: senders, CommandTimeout: forAll})
	for name, limit := range map[string]func(int64) stint.Limit{
		"fixed window":    func(n int64) stint.Limit { return stint.FixedWindow{Limit: n, Window: time.Minute} },
		"sliding counter": func(n int64) stint.Limit { return stint.SlidingCounter{Limit: n, Window: time.Minute} },
		"token bucket":    func(n int64) stint.Limit { return stint.TokenBucket{Capacity: n, Refill: 1, Every: time.Minute} },
	} {
		var sizes []int64
		for _, n := range []int64{1, million} {
			if err := admin.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			l := limiter(t, s, forAll, limit(n))
			before := measure()
			oneCallEach(t, l)
			before.wantFlat(t)
			sizes = append(sizes, largest(t, admin))
		}
		t.Logf("%s: a key takes %d bytes", name, sizes[0])
		if sizes[0] != sizes[1] || sizes[0] > most {
			t.Errorf("%s: a key takes %d bytes with a limit of 1, and %d with a limit of %d; at most %d are promised",
				name, sizes[0], sizes[1], million, most)
		}
	}
}

// C60: when the windows are over, the counters go, and nobody has to ask for
// them again.
func keysLeaveByThemselves(t *testing.T) {
	server := redistest.Start(t)
	admin := client(t, server)
	s := open(t, redisstore.Config{Addresses: []string{server.Addr()}, Senders: senders, CommandTimeout: forAll})
	for _, limit := range []stint.Limit{
		stint.FixedWindow{Limit: million, Window: time.Second},
		stint.SlidingCounter{Limit: million, Window: time.Second},
		stint.TokenBucket{Capacity: million, Refill: 1, Every: time.Second},
	} {
		oneCallEach(t, limiter(t, s, forAll, limit))
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	left := len(keys(t, admin, counters))
	if left == 0 {
		t.Fatal("there is no counter")
	}
	for deadline := time.Now().Add(forAll); left > 0; left = len(keys(t, admin, counters)) {
		if time.Now().After(deadline) {
			t.Fatalf("%d counters are left", left)
		}
		<-tick.C
	}
	rest := keys(t, admin, "*")
	for _, key := range rest {
		if ttl := admin.PTTL(t.Context(), key).Val(); !strings.HasPrefix(key, "stint:session:") || ttl <= 0 {
			t.Errorf("%s stays, for %v", key, ttl)
		}
	}
	if len(rest) > senders {
		t.Errorf("%d records of %d senders", len(rest), senders)
	}
}

// oneCallEach asks once for each client, and expects it to be admitted.
func oneCallEach(t *testing.T, l *stint.Limiter) {
	t.Helper()
	var callers sync.WaitGroup
	for first := range senders {
		callers.Go(func() {
			for i := first; i < clients; i += senders {
				if d, err := l.Evaluate(context.Background(), one(i)); err != nil || !d.Allowed() {
					t.Errorf("client %d: %v, %v", i, d.Outcome, err)
					return
				}
			}
		})
	}
	callers.Wait()
}

// keys returns those that have not expired.
func keys(t *testing.T, admin *redis.Client, pattern string) []string {
	t.Helper()
	all, err := admin.Keys(t.Context(), pattern).Result()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// largest returns the most that one counter takes on the server, in bytes.
func largest(t *testing.T, admin *redis.Client) (most int64) {
	t.Helper()
	all := keys(t, admin, counters)
	if len(all) != clients {
		t.Fatalf("%d counters of %d clients", len(all), clients)
	}
	sizes, err := admin.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, k := range all {
			p.MemoryUsage(t.Context(), k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sizes {
		most = max(most, s.(*redis.IntCmd).Val())
	}
	return most
}
