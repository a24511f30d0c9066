package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintlimit/stint"
)

var (
	errUndeduplicated = errors.New("a group over several slots of a Cluster can only be undone if deduplication is on for all its policies")
	errForgetful      = errors.New("a group over several slots of a Cluster is repeatable by its id only if all its policies remember ids for as long as the first")
)

// part is what of a group lies in one slot.
type part struct {
	key    string // of its first counter: parts are taken in this order
	slot   int
	group  stint.Group
	places []int // of its charges in the whole group
}

// decideAcross decides a group over several slots, which no script can: it
// peeks at all, then takes in the order of keys, and gives back what was taken
// if a later part is refused after all.
//
// It never admits what a part refuses. A racing caller may be refused until
// what was taken has been given back; a crash in between leaves at most the
// group's cost spent until its windows pass; RetryAfter is an upper bound.
func (c *cluster) decideAcross(ctx context.Context, g stint.Group) (stint.Verdict, error) {
	parts := c.split(&g)
	if g.Op != stint.Take {
		verdicts, err := c.each(ctx, parts)
		if err != nil {
			return stint.Verdict{}, err
		}
		return joined(g.Len(), parts, verdicts), nil
	}
	if err := recordable(&g, parts); err != nil {
		return stint.Verdict{}, err
	}
	seen, err := c.each(ctx, peeks(parts))
	if err != nil {
		return stint.Verdict{}, err
	}
	i := slices.IndexFunc(seen, func(v stint.Verdict) bool { return !v.Allowed })
	if i >= 0 {
		if g.ID.IsZero() {
			return joined(g.Len(), parts, seen), nil
		}
		// The caller may be repeating what was admitted: then the part that
		// refuses now has a record of it.
		v, err := c.decideAt(ctx, parts[i].group, parts[i].slot)
		switch {
		case err != nil:
			return stint.Verdict{}, err
		case !v.Allowed:
			seen[i] = v
			return joined(g.Len(), parts, seen), nil
		case !replayed(&v): // room has come since; the denial stands
			if err := c.giveBack(parts[i:i+1], []stint.Verdict{v}); err != nil {
				return stint.Verdict{}, notGivenBack(err)
			}
			return joined(g.Len(), parts, seen), nil
		}
	}
	return c.takeInOrder(ctx, g.Len(), parts, seen)
}

// recordable says why the parts of a group could not be given back, or, if its
// caller may repeat it, not be remembered for as long as the whole.
func recordable(g *stint.Group, parts []part) error {
	for i := range g.Len() {
		if g.Charge(i).Policy.Dedup.Off {
			return &stint.Error{Reason: stint.CostInvalid, Cause: errUndeduplicated}
		}
	}
	for _, p := range parts {
		if !g.ID.IsZero() && p.group.Charge(0).Policy.Dedup.TTL < g.Charge(0).Policy.Dedup.TTL {
			return &stint.Error{Reason: stint.CostInvalid, Cause: errForgetful}
		}
	}
	return nil
}

// split divides a group by slot. Parts that are taken have ids of their own,
// derived from the group's, by which they can be given back.
func (c *cluster) split(g *stint.Group) []part {
	id := g.ID
	if id.IsZero() {
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails
		id = stint.NewEvaluationID("stint", hex.EncodeToString(random[:]))
	}
	var parts []part
	for i, ch := range g.Charges() {
		key := c.encoder.counterKey(ch)
		slot := slotOf(key)
		at := slices.IndexFunc(parts, func(p part) bool { return p.slot == slot })
		if at < 0 {
			at = len(parts)
			parts = append(parts, part{key: key, slot: slot, group: stint.Group{
				Op: g.Op, ID: stint.NewEvaluationID(id.String(), fmt.Sprint(slot)), Now: g.Now, Deadline: g.Deadline,
			}})
		}
		p := &parts[at]
		p.key = min(p.key, key)
		p.group.Append(*ch)
		p.places = append(p.places, i)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.key, b.key) })
	return parts
}

func peeks(parts []part) []part {
	looks := slices.Clone(parts)
	for i := range looks {
		looks[i].group.Op, looks[i].group.ID = stint.Peek, stint.EvaluationID{}
	}
	return looks
}

// each decides parts one after another. What a refund has given back before a
// later part failed stays given back.
func (c *cluster) each(ctx context.Context, parts []part) ([]stint.Verdict, error) {
	verdicts := make([]stint.Verdict, len(parts))
	for i := range parts {
		v, err := c.decideAt(ctx, parts[i].group, parts[i].slot)
		if err != nil && i > 0 && parts[i].group.Op == stint.Refund {
			err = &stint.Error{Reason: stint.OutcomeUnknown, Cause: fmt.Errorf("a part of the group was given back: %w", err)}
		}
		if err != nil {
			return nil, err
		}
		verdicts[i] = v
	}
	return verdicts, nil
}

// takeInOrder takes the parts; seen is what peeking at them said. What an
// earlier evaluation of the same id has taken is not this one's to give back.
func (c *cluster) takeInOrder(ctx context.Context, n int, parts []part, seen []stint.Verdict) (stint.Verdict, error) {
	taken := make([]stint.Verdict, len(parts))
	var own []part
	var receipts []stint.Verdict
	repeating := false
	for i := range parts {
		v, err := c.decideAt(ctx, parts[i].group, parts[i].slot)
		if err == nil && v.Allowed {
			taken[i] = v
			if replayed(&v) {
				repeating = true
			} else {
				own, receipts = append(own, parts[i]), append(receipts, v)
			}
			continue
		}
		doubt := stint.ReasonOf(err) == stint.OutcomeUnknown
		if doubt && !repeating { // it may still be taken: giving it back forbids that
			own, receipts = append(own, parts[i]), append(receipts, stint.Verdict{})
		}
		if undone := c.giveBack(own, receipts); undone != nil {
			return stint.Verdict{}, notGivenBack(undone)
		}
		switch {
		case err == nil:
			seen[i] = v
			return joined(n, parts, seen), nil
		case repeating:
			return stint.Verdict{}, &stint.Error{Reason: stint.OutcomeUnknown, Cause: fmt.Errorf("an earlier evaluation of the id has taken a part of the group: %w", err)}
		case doubt:
			return stint.Verdict{}, &stint.Error{Reason: stint.NoMutation, Cause: fmt.Errorf("what may have been taken was given back: %w", err)}
		}
		return stint.Verdict{}, err
	}
	return joined(n, parts, taken), nil
}

// replayed reports whether a verdict was recorded by an earlier evaluation.
func replayed(v *stint.Verdict) bool {
	d := v.Decision(0)
	return d.Replayed
}

func notGivenBack(err error) error {
	return &stint.Error{Reason: stint.OutcomeUnknown, Cause: fmt.Errorf("a part of the group could not be given back: %w", err)}
}

// giveBack refunds parts by their ids. It has time of its own: the deadline of
// the group may be what ended it.
func (c *cluster) giveBack(parts []part, taken []stint.Verdict) error {
	var errs []error
	for i, p := range parts {
		g := stint.Group{Op: stint.Refund, ID: p.group.ID, Now: p.group.Now, Deadline: time.Now().Add(4 * c.config.CommandTimeout)}
		for j, ch := range p.group.Charges() {
			if j < taken[i].Len() {
				ch.At = decisionAt(&taken[i], j)
			}
			g.Append(*ch)
		}
		if _, err := c.decideAt(context.Background(), g, p.slot); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func decisionAt(v *stint.Verdict, i int) int64 {
	d := v.Decision(i)
	if d.Outcome != stint.Allowed {
		return 0
	}
	return d.At
}

// joined puts the decisions of parts in the order of the group's charges.
func joined(n int, parts []part, verdicts []stint.Verdict) stint.Verdict {
	all := make([]stint.Decision, n)
	for i, p := range parts {
		for j, place := range p.places {
			all[place] = verdicts[i].Decision(j)
		}
	}
	var v stint.Verdict
	for _, d := range all {
		v.Append(d)
	}
	return v
}
