package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stintlimit/stint"
)

// Fixture is a store under test.
type Fixture struct {
	// Store is empty, and nothing else uses it. It trusts Group.Now.
	Store stint.Store

	// Forget drops everything the store keeps, as if all had expired.
	Forget func() error
}

// Run holds stores to the contract of [stint.Store]. newFixture makes a fresh
// one for each subtest and cleans up with t.Cleanup.
func Run(t *testing.T, newFixture func(t testing.TB) Fixture) {
	t.Helper()
	for _, group := range [...][]promise{
		figurePromises, counterPromises, groupPromises, dedupPromises, refundPromises, clockPromises, editPromises, concurrencyPromises,
	} {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) { p.check(&bench{TB: t, Fixture: newFixture(t), now: epoch}) })
		}
	}
	for _, tr := range traces(t) {
		t.Run("trace/"+strings.TrimSuffix(tr.Name, ".txt"), func(t *testing.T) { tr.Replay(t, newFixture(t)) })
	}
}

// promise is one sentence of the contract, and how it is checked.
type promise struct {
	name  string
	check func(*bench)
}

// epoch is where programs start: an instant, in epoch milliseconds, at which
// windows of any whole part of a day begin.
const epoch = int64(20_000 * 24 * time.Hour / time.Millisecond)

// bench is a store on the workbench: its clock is set by hand.
type bench struct {
	testing.TB
	Fixture
	now int64 // epoch ms
}

// at sets the clock to an offset from epoch.
func (b *bench) at(offset time.Duration) { b.now = epoch + offset.Milliseconds() }

// wait moves the clock on.
func (b *bench) wait(d time.Duration) { b.now += d.Milliseconds() }

// group makes a group at the bench's clock.
func (b *bench) group(op stint.Op, id stint.EvaluationID, charges ...stint.Charge) stint.Group {
	return newGroup(op, id, b.now, charges)
}

func newGroup(op stint.Op, id stint.EvaluationID, now int64, charges []stint.Charge) stint.Group {
	g := stint.Group{Op: op, ID: id, Now: now, Deadline: time.Now().Add(time.Minute)}
	for _, c := range charges {
		g.Append(c)
	}
	return g
}

// decide asks the store, and holds the shape of the answer to the contract.
func (b *bench) decide(g stint.Group) (stint.Verdict, error) {
	b.Helper()
	v, err := b.Store.Decide(context.Background(), g)
	if problem := malformed(&g, &v, err); problem != "" {
		b.Fatalf("%s: %s", showGroup(&g), problem)
	}
	return v, err
}

// must is decide where a decision is expected.
func (b *bench) must(g stint.Group) stint.Verdict {
	b.Helper()
	v, err := b.decide(g)
	if err != nil {
		b.Fatalf("%s: %v", showGroup(&g), err)
	}
	return v
}

// refused is decide where an error is expected.
func (b *bench) refused(want stint.Reason, g stint.Group) {
	b.Helper()
	v, err := b.decide(g)
	if got := stint.ReasonOf(err); got != want {
		b.Fatalf("%s: got reason %q (%v) and %s, want %q", showGroup(&g), got, err, showVerdict(&v), want)
	}
}

// take spends on one counter.
func (b *bench) take(p *stint.Policy, subject string, cost int64) stint.Decision {
	b.Helper()
	v := b.must(b.group(stint.Take, stint.EvaluationID{}, charge(p, subject, cost)))
	return v.Decision(0)
}

// peek looks at one counter.
func (b *bench) peek(p *stint.Policy, subject string, cost int64) stint.Decision {
	b.Helper()
	v := b.must(b.group(stint.Peek, stint.EvaluationID{}, charge(p, subject, cost)))
	return v.Decision(0)
}

func charge(p *stint.Policy, subject string, cost int64) stint.Charge {
	return stint.Charge{Policy: p, Subject: pseudonym(subject), Cost: cost}
}

// pseudonym is the counter of a name in a test: its first 16 bytes.
func pseudonym(name string) stint.Pseudonym {
	p := stint.Pseudonym{Version: 1}
	copy(p.Digest[:], name)
	return p
}

// id is a caller's evaluation id.
func id(name string) stint.EvaluationID { return stint.NewEvaluationID("storetest", name) }

// policy freezes a policy of the suite.
func policy(t testing.TB, p stint.Policy) *stint.Policy {
	t.Helper()
	frozen, err := stint.NewPolicy(p)
	if err != nil {
		t.Fatal(err)
	}
	return frozen
}
