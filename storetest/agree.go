package storetest

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stintlimit/stint"
)

// Agree runs one random program of that many steps on both stores and fails t
// at the first answer in which they differ in any field, or in the reason of
// an error. The program follows from the seed: several policies, few subjects,
// takes, peeks, groups, repeated evaluation ids, refunds by id and by receipt, a
// clock that steps both ways, edited limits, costs at the edges, and now and
// then everything forgotten.
//
// Nothing expires by a store's own clock: counters are kept for ten years.
func Agree(t testing.TB, a, b Fixture, seed uint64, steps int) {
	t.Helper()
	p := newProgram(t, seed)
	for step := range steps {
		if p.oneIn(150) {
			p.forget(t, a, b)
		}
		p.stepClock()
		g := p.next()
		va, errA := a.Store.Decide(context.Background(), g)
		vb, errB := b.Store.Decide(context.Background(), g)
		p.note(showGroup(&g) + "   " + showAnswer(&va, errA))
		for _, problem := range []string{malformed(&g, &va, errA), malformed(&g, &vb, errB)} {
			if problem != "" {
				t.Fatalf("seed %d, step %d: %s\n%s", seed, step, problem, p.history())
			}
		}
		if !same(&va, &vb) || stint.ReasonOf(errA) != stint.ReasonOf(errB) {
			t.Fatalf("seed %d, step %d: the stores differ (-a +b):\n%s\na: %v\nb: %v\nthe policies:\n%s\nthe last steps, with the answers of a:\n%s",
				seed, step, cmp.Diff(open(&va, errA), open(&vb, errB)), errA, errB, p.policies(), p.history())
		}
		p.learn(&g, &va)
	}
}

// same compares what both answered in every field, also the unexported ones.
func same(a, b *stint.Verdict) bool {
	if a.Allowed != b.Allowed || a.Binding != b.Binding || a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if a.Decision(i) != b.Decision(i) {
			return false
		}
	}
	return true
}

func showAnswer(v *stint.Verdict, err error) string {
	if err != nil {
		return "error " + string(stint.ReasonOf(err))
	}
	return showVerdict(v)
}

// program is a random program on its way.
type program struct {
	*rand.Rand
	families []family
	now      int64 // epoch ms
	skew     int64 // how far the next caller is behind it, ms

	lines []string // what was done, for whoever must find out why
	asked []asked  // groups with an id, to be repeated and refunded
	last  map[counter]stint.Decision
}

// asked is a group with an id, and what its charges were answered: when they
// were spent, if they were.
type asked struct {
	stint.Group
	receipts []int64
}

// counter names a counter within a program.
type counter struct {
	key     string
	subject stint.Pseudonym
}

var subjects = [...]string{"alice", "bob", "carol"}

func newProgram(t testing.TB, seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 0x5714_7e57))
	return &program{Rand: r, families: families(t, r), now: epoch + 86_400_000 + r.Int64N(86_400_000), last: map[counter]stint.Decision{}}
}

func (p *program) oneIn(n int) bool { return p.IntN(n) == 0 }

// note keeps what was done last.
func (p *program) note(line string) {
	const kept = 25
	p.lines = append(p.lines, line)
	if len(p.lines) > kept {
		p.lines = p.lines[1:]
	}
}

func (p *program) history() string { return "  " + strings.Join(p.lines, "\n  ") }

func (p *program) forget(t testing.TB, a, b Fixture) {
	t.Helper()
	for _, f := range []Fixture{a, b} {
		if err := f.Forget(); err != nil {
			t.Fatalf("forget: %v", err)
		}
	}
	p.note("forget")
	clear(p.last)
}

// learn remembers the figures, so that later costs and waits meet the edges.
func (p *program) learn(g *stint.Group, v *stint.Verdict) {
	for i := range v.Len() {
		c := g.Charge(i)
		p.last[counter{c.Policy.Key(), c.Subject}] = v.Decision(i)
	}
	if !g.ID.IsZero() && g.Op != stint.Peek {
		a := asked{Group: *g, receipts: make([]int64, g.Len())}
		for i := range v.Len() {
			a.receipts[i] = v.Decision(i).At
		}
		p.asked = append(p.asked, a)
		if len(p.asked) > 8 {
			p.asked = p.asked[1:]
		}
	}
}
