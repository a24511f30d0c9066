package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/stintlimit/stint"
)

// Program is what one client process does: several callers that spend at
// random, repeat what ended unknown, and write down everything.
type Program struct {
	Seed    uint64
	Process int
	Clock   string // ServerClock or CallerClock: how the store decides
	Prefix  string // of the store's keys; one for each clock
	Start   int64  // of the run, epoch µs
	Until   int64  // no new call from then on, epoch µs
	Callers int
	Pause   time.Duration // between calls of one caller
	Repeat  time.Duration // how long a call is repeated for; much less than Dedup.TTL
	Far     int           // how many of a hundred steps of the process's clock may go further than a server tolerates
}

// Settle is how long after its generation, or after Until, the last attempt of
// a call, and of its refund, may still run.
func (p *Program) Settle() time.Duration { return 2*p.Repeat + time.Second }

// caller is one goroutine of a program.
type caller struct {
	*Program
	recorder *Recorder
	limiter  *stint.Limiter
	rng      *rand.Rand
	now      time.Time // what the limiter's clock says
	next     func() int
}

// Run runs the program on a store and returns when its last call has.
func (p *Program) Run(ctx context.Context, store stint.Store, r *Recorder) error {
	var mu sync.Mutex
	var numbers int
	next := func() int {
		mu.Lock()
		defer mu.Unlock()
		numbers++
		return numbers
	}
	var callers sync.WaitGroup
	for n := range p.Callers {
		c := &caller{Program: p, recorder: r, next: next}
		c.rng = rand.New(rand.NewPCG(p.Seed, uint64(p.Process)<<16|uint64(n)))
		l, err := stint.New(store, Policies(), stint.WithClock(func() time.Time { return c.now }))
		if err != nil {
			return err
		}
		c.limiter = l
		callers.Go(func() { c.run(ctx) })
	}
	callers.Wait()
	return r.Err()
}

func (c *caller) run(ctx context.Context) {
	wait(ctx, time.Until(time.UnixMicro(c.Start)))
	for time.Now().UnixMicro() < c.Until && ctx.Err() == nil {
		o := c.choose()
		c.carryOut(ctx, o)
		if o.refund = o.lent && c.rng.IntN(4) > 0; o.refund {
			c.carryOut(ctx, o)
		}
		wait(ctx, c.Pause/2+time.Duration(c.rng.Int64N(int64(c.Pause))))
	}
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// order is a call that is yet to be made.
type order struct {
	peek     bool
	lent     bool // refund it afterwards
	refund   bool
	id       string
	requests []stint.Request
}

// choose draws the next call. Some have an id that every process uses at the
// same time for the same call.
func (c *caller) choose() order {
	since := time.Now().UnixMicro() - c.Start
	if c.rng.IntN(10) > 0 {
		o := draw(c.rng, since)
		if o.id != "" {
			o.id = strconv.Itoa(c.Process) + "-" + strconv.FormatUint(c.rng.Uint64(), 36)
		}
		return o
	}
	const slot = 50_000
	o := draw(rand.New(rand.NewPCG(c.Seed, uint64(since/slot))), since/slot*slot)
	if o.peek || o.requests[0].Policy == Plain {
		return o
	}
	o.id = "shared-" + c.Prefix + "-" + strconv.FormatInt(since/slot, 10)
	return o
}

// draw makes a call; its id, if it is to have one, is yet to be named.
func draw(rng *rand.Rand, since int64) order {
	generation := since / generationLength.Microseconds()
	young, old := Subject(fresh(generation, rng.IntN(subjects))), Subject(lasting(rng.IntN(subjects)))
	one := func(policy string, s stint.Pseudonym, most int64) stint.Request {
		return stint.Request{Policy: policy, Subject: s, Cost: 1 + rng.Int64N(most)}
	}
	o := order{}
	if rng.IntN(2) == 0 {
		o.id = "yes"
	}
	switch n := rng.IntN(100); {
	case n < 24:
		o.requests = []stint.Request{one(Solo, young, 10)}
	case n < 29:
		o.requests = []stint.Request{one(Scarce, young, 9)}
	case n < 42:
		o.id = ""
		o.requests = []stint.Request{one(Plain, young, 10)}
	case n < 66:
		short := []string{Fixed, Sliding, Bucket, Several}
		o.requests = []stint.Request{one(short[rng.IntN(len(short))], old, 5)}
	case n < 78:
		o.id, o.lent = "yes", true
		o.requests = []stint.Request{one(Lent, young, 10)}
		if rng.IntN(2) == 0 {
			o.requests = append(o.requests, one(Owed, young, 10))
		}
	case n < 85:
		o.requests = []stint.Request{one(Joint, young, 5), one(Scarce, young, 5)}
	case n < 95:
		o.requests = []stint.Request{one(Joint, young, 5), one(Fixed, young, 5), one(Bucket, young, 3), one(Sliding, young, 3)}
	default:
		o.peek, o.id = true, ""
		o.requests = []stint.Request{one(Solo, young, 10)}
	}
	return o
}

// carryOut makes a call, and repeats it under its id: always if the outcome is
// unknown, sometimes otherwise. Most repeats wait until the call before can run
// no more, because only then does a denial tell what became of it.
func (c *caller) carryOut(ctx context.Context, o order) {
	begun := time.Now()
	for {
		a, deadline := c.attempt(ctx, o)
		unknown := a.Reason.Kind() == stint.Indeterminate && a.Reason != ""
		odds := 10
		switch {
		case unknown:
			odds = 100
		case a.Reason != "":
			odds = 40
		}
		if o.id == "" || c.rng.IntN(100) >= odds || time.Since(begun) > c.Repeat || ctx.Err() != nil {
			return
		}
		pause := time.Duration(c.rng.Int64N(int64(100 * time.Millisecond)))
		if unknown && c.rng.IntN(5) > 0 {
			pause += time.Until(deadline) + 2*deadlineSlack*time.Microsecond
		}
		wait(ctx, max(0, pause))
	}
}

// attempt makes a call once.
func (c *caller) attempt(ctx context.Context, o order) (Answer, time.Time) {
	called := time.Now()
	deadline := called.Add(40*time.Millisecond + time.Duration(c.rng.Int64N(int64(360*time.Millisecond))))
	c.now = called.Add(drift(c.Seed, c.Process, time.Duration(called.UnixMicro()-c.Start)*time.Microsecond, c.Far))
	call := Call{
		Process: c.Process, Number: c.next(), Peek: o.peek, Refund: o.refund, ID: o.id, Clock: c.Clock,
		Now: c.now.UnixMilli(), Called: called.UnixMicro(), Deadline: deadline.UnixMicro(),
	}
	for _, r := range o.requests {
		call.Charges = append(call.Charges, Charge{Counter: Key(c.Prefix, r.Subject, c.limiter.Policy(r.Policy)), Policy: r.Policy, Cost: r.Cost})
	}
	c.recorder.Call(call)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	a := c.ask(ctx, o)
	a.Process, a.Number, a.Returned = call.Process, call.Number, time.Now().UnixMicro()
	c.recorder.Answer(a)
	return a, deadline
}

// ask evaluates a call by the door that fits it.
func (c *caller) ask(ctx context.Context, o order) Answer {
	var v stint.Verdict
	var err error
	switch {
	case o.peek:
		v, err = c.limiter.PeekGroup(ctx, o.requests)
	case o.refund:
		v, err = c.limiter.Refund(ctx, stint.NewEvaluationID("chaos", o.id), o.requests)
	case o.id == "" && len(o.requests) == 1:
		var d stint.Decision
		if d, err = c.limiter.Evaluate(ctx, o.requests[0]); err == nil {
			v.Append(d)
		}
	default:
		var id stint.EvaluationID
		if o.id != "" {
			id = stint.NewEvaluationID("chaos", o.id)
		}
		v, err = c.limiter.EvaluateGroup(ctx, id, o.requests)
	}
	if err != nil {
		return Answer{Reason: stint.ReasonOf(err), Cause: fmt.Sprint(err)}
	}
	a := Answer{Allowed: v.Allowed}
	for i := range v.Len() {
		d := v.Decision(i)
		a.Decisions = append(a.Decisions, Decision{Outcome: d.Outcome.String(), At: d.At, Remaining: d.Remaining, Replayed: d.Replayed})
	}
	return a
}

// Counter is one that a program may spend on.
type Counter struct {
	Policy  string
	Subject stint.Pseudonym
	Settled time.Duration // since the start: when nothing is asked of it any more
}

// Counters lists every counter that the program may spend on, in the order of
// settling.
func (p *Program) Counters() []Counter {
	length := time.Duration(p.Until-p.Start) * time.Microsecond
	var list []Counter
	for generation := range int64(length/generationLength) + 1 {
		end := min(length, time.Duration(generation+1)*generationLength) + p.Settle()
		for n := range subjects {
			for _, id := range []string{Solo, Joint, Scarce, Plain, Lent, Owed, Fixed, Bucket, Sliding} {
				list = append(list, Counter{Policy: id, Subject: Subject(fresh(generation, n)), Settled: end})
			}
		}
	}
	for n := range subjects {
		for _, id := range []string{Fixed, Sliding, Bucket, Several} {
			list = append(list, Counter{Policy: id, Subject: Subject(lasting(n)), Settled: length + p.Settle()})
		}
	}
	return list
}
