package redisstore

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// everything reads all keys: type, value in the server's own serialisation,
// and the instant of expiry.
func everything(t testing.TB, c *redis.Client) map[string]string {
	t.Helper()
	ctx := context.Background()
	all := map[string]string{}
	for _, k := range c.Keys(ctx, "*").Val() {
		all[k] = fmt.Sprintf("%s %x expires %d", c.Type(ctx, k).Val(), c.Dump(ctx, k).Val(),
			c.Do(ctx, "pexpiretime", k).Val())
	}
	return all
}

func ttl(t testing.TB, c *redis.Client, key string) time.Duration {
	t.Helper()
	ms, err := c.Do(context.Background(), "pttl", key).Int64()
	if err != nil || ms < 0 {
		t.Fatalf("PTTL %s: %d, %v", key, ms, err)
	}
	return time.Duration(ms) * time.Millisecond
}

// counters lists the keys that are neither session nor callers' records.
func counters(all map[string]string) (keys []string) {
	for k := range all {
		if !strings.Contains(k, ":session:") && !strings.HasSuffix(k, ":ids") {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestADenialLeavesEveryByteAndTTL(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	s := open(t, patient(server.Addr()))
	strict := policy(t, stint.Policy{ID: "strict", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 3, Window: time.Hour}, stint.TokenBucket{Capacity: 5, Refill: 1, Every: time.Hour}}})
	others := []*stint.Policy{
		policy(t, stint.Policy{ID: "bucket", Limits: []stint.Limit{stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Hour}}}),
		policy(t, stint.Policy{ID: "sliding", Limits: []stint.Limit{stint.SlidingCounter{Limit: 9, Window: time.Hour}}}),
		policy(t, stint.Policy{ID: "shadow", Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}}, Mode: stint.Shadow}),
	}
	a := subject("a")
	spend := func(op stint.Op, id string, cost int64, policies ...*stint.Policy) stint.Verdict {
		g := group(op, stint.EvaluationID{}, epoch+1000)
		if id != "" {
			g.ID = stint.NewEvaluationID("test", id)
		}
		for _, p := range policies {
			g.Append(stint.Charge{Policy: p, Subject: a, Cost: cost})
		}
		v, err := s.Decide(context.Background(), g)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	spend(stint.Take, "first", 3, strict)
	for _, p := range others {
		spend(stint.Take, "", 8, p)
	}
	before := everything(t, admin)
	for _, id := range []string{"", "second"} {
		for _, p := range append(others, strict) {
			if v := spend(stint.Take, id, 2, p); v.Decision(0).Outcome == stint.Allowed {
				t.Fatalf("%s allowed", p.ID)
			}
			if v := spend(stint.Take, id, 1, p, strict); p != strict && v.Allowed {
				t.Fatal("the group was allowed")
			}
			spend(stint.Peek, id, 1, p)
		}
	}
	if diff := cmp.Diff(before, everything(t, admin)); diff != "" {
		t.Errorf("a denial or a peek changed the server:\n%s", diff)
	}
}

// spendOnce spends on one counter of an empty server and returns its key.
func spendOnce(t *testing.T, s *Store, admin *redis.Client, p *stint.Policy, now, cost int64) string {
	t.Helper()
	d := decide(t, s, group(stint.Take, stint.EvaluationID{}, now, stint.Charge{Policy: p, Subject: subject("a"), Cost: cost}))
	if d.Outcome != stint.Allowed {
		t.Fatalf("cost %d: %v", cost, d.Outcome)
	}
	keys := counters(everything(t, admin))
	if len(keys) != 1 {
		t.Fatalf("counters: %q", keys)
	}
	return keys[0]
}

func TestKeysAndStatesAreShort(t *testing.T) {
	fixture := shared(t)
	for _, l := range []stint.Limit{
		stint.FixedWindow{Limit: 100, Window: 24 * time.Hour},
		stint.SlidingCounter{Limit: 600, Window: time.Minute},
		stint.TokenBucket{Capacity: 100, Refill: 10, Every: time.Second},
	} {
		t.Run(fmt.Sprintf("%T", l), func(t *testing.T) {
			f := fixture(t)
			store := f.Store.(*Store)
			admin := inspect(t, addressOf(store))
			key := spendOnce(t, store, admin, policy(t, stint.Policy{ID: "daily", Revision: 1, Limits: []stint.Limit{l}}), epoch, 1)
			size := admin.MemoryUsage(context.Background(), key).Val()
			t.Logf("%s: %d bytes of key, MEMORY USAGE %d", key, len(key), size)
			if len(key) > 48 || size > 136 || size == 0 {
				t.Errorf("%d bytes of key (at most 48), MEMORY USAGE %d (at most 136)", len(key), size)
			}
			if n := len(admin.Get(context.Background(), key).Val()); n > 32 {
				t.Errorf("%d bytes of state, at most 32", n)
			}
			if !strings.HasPrefix(key, "stint:{v1:") || !strings.Contains(key, "}:daily:1:1") {
				t.Errorf("key %q", key)
			}
		})
	}
}

// C04: a sliding counter lives to the end of the window after its own.
func TestASlidingCounterOutlivesTheNextWindow(t *testing.T) {
	f := shared(t)(t)
	store := f.Store.(*Store)
	admin := inspect(t, addressOf(store))
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.SlidingCounter{Limit: 10, Window: time.Hour}}})
	spendOnce(t, store, admin, p, epoch, 1)
	key := spendOnce(t, store, admin, p, epoch+3_540_000, 8)
	if got := ttl(t, admin, key); got < 3660*time.Second {
		t.Errorf("PTTL %v, want at least 1h1m", got)
	}
	for i, want := range []stint.Decision{{Outcome: stint.Allowed, Remaining: 1}, {Outcome: stint.Allowed}, {Outcome: stint.Denied, RetryAfter: 340_001 * time.Millisecond}} {
		d := decide(t, store, group(stint.Take, stint.EvaluationID{}, epoch+3_660_000, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
		if d.Outcome != want.Outcome || d.Remaining != want.Remaining || d.RetryAfter != want.RetryAfter {
			t.Errorf("call %d: %v, remaining %d, retry after %v", i, d.Outcome, d.Remaining, d.RetryAfter)
		}
	}
}

// C06: a TTL is at least a millisecond, however fast the refill.
func TestAFastRefillKeepsItsKey(t *testing.T) {
	fixture := shared(t)
	for _, tt := range []struct {
		limit stint.TokenBucket
		costs []int64
		want  []int64 // remaining; -1 denied
	}{
		{stint.TokenBucket{Capacity: 1000, Refill: 1000, Every: time.Minute}, []int64{1, 1, 1}, []int64{999, 998, 997}},
		{stint.TokenBucket{Capacity: 6000, Refill: 6000, Every: time.Second}, []int64{3000, 3000, 3000}, []int64{3000, 0, -1}},
	} {
		f := fixture(t)
		admin := inspect(t, addressOf(f.Store.(*Store)))
		p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{tt.limit},
			CleanupGrace: time.Millisecond, MaximumClockRegression: time.Millisecond})
		for i, cost := range tt.costs {
			d := decide(t, f.Store, group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: cost}))
			got := d.Remaining
			if d.Outcome == stint.Denied {
				got = -1
			}
			if got != tt.want[i] {
				t.Errorf("call %d: %d, want %d", i, got, tt.want[i])
			}
			for _, k := range counters(everything(t, admin)) {
				if left := ttl(t, admin, k); left > time.Minute+3*time.Millisecond {
					t.Errorf("PTTL %v", left)
				}
			}
		}
	}
}

// C15: no key lives for ever, and one without a TTL is repaired by the next
// admission.
func TestEveryKeyExpires(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	c := patient(server.Addr())
	c.Clock = ServerClock
	s := open(t, c)
	t.Run("a missing TTL is repaired", func(t *testing.T) {
		p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 100, Window: time.Hour}}})
		key := spendOnce(t, s, admin, p, 0, 5)
		most := 2*time.Hour + p.CleanupGrace + p.MaximumClockRegression
		if got := ttl(t, admin, key); got <= 0 || got > most {
			t.Errorf("PTTL %v", got)
		}
		admin.Persist(ctx, key)
		spendOnce(t, s, admin, p, 0, 5)
		if got := ttl(t, admin, key); got <= 0 || got > most {
			t.Errorf("PTTL %v after PERSIST", got)
		}
	})
	t.Run("all expire", func(t *testing.T) {
		if err := admin.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		for i, l := range []stint.Limit{
			stint.FixedWindow{Limit: 100, Window: 20 * time.Millisecond},
			stint.SlidingCounter{Limit: 100, Window: 20 * time.Millisecond},
			stint.TokenBucket{Capacity: 100, Refill: 100, Every: 20 * time.Millisecond},
		} {
			p := policy(t, stint.Policy{ID: fmt.Sprint("p", i), Limits: []stint.Limit{l},
				CleanupGrace: time.Millisecond, MaximumClockRegression: time.Millisecond, Dedup: stint.Dedup{TTL: time.Millisecond}})
			decide(t, s, group(stint.Take, stint.NewEvaluationID("test", "x"), 0, stint.Charge{Policy: p, Subject: subject("a"), Cost: 5}))
		}
		all := everything(t, admin)
		for k, v := range all {
			if strings.HasSuffix(v, "expires -1") {
				t.Errorf("%s never expires", k)
			}
			if strings.Contains(k, ":session:") {
				if left := ttl(t, admin, k); left < time.Minute || left > 5*time.Minute {
					t.Errorf("a session record lives for %v", left)
				}
			}
		}
		eventually(t, "only session records are left", func() bool {
			left := everything(t, admin)
			maps.DeleteFunc(left, func(k, _ string) bool { return strings.Contains(k, ":session:") })
			return len(left) == 0
		})
	})
}

// State that is not ours is neither trusted nor changed, and fails its own
// group only: before anything is written.
func TestForeignAndDamagedStateIsIncompatible(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	s := open(t, patient(server.Addr()))
	one := []stint.Limit{stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Hour}}
	two := append(one, stint.SlidingCounter{Limit: 9, Window: time.Hour})
	good := policy(t, stint.Policy{ID: "good", Limits: one})
	for name, spoil := range map[string]func(key string){
		"a list":           func(k string) { admin.RPush(ctx, k, "x") },
		"a hash":           func(k string) { admin.HSet(ctx, k, "x", "y") },
		"empty":            func(k string) { admin.Set(ctx, k, "", 0) },
		"text":             func(k string) { admin.Set(ctx, k, "17", 0) },
		"too long":         func(k string) { admin.Append(ctx, k, "x") },
		"an instant of ff": func(k string) { admin.SetRange(ctx, k, 0, strings.Repeat("\xff", 7)) },
		"a deficit of ff":  func(k string) { admin.SetRange(ctx, k, 7, strings.Repeat("\xff", 7)) },
		"refilled later":   func(k string) { admin.SetRange(ctx, k, 14, "\x10"+strings.Repeat("\xff", 6)) },
	} {
		for _, limits := range [][]stint.Limit{one, two} {
			t.Run(fmt.Sprintf("%s, %d limits", name, len(limits)), func(t *testing.T) {
				admin.FlushAll(ctx)
				p := policy(t, stint.Policy{ID: "bad", Limits: limits})
				key := spendOnce(t, s, admin, p, epoch, 1)
				if name == "a list" || name == "a hash" {
					admin.Del(ctx, key)
				}
				spoil(key)
				before := everything(t, admin)
				charge := stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}
				for _, g := range []stint.Group{
					group(stint.Take, stint.EvaluationID{}, epoch, charge),
					group(stint.Peek, stint.EvaluationID{}, epoch, charge),
					group(stint.Take, stint.EvaluationID{}, epoch, stint.Charge{Policy: good, Subject: subject("a"), Cost: 1}, charge),
				} {
					if _, err := s.Decide(ctx, g); stint.ReasonOf(err) != stint.StateIncompatible {
						t.Errorf("got %v, want %s", err, stint.StateIncompatible)
					}
				}
				if diff := cmp.Diff(before, everything(t, admin)); diff != "" {
					t.Errorf("something was written:\n%s", diff)
				}
				shadow := *p
				shadow.Mode = stint.Shadow
				v, err := s.Decide(ctx, group(stint.Take, stint.EvaluationID{}, epoch,
					stint.Charge{Policy: good, Subject: subject("a"), Cost: 1},
					stint.Charge{Policy: policy(t, shadow), Subject: subject("a"), Cost: 1}))
				if err != nil || !v.Allowed || v.Decision(1).Outcome != stint.ShadowFailed {
					t.Errorf("beside a shadow: %v, %v", v, err)
				}
			})
		}
	}
}

// Damaged records of callers' ids never raise an error inside the script.
func TestDamagedRecordsNeverFailTheScript(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	s := open(t, patient(server.Addr()))
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}}})
	id := stint.NewEvaluationID("test", "x").Bytes()
	for name, value := range map[string]string{
		"empty":                  "",
		"short":                  "abc",
		"a number and nothing":   "\x00\x00\x00\x09",
		"an id and nothing":      "\x00\x00\x00\x01" + string(id[:]),
		"an id and a cut answer": "\x00\x00\x00\x01" + string(id[:]) + strings.Repeat("\x0f", 30),
		"noise":                  strings.Repeat("\xff", 300),
	} {
		admin.FlushAll(ctx)
		key := spendOnce(t, s, admin, p, epoch, 1) + ":ids"
		admin.Set(ctx, key, value, 0)
		_, err := s.Decide(ctx, group(stint.Take, stint.NewEvaluationID("test", "x"), epoch, stint.Charge{Policy: p, Subject: subject("a"), Cost: 1}))
		if stint.ReasonOf(err) == stint.OutcomeUnknown {
			t.Errorf("%s: the script failed: %v", name, err)
		}
	}
}
