package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
	"github.com/stintlimit/stint/memstore"
)

// lasting drops what refunds and replays leave behind: records.
func lasting(all map[string]string) map[string]string {
	kept := map[string]string{}
	for _, k := range counters(all) {
		kept[k] = all[k]
	}
	return kept
}

// testEncoder is the encoder of a patient store.
func testEncoder() *encoder {
	return &encoder{scripts: newScripts(), prefix: "stint", clock: CallerClock, skew: stint.MaxInteger}
}

func testID(name string) stint.EvaluationID { return stint.NewEvaluationID("test", name) }

// A refund of nothing makes no counter, and leaves every byte and TTL of one
// that there is.
func TestARefundOfNothingLeavesTheCounter(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	s := open(t, patient(server.Addr()))
	_, several := anyPolicies(t)
	for i, p := range several {
		charge := stint.Charge{Policy: p, Subject: subject("a"), Cost: 3}
		late := charge
		late.At = epoch - 48*3600_000
		for _, known := range []bool{false, true} {
			before := lasting(everything(t, admin))
			for n, c := range []stint.Charge{charge, late} {
				decide(t, s, group(stint.Refund, testID(fmt.Sprint(i, known, n)), epoch+1, c))
			}
			if diff := cmp.Diff(before, lasting(everything(t, admin))); diff != "" {
				t.Errorf("%s, known=%v: a refund of nothing changed the counter:\n%s", p.ID, known, diff)
			}
			decide(t, s, group(stint.Take, stint.EvaluationID{}, epoch, charge))
		}
	}
}

// What a refund writes keeps a TTL, or gets one: also a bucket of long periods
// that became full.
func TestARefundKeepsATTL(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	c := patient(server.Addr())
	c.Clock = ServerClock
	s := open(t, c)
	for i, l := range []stint.Limit{
		stint.FixedWindow{Limit: 10, Window: 24 * time.Hour},
		stint.SlidingCounter{Limit: 10, Window: 24 * time.Hour},
		stint.TokenBucket{Capacity: 10, Refill: 1, Every: 24 * time.Hour},
	} {
		p := policy(t, stint.Policy{ID: fmt.Sprint("p", i), Limits: []stint.Limit{l}})
		for _, persist := range []bool{false, true} {
			id, charge := testID(fmt.Sprint(i, persist)), stint.Charge{Policy: p, Subject: subject("a"), Cost: 4}
			decide(t, s, group(stint.Take, id, 0, charge))
			key := testEncoder().counterKey(&charge)
			before := ttl(t, admin, key)
			if persist {
				admin.Persist(ctx, key)
			}
			if d := decide(t, s, group(stint.Refund, id, 0, charge)); d.Remaining != 10 {
				t.Errorf("%s: %d left after the refund", p.ID, d.Remaining)
			}
			if got := ttl(t, admin, key); got > before+p.CleanupGrace {
				t.Errorf("%s: PTTL %v, before %v", p.ID, got, before)
			}
		}
	}
}

// A bucket that became full long after its last refill is kept for a while,
// and never for ever.
func TestARefundToTheFullKeepsATTL(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	s := open(t, patient(server.Addr()))
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.TokenBucket{Capacity: 10, Refill: 1, Every: 24 * time.Hour}}})
	for _, cost := range []int64{3, 4} {
		charge := stint.Charge{Policy: p, Subject: subject("a"), Cost: cost}
		decide(t, s, group(stint.Take, stint.EvaluationID{}, epoch, charge))
		key := testEncoder().counterKey(&charge)
		admin.Persist(context.Background(), key)
		charge.Cost, charge.At = 3, epoch
		decide(t, s, group(stint.Refund, testID(fmt.Sprint(cost)), epoch+20*3600_000, charge))
		if got, least := ttl(t, admin, key), p.MaximumClockRegression; got <= least || got > 4*24*time.Hour {
			t.Errorf("PTTL %v, more than %v", got, least)
		}
		admin.FlushAll(context.Background())
	}
}

// A damaged record refuses the refund, and nothing is written.
func TestARefundOfADamagedRecordIsIncompatible(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	ctx := context.Background()
	s := open(t, patient(server.Addr()))
	_, several := anyPolicies(t)
	charges := []stint.Charge{{Policy: several[3], Subject: subject("a"), Cost: 1}, {Policy: several[0], Subject: subject("a"), Cost: 1}}
	key := recordsKey(testEncoder().counterKey(&charges[0]))
	// A record: id, payload, what was done, expiry, length; answers of 9 bytes and 28 a limit.
	const done, length, limits = 4 + 32, 4 + 40, 4 + 42 + 8
	for name, spoil := range map[string]func(text []byte) []byte{
		"cut short":          func(b []byte) []byte { return b[:len(b)-1] },
		"cut to nothing":     func(b []byte) []byte { return b[:4+42] },
		"a length too short": func(b []byte) []byte { b[length+1]--; return b },
		"a limit too many":   func(b []byte) []byte { b[limits]++; return b },
		"a limit too few":    func(b []byte) []byte { b[limits]--; return b },
		"255 limits":         func(b []byte) []byte { b[limits] = 255; return b },
		"a peek":             func(b []byte) []byte { b[done] = 1; return b },
		"something unknown":  func(b []byte) []byte { b[done] = 9; return b },
		"nothing but an id":  func(b []byte) []byte { return b[:4+16] },
	} {
		t.Run(name, func(t *testing.T) {
			admin.FlushAll(ctx)
			if d := decide(t, s, group(stint.Take, testID("x"), epoch, charges...)); d.Outcome != stint.Allowed {
				t.Fatal(d.Outcome)
			}
			text := spoil([]byte(admin.Get(ctx, key).Val()))
			admin.Set(ctx, key, text, redis.KeepTTL)
			before := lasting(everything(t, admin))
			_, err := s.Decide(ctx, group(stint.Refund, testID("x"), epoch, charges...))
			want := stint.StateIncompatible
			if name == "nothing but an id" { // which is no record
				want = ""
			} else if got := admin.Get(ctx, key).Val(); got != string(text) {
				t.Error("the record was written")
			}
			if stint.ReasonOf(err) != want {
				t.Errorf("got %v, want %q", err, want)
			}
			if diff := cmp.Diff(before, lasting(everything(t, admin))); diff != "" {
				t.Errorf("something was written:\n%s", diff)
			}
		})
	}
}

// A refund whose reply was lost is sent again, and gives back once.
func TestALostReplyOfARefundIsResolved(t *testing.T) {
	w := newFaultyWire(t, time.Second)
	charge := stint.Charge{Policy: w.tracked, Subject: subject("a"), Cost: 2}
	for _, name := range []string{"x", "y"} {
		decide(t, w.store, group(stint.Take, testID(name), epoch, charge))
	}
	w.proxy.Next(redistest.DropReply, "evalsha")
	if d := decide(t, w.store, group(stint.Refund, testID("x"), epoch, charge)); d.Remaining != 8 || d.Replayed {
		t.Errorf("got %d left, replayed=%v", d.Remaining, d.Replayed)
	}
	w.wantSpent(w.tracked, 2)
	if w.proxy.Seen.Load() != 1 {
		t.Fatal("the fault was never met")
	}
}

// evaluated runs one batch as the server does, past sender and lane.
func evaluated(t *testing.T, admin *redis.Client, groups []*stint.Group) []answer {
	t.Helper()
	fences := make([]int64, len(groups))
	for i := range fences {
		fences[i] = stint.MaxInteger
	}
	b := testEncoder().encode(groups, fences, "", 1, 0)
	reply, err := admin.Eval(context.Background(), b.script.source, b.keys, b.blob).Text()
	if err != nil {
		t.Fatal(err)
	}
	status, _, body, err := decodeHead(reply)
	if err != nil || status != batchExecuted {
		t.Fatalf("status %d, %v", status, err)
	}
	answers, err := decodeAnswers(groups, body)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// In a batch a refund meets what the groups before it spent and recorded, and
// what comes after meets the refund.
func TestABatchWithRefundsIsItsGroupsInOrder(t *testing.T) {
	server := redistest.Start(t)
	admin := inspect(t, server.Addr())
	_, several := anyPolicies(t)
	for seed := range uint64(30) {
		if err := admin.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 2))
		oracle := memstore.New(memstore.Config{})
		now := epoch
		for step := range 20 {
			now += r.Int64N(3000)
			var groups []*stint.Group
			for range 1 + r.IntN(8) {
				n := r.IntN(4)
				g := group(stint.Op(r.IntN(2)*2), testID(fmt.Sprint(n)), now+r.Int64N(2000))
				for i := range 1 + n%3 {
					g.Append(stint.Charge{Policy: several[(n+i)%len(several)], Subject: subject("a"), Cost: 1 + int64(n), At: r.Int64N(2) * now})
				}
				groups = append(groups, &g)
			}
			wantAsMemory(t, oracle, groups, evaluated(t, admin, groups), seed, step)
		}
	}
}

// A refund that denies, or that left nothing behind, is no answer of ours.
func TestRepliesToARefundThatContradictThemselves(t *testing.T) {
	single, _ := anyPolicies(t)
	g := group(stint.Refund, testID("x"), epoch, stint.Charge{Policy: single[0], Subject: subject("a"), Cost: 1})
	reply := func(status, flag byte, retry int64) string {
		b := append([]byte{status, flag}, appendI7(nil, epoch)...)
		b = append(b, 1)
		for _, v := range []int64{9, retry, 60_000, 60_000} {
			b = appendI7(b, v)
		}
		return string(b)
	}
	for name, c := range map[string]struct {
		body string
		good bool
	}{
		"given back":            {reply(groupSpent, chargePasses, 0), true},
		"given back before":     {reply(groupReplayed, chargePasses, 0), true},
		"nothing left behind":   {reply(groupUnspent, chargePasses, 0), false},
		"denied":                {reply(groupSpent, chargeRefused, 5), false},
		"denied, and unspent":   {reply(groupUnspent, chargeRefused, 5), false},
		"allowed, with a retry": {reply(groupSpent, chargePasses, 5), false},
	} {
		if answers, err := decodeAnswers([]*stint.Group{&g}, c.body); (err == nil) != c.good {
			t.Errorf("%s: %+v, %v", name, answers, err)
		}
	}
}
