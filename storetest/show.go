package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stintlimit/stint"
)

// malformed says what is wrong with the shape of an answer, whatever it
// decides, or "".
func malformed(g *stint.Group, v *stint.Verdict, err error) string {
	_, known := errors.AsType[*stint.Error](err)
	switch {
	case err != nil && v.Len() != 0:
		return "an error and a verdict"
	case err != nil && !known:
		return fmt.Sprintf("an error that is no *stint.Error: %v", err)
	case err == nil && v.Len() != g.Len():
		return fmt.Sprintf("%d decisions on %d charges, and no error", v.Len(), g.Len())
	}
	for i := range v.Len() {
		d := v.Decision(i)
		if d.Outcome == 0 {
			return fmt.Sprintf("decision %d has no outcome", i)
		}
		if want := len(g.Charge(i).Policy.Limits); d.Outcome != stint.ShadowFailed && d.Limits() != want {
			return fmt.Sprintf("decision %d has figures of %d limits, not %d", i, d.Limits(), want)
		}
	}
	return ""
}

// answer is a verdict or an error with everything in sight, for comparing.
type answer struct {
	Reason    stint.Reason
	Allowed   bool
	Binding   int
	Decisions []decision
}

type decision struct {
	Outcome    string
	Limit      int
	Remaining  int64
	RetryAfter time.Duration
	ResetAfter time.Duration
	MoreAfter  time.Duration
	At         int64
	Replayed   bool
	Limits     []limit
}

type limit struct {
	Remaining int64
	MoreAfter time.Duration
	Refuses   bool
}

func open(v *stint.Verdict, err error) answer {
	a := answer{Reason: stint.ReasonOf(err), Allowed: v.Allowed, Binding: v.Binding}
	for i := range v.Len() {
		d := v.Decision(i)
		o := decision{
			Outcome: d.Outcome.String(), Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter,
			ResetAfter: d.ResetAfter, MoreAfter: d.MoreAfter, At: d.At, Replayed: d.Replayed,
		}
		for j := range d.Limits() {
			s := d.Standing(j)
			o.Limits = append(o.Limits, limit{s.Remaining, s.MoreAfter, d.Refuses(j)})
		}
		a.Decisions = append(a.Decisions, o)
	}
	return a
}

// showGroup writes a group as traces do.
func showGroup(g *stint.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %v %s", time.Duration(g.Now-epoch)*time.Millisecond, [...]string{"take", "peek", "refund"}[g.Op])
	for i, c := range g.Charges() {
		if i > 0 {
			b.WriteByte(',')
		}
		name := strings.TrimRight(string(c.Subject.Digest[:]), "\x00")
		fmt.Fprintf(&b, " %s@%s %d", name, c.Policy.ID, c.Cost)
		if c.At != 0 {
			fmt.Fprintf(&b, " spent=%v", time.Duration(c.At-epoch)*time.Millisecond)
		}
	}
	if !g.ID.IsZero() {
		fmt.Fprintf(&b, " id=%.8s", g.ID)
	}
	return b.String()
}

// showVerdict writes a verdict as traces expect it.
func showVerdict(v *stint.Verdict) string {
	if v.Len() == 0 {
		return "no verdict"
	}
	var b strings.Builder
	if v.Len() > 1 {
		fmt.Fprintf(&b, "%s binding=%d:", map[bool]string{true: "allowed", false: "denied"}[v.Allowed], v.Binding)
	}
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if v.Len() > 1 {
			b.WriteByte(' ')
		}
		d := v.Decision(i)
		b.WriteString(showDecision(&d))
	}
	return b.String()
}

func showDecision(d *stint.Decision) string {
	text := d.Outcome.String()
	if d.Outcome == stint.ShadowFailed {
		return text
	}
	text += fmt.Sprintf(" remaining=%d", d.Remaining)
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"retry", d.RetryAfter}, {"more", d.MoreAfter}, {"reset", d.ResetAfter}} {
		if f.d != 0 {
			text += fmt.Sprintf(" %s=%v", f.name, f.d)
		}
	}
	text += fmt.Sprintf(" limit=%d now=%v", d.Limit, time.Duration(d.At-epoch)*time.Millisecond)
	if d.Replayed {
		text += " replayed"
	}
	return text
}
