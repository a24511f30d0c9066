package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/internal/redistest"
)

// pair is an evaluation over two slots of which the first has room for ever
// and the second for one.
type pair struct {
	whole  stint.Group
	parts  []part
	narrow stint.Charge
	wide   *stint.Policy
}

func newPair(t *testing.T, s *Store, id string) pair {
	t.Helper()
	limit := func(id string, n int64) *stint.Policy {
		return policy(t, stint.Policy{ID: id, Limits: []stint.Limit{stint.FixedWindow{Limit: n, Window: 100 * 24 * time.Hour}}, Dedup: stint.Dedup{TTL: time.Hour}})
	}
	p := pair{wide: limit("wide", 1000)}
	narrow := limit("narrow", 1)
	for i := 0; ; i++ { // until the wide one comes first, in a slot of its own
		p.narrow = stint.Charge{Policy: narrow, Subject: named(i + 1000), Cost: 1}
		p.whole = group(stint.Take, stint.NewEvaluationID("test", id), 0, stint.Charge{Policy: p.wide, Subject: named(i), Cost: 1}, p.narrow)
		p.parts = s.topology.(*cluster).split(&p.whole)
		if len(p.parts) == 2 && p.parts[0].group.Charge(0).Policy == p.wide && ownerOf(t, s, p.parts[0].slot) != ownerOf(t, s, p.parts[1].slot) {
			return p
		}
	}
}

// ownerOf returns the address of the primary of a slot.
func ownerOf(t *testing.T, s *Store, slot int) string {
	t.Helper()
	ctx := context.Background()
	n, err := s.topology.(*cluster).owner(ctx, slot, time.Now().Add(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := n.where(ctx)
	return addr
}

func serverAt(t *testing.T, nodes []*redistest.Server, addr string) *redistest.Server {
	t.Helper()
	i := slices.IndexFunc(nodes, func(n *redistest.Server) bool { return n.Addr() == addr })
	if i < 0 {
		t.Fatalf("no node has the address %s", addr)
	}
	return nodes[i]
}

// A process that dies between two slots leaves one of them charged. Whoever
// repeats the id, which nobody can without one, completes the evaluation and
// charges nothing twice.
func TestAGroupLeftInTheMiddleIsCompletedByItsId(t *testing.T) {
	_, s := clustered(t, 3, 0)
	p := newPair(t, s, "left in the middle")
	who := p.whole.Charge(0).Subject
	if v, err := s.topology.(*cluster).decideAt(context.Background(), p.parts[0].group, p.parts[0].slot); err != nil || !v.Allowed {
		t.Fatal(v.Allowed, err)
	}
	if got := left(t, s, p.wide, who); got != 999 {
		t.Errorf("%d left of the first slot, want 999: at most the group's cost is spent", got)
	}
	for range 2 {
		v, err := s.Decide(context.Background(), p.whole)
		if err != nil || !v.Allowed || left(t, s, p.wide, who) != 999 || left(t, s, p.narrow.Policy, p.narrow.Subject) != 0 {
			t.Errorf("repeated: %v, %v", v.Allowed, err)
		}
	}
}

// What was taken in one slot is given back when the next refuses, and its id
// with it: for the TTL of the record nothing can be spent under it, so that an
// attempt that is late cannot either.
func TestWhatWasGivenBackCannotBeSpentUnderItsId(t *testing.T) {
	_, s := clustered(t, 3, 0)
	p := newPair(t, s, "given back")
	ctx, cl, who := context.Background(), s.topology.(*cluster), p.whole.Charge(0).Subject
	seen, err := cl.each(ctx, peeks(p.parts))
	if err != nil {
		t.Fatal(err)
	}
	rival := group(stint.Take, stint.NewEvaluationID("test", "rival"), 0, p.narrow)
	decide(t, s, rival) // between the look and the charge
	v, err := cl.takeInOrder(ctx, 2, p.parts, seen)
	if err != nil || v.Allowed || left(t, s, p.wide, who) != 1000 {
		t.Errorf("%v, %v, %d left: want denied, and all given back", v.Allowed, err, left(t, s, p.wide, who))
	}
	rival.Op = stint.Refund
	decide(t, s, rival)
	if _, err := s.Decide(ctx, p.whole); !errors.Is(err, stint.EvaluationMismatch) {
		t.Errorf("its id again: %v, want %s", err, stint.EvaluationMismatch)
	}
	p.whole.ID = stint.NewEvaluationID("test", "another")
	if v, err := s.Decide(ctx, p.whole); err != nil || !v.Allowed {
		t.Errorf("another id: %v, %v", v.Allowed, err)
	}
}

// The first slot's server dies while the second's keeps the group waiting: what
// was charged cannot be given back, and nobody says that it was.
func TestWhatCannotBeGivenBackIsIndeterminate(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	p := newPair(t, s, "cannot be given back")
	first := serverAt(t, nodes, ownerOf(t, s, p.parts[0].slot))
	second := serverAt(t, nodes, ownerOf(t, s, p.parts[1].slot))
	ctx, cl, who := context.Background(), s.topology.(*cluster), p.whole.Charge(0).Subject
	seen, err := cl.each(ctx, peeks(p.parts))
	if err != nil {
		t.Fatal(err)
	}
	decide(t, s, group(stint.Take, stint.EvaluationID{}, 0, p.narrow))
	second.Pause()
	done := make(chan error)
	go func() {
		_, err := cl.takeInOrder(ctx, 2, p.parts, seen)
		done <- err
	}()
	eventually(t, "the first slot is charged", func() bool { return left(t, s, p.wide, who) == 999 })
	first.Kill()
	second.Resume()
	wantProved(t, <-done, stint.OutcomeUnknown, "could not be given back")
}

// The second slot's server hangs until the group's time is over, so that nobody
// knows what became of that part; giving both back makes it known.
func TestWhatIsInDoubtAndGivenBackIsKnownToBeUnspent(t *testing.T) {
	nodes := redistest.StartCluster(t, 3, 0, time.Second)
	c := patient(nodes[0].Addr())
	c.Cluster, c.Clock = true, ServerClock
	c.Senders = 1 // whose connection is there before the server hangs
	s := open(t, c)
	p := newPair(t, s, "in doubt")
	second := serverAt(t, nodes, ownerOf(t, s, p.parts[1].slot))
	ctx, cl, who := context.Background(), s.topology.(*cluster), p.whole.Charge(0).Subject
	seen, err := cl.each(ctx, peeks(p.parts))
	if err != nil {
		t.Fatal(err)
	}
	second.Pause()
	done := make(chan error)
	go func() { // in less than the Cluster takes to miss a node
		p.parts[1].group.Deadline = time.Now().Add(300 * time.Millisecond)
		_, err := cl.takeInOrder(ctx, 2, p.parts, seen)
		done <- err
	}()
	eventually(t, "the first slot is charged", func() bool { return left(t, s, p.wide, who) == 999 })
	eventually(t, "and given back, the second being in doubt", func() bool { return left(t, s, p.wide, who) == 1000 })
	second.Resume()
	wantProved(t, <-done, stint.NoMutation, "given back")
	if wide, narrow := left(t, s, p.wide, who), left(t, s, p.narrow.Policy, p.narrow.Subject); wide != 1000 || narrow != 1 {
		t.Errorf("%d and %d left, want 1000 and 1", wide, narrow)
	}
}

// While the keys of a slot are on two nodes, what needs more than one of them
// is not decided and not spent; once they are together again, it is.
func TestWhatNeedsARecordWaitsForAMovingSlot(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	windows := func(id string) *stint.Policy {
		return policy(t, stint.Policy{ID: id, Limits: []stint.Limit{stint.FixedWindow{Limit: 10, Window: 100 * 24 * time.Hour}}, Dedup: stint.Dedup{TTL: time.Hour}})
	}
	a, b, who := windows("a"), windows("b"), named(7)
	charges := []stint.Charge{{Policy: a, Subject: who, Cost: 1}, {Policy: b, Subject: who, Cost: 1}}
	calls := 0
	single := func() error {
		calls++
		_, err := s.Decide(context.Background(), group(stint.Take, stint.NewEvaluationID("test", fmt.Sprint(calls)), 0, charges[0]))
		return err
	}
	both := func() error {
		_, err := s.Decide(context.Background(), group(stint.Take, stint.EvaluationID{}, 0, charges...))
		return err
	}
	if err := errors.Join(single(), both()); err != nil {
		t.Fatal(err)
	}
	slot := s.topology.(*cluster).slot(&charges[0])
	source := serverAt(t, nodes, ownerOf(t, s, slot))
	target := nodes[(slices.Index(nodes, source)+1)%len(nodes)]
	sourceID, targetID := source.CLI("cluster", "myid"), target.CLI("cluster", "myid")
	target.CLI("cluster", "setslot", fmt.Sprint(slot), "importing", sourceID)
	source.CLI("cluster", "setslot", fmt.Sprint(slot), "migrating", targetID)
	inSlot := func() []string {
		return strings.Fields(source.CLI("cluster", "getkeysinslot", fmt.Sprint(slot), "100"))
	}
	counter := s.topology.(*cluster).encoder.counterKey(&charges[0])
	for _, key := range inSlot() {
		if key != counter {
			migrate(source, target, key)
		}
	}
	wantProved(t, single(), stint.NoMutation, "TRYAGAIN")
	wantProved(t, both(), stint.NoMutation, "TRYAGAIN")
	for _, key := range inSlot() {
		migrate(source, target, key)
	}
	target.CLI("cluster", "setslot", fmt.Sprint(slot), "node", targetID)
	source.CLI("cluster", "setslot", fmt.Sprint(slot), "node", targetID)
	if err := errors.Join(single(), both()); err != nil {
		t.Error(err)
	}
	if got := []int64{left(t, s, a, who), left(t, s, b, who)}; !slices.Equal(got, []int64{6, 8}) {
		t.Errorf("%v left of 10, want 6 and 8", got)
	}
}

// Repeating the id of what was admitted never takes it back, whatever becomes of
// the repetition.
func TestARepetitionThatFailsGivesNothingBack(t *testing.T) {
	_, s := clustered(t, 3, 0)
	p := newPair(t, s, "repeated and failing")
	ctx, cl, who := context.Background(), s.topology.(*cluster), p.whole.Charge(0).Subject
	if v, err := s.Decide(ctx, p.whole); err != nil || !v.Allowed {
		t.Fatal(v.Allowed, err)
	}
	late := slices.Clone(p.parts)
	late[1].group.Deadline = time.Now()
	_, err := cl.takeInOrder(ctx, 2, late, make([]stint.Verdict, 2))
	wantProved(t, err, stint.OutcomeUnknown, "an earlier evaluation")
	if wide, narrow := left(t, s, p.wide, who), left(t, s, p.narrow.Policy, p.narrow.Subject); wide != 999 || narrow != 0 {
		t.Errorf("%d and %d left, want 999 and 0", wide, narrow)
	}
	if v, err := s.Decide(ctx, p.whole); err != nil || !v.Allowed {
		t.Errorf("repeated once more: %v, %v", v.Allowed, err)
	}
}

func TestARefundOfWhichAPartIsDoneIsNotCalledUndone(t *testing.T) {
	nodes, s := clustered(t, 3, 0)
	p := newPair(t, s, "half a refund")
	ctx, who := context.Background(), p.whole.Charge(0).Subject
	if v, err := s.Decide(ctx, p.whole); err != nil || !v.Allowed {
		t.Fatal(v.Allowed, err)
	}
	serverAt(t, nodes, ownerOf(t, s, p.parts[1].slot)).Kill()
	p.whole.Op = stint.Refund
	_, err := s.Decide(ctx, p.whole)
	wantProved(t, err, stint.OutcomeUnknown, "was given back")
	if got := left(t, s, p.wide, who); got != 1000 {
		t.Errorf("%d left of the first slot, want 1000", got)
	}
}

func TestPartsMustRememberForAsLongAsTheWhole(t *testing.T) {
	_, s := clustered(t, 3, 0)
	p := newPair(t, s, "forgetful")
	short := *p.narrow.Policy
	short.Dedup.TTL = time.Millisecond
	p.narrow.Policy = policy(t, short)
	g := group(stint.Take, p.whole.ID, 0, *p.whole.Charge(0), p.narrow)
	if _, err := s.Decide(context.Background(), g); !errors.Is(err, stint.Incompatible) {
		t.Errorf("got %v, want %s", err, stint.Incompatible)
	}
	g.ID = stint.EvaluationID{}
	if v, err := s.Decide(context.Background(), g); err != nil || !v.Allowed {
		t.Errorf("without an id: %v, %v", v.Allowed, err)
	}
}
