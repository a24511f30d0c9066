package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/stintlimit/stint"
)

const (
	peekCount    = 1000
	peekFailures = 10               // so many failures, and there is no more to learn
	peekDuration = 20 * time.Second // nor after this long
)

// scripts: one that is missing is loaded by the first evaluation that needs it.
func (s *inspected) scripts(ctx context.Context) {
	const check = "scripts"
	known := newScripts()
	digests := []string{known.group.sha}
	for _, script := range known.single[stint.AlgorithmFixedWindow:] {
		digests = append(digests, script.sha)
	}
	there, err := s.inspector.ScriptExists(ctx, digests...).Result()
	if err != nil {
		s.unseen(check, err)
		return
	}
	loaded := 0
	for _, ok := range there {
		if ok {
			loaded++
		}
	}
	if loaded == len(digests) {
		s.report(check, StatusPass, fmt.Sprintf("all %d are on the server", loaded), "")
		return
	}
	s.report(check, StatusInfo, fmt.Sprintf("%d of %d are on the server; the first evaluation that needs another loads it", loaded, len(digests)), "")
}

// peek evaluates without spending, one at a time, for subjects that nobody is.
func (in *inspection) peek(ctx context.Context) {
	const check = "latency"
	took, failed, err := in.timePeeks(ctx)
	if len(took) == 0 && err == nil {
		in.report(Finding{Check: check, Status: StatusWarn, Detail: "could not look: there was no time left for a peek", Advice: "run it again"})
		return
	}
	if len(took) == 0 || failed == peekFailures {
		in.report(Finding{Check: check, Status: StatusFail, Detail: fmt.Sprintf("%d of %d peeks failed: %v", failed, failed+len(took), err), Advice: "evaluations fail in the same way: correct this, or what failed above"})
		return
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100] }
	f := Finding{Check: check, Status: StatusPass, Detail: fmt.Sprintf("%d peeks: half within %v, 99%% within %v, all within %v", len(took), brief(at(50)), brief(at(99)), brief(at(100)))}
	switch limit := in.config.CommandTimeout; {
	case failed > 0:
		f.Status = StatusWarn
		f.Detail += fmt.Sprintf("; %d failed: %v", failed, err)
		f.Advice = "evaluations fail in the same way: look at the network and at SLOWLOG"
	case at(99) > limit/2:
		f.Status = StatusWarn
		f.Detail += fmt.Sprintf("; command_timeout is %v", limit)
		f.Advice = "bring the server nearer, look at SLOWLOG, or raise command_timeout and deadline"
	}
	in.report(f)
}

// brief rounds to what a reader compares.
func brief(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// timePeeks returns how long each peek took that succeeded, how many did not,
// and how the first of those failed.
func (in *inspection) timePeeks(ctx context.Context) (took []time.Duration, failed int, first error) {
	policy, err := stint.NewPolicy(stint.Policy{ID: "doctor", Limits: []stint.Limit{stint.FixedWindow{Limit: 1, Window: time.Second}}})
	if err != nil {
		return nil, 0, err
	}
	c := in.config
	c.Senders = 1
	store, err := Open(c)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = store.Close() }()
	end := time.Now().Add(peekDuration)
	for i := range uint64(peekCount) {
		asked := time.Now()
		if failed == peekFailures || asked.After(end) || ctx.Err() != nil {
			break
		}
		g := stint.Group{Op: stint.Peek, Now: in.now().UnixMilli(), Deadline: asked.Add(c.CommandTimeout)}
		who := stint.Pseudonym{Version: 1}
		binary.BigEndian.PutUint64(who.Digest[8:], i)
		g.Append(stint.Charge{Policy: policy, Subject: who, Cost: 1})
		if _, err := store.Decide(ctx, g); err != nil {
			failed++
			if first == nil {
				first = err
			}
			continue
		}
		took = append(took, time.Since(asked))
	}
	return took, failed, first
}
