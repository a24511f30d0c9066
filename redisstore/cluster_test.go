package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// The check values of the Cluster specification, and of the hash tag rules.
func TestSlots(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31C3 % slotCount, "": 0, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182,
		"{}foo": int(crc16("{}foo")) % slotCount, "foo{": int(crc16("foo{")) % slotCount,
	} {
		if got := slotOf(key); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
	for slot, tag := range slotTags() {
		if got := slotOf("stint:{" + tag + "}:session:x"); got != slot || tag == "" {
			t.Fatalf("tag %q of slot %d leads to %d", tag, slot, got)
		}
	}
}

// clustered starts a Cluster and opens a store on it.
func clustered(t *testing.T, primaries, replicas int) ([]*redistest.Server, *Store) {
	t.Helper()
	nodes := redistest.StartCluster(t, primaries, replicas, time.Second)
	c := patient(nodes[0].Addr())
	c.Cluster, c.Clock, c.CommandTimeout = true, ServerClock, 5*time.Second
	return nodes, open(t, c)
}

func named(i int) stint.Pseudonym { return subject(fmt.Sprint("subject ", i)) }

// take spends 1 of a subject within a second.
func take(s *Store, p *stint.Policy, who stint.Pseudonym) (stint.Verdict, error) {
	g := group(stint.Take, stint.EvaluationID{}, 0, stint.Charge{Policy: p, Subject: who, Cost: 1})
	g.Deadline = time.Now().Add(time.Second)
	return s.Decide(context.Background(), g)
}

func left(t *testing.T, s *Store, p *stint.Policy, who stint.Pseudonym) int64 {
	t.Helper()
	d := decide(t, s, group(stint.Peek, stint.EvaluationID{}, 0, stint.Charge{Policy: p, Subject: who}))
	return d.Remaining
}

// C35: nobody's identity picks a slot badly, and single subjects are exact on
// whatever node they are.
func TestAClusterDecidesEachSubjectOnItsNode(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	three := policy(t, stint.Policy{ID: "three", Limits: []stint.Limit{stint.FixedWindow{Limit: 3, Window: 100 * 24 * time.Hour}}})
	both := policy(t, stint.Policy{ID: "both", Limits: []stint.Limit{
		stint.FixedWindow{Limit: 3, Window: 100 * 24 * time.Hour}, stint.TokenBucket{Capacity: 9, Refill: 1, Every: time.Hour}}})
	for i := range 30 {
		for _, p := range []*stint.Policy{three, both} {
			for n := range 4 {
				v, err := take(s, p, named(i))
				if err != nil || v.Allowed != (n < 3) {
					t.Fatalf("%s, subject %d, take %d: %v, %v", p.ID, i, n, v.Allowed, err)
				}
			}
		}
		id := stint.NewEvaluationID("test", fmt.Sprint(i))
		g := group(stint.Take, id, 0, stint.Charge{Policy: policy(t, stint.Policy{ID: "ids", Limits: three.Limits}), Subject: named(i), Cost: 1})
		first, again := decide(t, s, g), decide(t, s, g)
		if first.Replayed || !again.Replayed || again.Remaining != 2 {
			t.Errorf("subject %d: an id repeated: %+v, %+v", i, first, again)
		}
	}
	for _, n := range nodes {
		if n.CLI("dbsize") == "0" {
			t.Errorf("%s has nothing to decide", n.Addr())
		}
	}
	if err := s.Ping(context.Background()); err != nil {
		t.Error(err)
	}
}

// Groups over several slots: all or nothing, also when a racing caller makes a
// later part refuse after an earlier one was taken.
func TestAGroupOverSeveralSlotsIsGivenBackIfRefused(t *testing.T) {
	_, s := clustered(t, 3, 0)
	limit := func(id string, n int64) *stint.Policy {
		return policy(t, stint.Policy{ID: id, Limits: []stint.Limit{stint.FixedWindow{Limit: n, Window: 100 * 24 * time.Hour}}})
	}
	wide, narrow := limit("wide", 1000), limit("narrow", 20)
	a, b, everyone := named(1), named(2), named(3)
	across := func(id stint.EvaluationID) stint.Group {
		return group(stint.Take, id, 0, stint.Charge{Policy: wide, Subject: a, Cost: 1},
			stint.Charge{Policy: wide, Subject: b, Cost: 1}, stint.Charge{Policy: narrow, Subject: everyone, Cost: 1})
	}
	ctx := context.Background()

	id := stint.NewEvaluationID("test", "repeated")
	for n := range 3 {
		v, err := s.Decide(ctx, across(id))
		if err != nil || !v.Allowed || v.Len() != 3 || v.Decision(2).Remaining != 19 {
			t.Fatalf("repeat %d: %v, %v", n, v.Allowed, err)
		}
	}

	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 40 {
		callers.Go(func() {
			v, err := s.Decide(ctx, across(stint.EvaluationID{}))
			if err != nil {
				t.Error(err)
			}
			if v.Allowed {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if admitted.Load() > 19 {
		t.Errorf("%d admitted of 19", admitted.Load())
	}
	for _, who := range []stint.Pseudonym{a, b} {
		if got, want := left(t, s, wide, who), 1000-1-admitted.Load(); got != want {
			t.Errorf("%d left, want %d: what was refused must have been given back", got, want)
		}
	}
	for left(t, s, narrow, everyone) > 0 {
		if v, err := s.Decide(ctx, across(stint.EvaluationID{})); err != nil || !v.Allowed {
			t.Fatalf("there is room: %v, %v", v.Allowed, err)
		}
	}
	before := left(t, s, wide, a)
	v, err := s.Decide(ctx, across(stint.EvaluationID{}))
	if err != nil || v.Allowed || v.Binding != 2 || v.Decision(2).RetryAfter == 0 || left(t, s, wide, a) != before {
		t.Errorf("over the limit: %v, binding %d, %v", v.Allowed, v.Binding, err)
	}
	if v, err := s.Decide(ctx, across(id)); err != nil || !v.Allowed {
		t.Errorf("what was admitted under an id is still so: %v, %v", v.Allowed, err)
	}

	off := policy(t, stint.Policy{ID: "off", Limits: wide.Limits, Dedup: stint.Dedup{Off: true}})
	_, err = s.Decide(ctx, group(stint.Take, stint.EvaluationID{}, 0, stint.Charge{Policy: off, Subject: a, Cost: 1}, stint.Charge{Policy: off, Subject: b, Cost: 1}))
	if !errors.Is(err, stint.Incompatible) {
		t.Errorf("without deduplication: %v", err)
	}
}

// While a slot moves, key by key, single charges see no error and are exact.
func TestAMovingSlotIsFollowed(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.TokenBucket{Capacity: 1000, Refill: 1, Every: 24 * time.Hour}}})
	who := named(7)
	must := func(want int64) {
		t.Helper()
		v, err := take(s, p, who)
		if d := v.Decision(0); err != nil || d.Remaining != want {
			t.Fatalf("remaining %d, want %d: %v", d.Remaining, want, err)
		}
	}
	must(999)
	cl := s.topology.(*cluster)
	charge := stint.Charge{Policy: p, Subject: who}
	key, slot := cl.encoder.counterKey(&charge), fmt.Sprint(cl.slot(&charge))
	owner, _ := cl.owner(context.Background(), cl.slot(&charge), time.Now().Add(time.Second))
	addr, _ := owner.where(context.Background())
	i := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Addr() == addr })
	source, target := nodes[i], nodes[(i+1)%len(nodes)]
	sourceID, targetID := source.CLI("cluster", "myid"), target.CLI("cluster", "myid")

	target.CLI("cluster", "setslot", slot, "importing", sourceID)
	source.CLI("cluster", "setslot", slot, "migrating", targetID)
	must(998) // the keys are all still there
	for k := range strings.FieldsSeq(source.CLI("cluster", "getkeysinslot", slot, "100")) {
		if strings.Contains(k, ":session:") {
			migrate(source, target, k)
		}
	}
	must(997) // the records have gone, the counter has not
	migrate(source, target, key)
	must(996) // and now it has
	if _, err := take(s, p, who); err != nil {
		t.Error(err)
	}
	target.CLI("cluster", "setslot", slot, "node", targetID)
	source.CLI("cluster", "setslot", slot, "node", targetID)
	must(994)
	must(993)
}

func migrate(source, target *redistest.Server, key string) {
	host, port, _ := strings.Cut(target.Addr(), ":")
	source.CLI("migrate", host, port, key, "0", "5000")
}

// A primary dies under load: nobody waits longer than the deadline, and within
// 15 s of the vote all subjects are decided again.
func TestAClusterHealsAfterItsPrimaryDied(t *testing.T) {
	nodes, s := clustered(t, 3, 1)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 1000, Window: 100 * 24 * time.Hour}}})
	for i := range 12 {
		if _, err := take(s, p, named(i)); err != nil {
			t.Fatal(err)
		}
	}
	nodes[0].Kill()
	stop := time.Now().Add(30 * time.Second)
	for healed := false; !healed; {
		healed = true
		for i := range 12 {
			asked := time.Now()
			_, err := take(s, p, named(i))
			if waited := time.Since(asked); waited > 2*time.Second {
				t.Errorf("answered after %v, with a deadline of 1s", waited)
			}
			if err != nil {
				healed = false
				if !errors.Is(err, stint.Unavailable) && !errors.Is(err, stint.Indeterminate) {
					t.Fatal(err)
				}
			}
		}
		if time.Now().After(stop) {
			t.Fatal("not healed within 30s")
		}
	}
}

// Slots move under load, key by key as an operator moves them: no single charge
// sees an error, and each counter holds what was admitted.
func TestSlotsMoveUnderLoadWithoutAnError(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 1 << 40, Window: 100 * 24 * time.Hour}}})
	const subjects = 200
	var admitted [subjects]atomic.Int64
	var callers sync.WaitGroup
	done := make(chan struct{})
	for c := range 8 {
		callers.Go(func() {
			for i := c; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				g := group(stint.Take, stint.EvaluationID{}, 0, stint.Charge{Policy: p, Subject: named(i % subjects), Cost: 1})
				g.Deadline = time.Now().Add(5 * time.Second)
				if v, err := s.Decide(context.Background(), g); err != nil || !v.Allowed {
					t.Errorf("subject %d: %v, %v", i%subjects, v.Allowed, err)
					return
				}
				admitted[i%subjects].Add(1)
			}
		})
	}
	ids := []string{nodes[0].CLI("cluster", "myid"), nodes[1].CLI("cluster", "myid")}
	for i := range 2 {
		nodes[0].CLI("--cluster", "reshard", nodes[0].Addr(), "--cluster-from", ids[i], "--cluster-to", ids[1-i],
			"--cluster-slots", "800", "--cluster-yes")
	}
	close(done)
	callers.Wait()
	for i := range subjects {
		if got := 1<<40 - left(t, s, p, named(i)); got != admitted[i].Load() {
			t.Errorf("subject %d: %d spent, %d admitted", i, got, admitted[i].Load())
		}
	}
}

func TestAClosedClusterAnswersThatItIs(t *testing.T) {
	_, s := clustered(t, 3, 0)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}}})
	if _, err := take(s, p, named(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	one := stint.Charge{Policy: p, Subject: named(1), Cost: 1}
	for _, g := range []stint.Group{
		group(stint.Take, stint.EvaluationID{}, 0, one),
		group(stint.Take, stint.EvaluationID{}, 0, one, stint.Charge{Policy: p, Subject: named(2), Cost: 1}),
		group(stint.Refund, stint.NewEvaluationID("test", "x"), 0, one),
	} {
		if _, err := s.Decide(context.Background(), g); !errors.Is(err, stint.Unavailable) {
			t.Errorf("got %v, want %s", err, stint.Unavailable)
		}
	}
}

// Nodes that accept and never answer: who waits for the map of slots waits no
// longer than its own deadline, however many do.
func TestNobodyWaitsForTheMapBeyondItsDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts into its backlog, and is never read
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := patient(l.Addr().String())
	c.Cluster = true
	s := open(t, c)
	p := policy(t, stint.Policy{ID: "p", Limits: []stint.Limit{stint.FixedWindow{Limit: 9, Window: time.Hour}}})
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			asked := time.Now()
			g := group(stint.Take, stint.EvaluationID{}, 0, stint.Charge{Policy: p, Subject: named(1), Cost: 1})
			g.Deadline = asked.Add(50 * time.Millisecond)
			_, err := s.Decide(context.Background(), g)
			if waited := time.Since(asked); !errors.Is(err, stint.BeforeSend) || waited > 5*time.Second {
				t.Errorf("answered %v after %v", err, waited)
			}
		})
	}
	callers.Wait()
}
