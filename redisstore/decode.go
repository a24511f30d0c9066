package redisstore

import (
	"errors"
	"math"
	"time"

	"github.com/stintlimit/stint"
)

// The statuses of a batch and of a group: see lua/session.lua.
const (
	batchExecuted = 0
	batchRecorded = 1
	batchStale    = 2

	groupUnspent      = 0
	groupSpent        = 1
	groupExpired      = 2
	groupClockUnsafe  = 3
	groupIncompatible = 4
	groupMismatch     = 5
	groupUnrecordable = 6
	groupReplayed     = 7
)

// What a charge's flag says.
const (
	chargeFailed  = 0
	chargePasses  = 1
	chargeRefused = 2
)

// errMalformed: what came back is no reply of our scripts.
var errMalformed = errors.New("the reply is not of the form that the script gives")

// errExpired: the script met its fence.
var errExpired = errors.New("the evaluation reached the server after its deadline and refused itself")

// answer is what a batch says about one group.
type answer struct {
	verdict stint.Verdict
	err     error
	expired bool // the script met the group's fence
}

// reader consumes a reply; it goes dead at the first byte that is missing.
type reader struct {
	s    string
	dead bool
}

func (r *reader) int(bytes int) int64 {
	if len(r.s) < bytes {
		r.dead = true
		return 0
	}
	var v int64
	for i := range bytes {
		v = v<<8 | int64(r.s[i])
	}
	r.s = r.s[bytes:]
	return v
}

func (r *reader) i7() int64 {
	v := r.int(7)
	if v > stint.MaxInteger {
		r.dead = true
	}
	return v
}

// wait is a number of milliseconds that fits a time.Duration.
func (r *reader) wait() int64 {
	v := r.i7()
	if v > math.MaxInt64/int64(time.Millisecond) {
		r.dead = true
	}
	return v
}

// decodeHead returns the status of the batch and the server's time in ms.
func decodeHead(reply string) (status int, server int64, rest string, err error) {
	r := reader{s: reply}
	status = int(r.int(1))
	server = r.i7()
	if r.dead || status > batchStale {
		return 0, 0, "", errMalformed
	}
	return status, server, r.s, nil
}

// decodeAnswers returns one answer a group, or an error for all of them: a
// reply is trusted as a whole or not at all.
func decodeAnswers(groups []*stint.Group, body string) ([]answer, error) {
	r := reader{s: body}
	answers := make([]answer, len(groups))
	for i, g := range groups {
		answers[i] = r.group(g)
	}
	if r.dead || r.s != "" {
		return nil, errMalformed
	}
	return answers, nil
}

func (r *reader) group(g *stint.Group) answer {
	status := r.int(1)
	switch status {
	case groupUnspent, groupSpent, groupReplayed:
		var a answer
		for _, c := range g.Charges() {
			a.verdict.Append(r.decision(c.Policy, status == groupReplayed))
		}
		if (status != groupUnspent) != changes(g, &a.verdict) || g.Op == stint.Refund && recorded(g) && !a.verdict.Allowed {
			r.dead = true
		}
		return a
	case groupExpired:
		return answer{err: &stint.Error{Reason: stint.NoMutation, Cause: errExpired}, expired: true}
	case groupClockUnsafe:
		return r.refusal(g, stint.ClockUnsafe, "the clock stands further from the server's, or from the counter's newest instant, than allowed")
	case groupIncompatible:
		return r.refusal(g, stint.StateIncompatible, "a key of the counter holds a foreign type or damaged state")
	case groupMismatch:
		return r.refusal(g, stint.EvaluationMismatch, "the evaluation id was used for other counters or costs, or was refunded")
	case groupUnrecordable:
		return r.refusal(g, stint.AdmissionRejected, "the counter remembers as many evaluation ids as its policy allows")
	}
	r.dead = true
	return answer{}
}

// changes reports whether a group that was decided so left something behind: a
// refund does always, what was allowed if any charge passes.
func changes(g *stint.Group, v *stint.Verdict) bool {
	switch {
	case g.Op == stint.Peek || !v.Allowed:
		return false
	case g.Op == stint.Refund:
		return recorded(g)
	}
	for i := range v.Len() {
		if v.Decision(i).Outcome == stint.Allowed {
			return true
		}
	}
	return false
}

// refusal is an error, unless the group is one charge of a shadow policy,
// which nobody is refused for.
func (r *reader) refusal(g *stint.Group, reason stint.Reason, cause string) answer {
	if g.Len() == 1 && g.Charge(0).Policy.Mode == stint.Shadow && reason != stint.EvaluationMismatch && reason != stint.AdmissionRejected {
		var v stint.Verdict
		v.Append(stint.Decision{Outcome: stint.ShadowFailed})
		return answer{verdict: v}
	}
	return answer{err: &stint.Error{Reason: reason, Cause: errors.New(cause)}}
}

func (r *reader) decision(p *stint.Policy, replayed bool) stint.Decision {
	flag, at, limits := r.int(1), r.i7(), int(r.int(1))
	d, mode := stint.Decision{Replayed: replayed}, p.Mode
	if replayed { // it was allowed: what refused or failed was a shadow's, whatever the policy is now
		mode = stint.Shadow
	}
	if flag == chargeFailed && mode == stint.Shadow && limits == 0 {
		d.Outcome = stint.ShadowFailed
		return d
	}
	if limits != len(p.Terms()) {
		r.dead = true
		return d
	}
	for i := range p.Terms() {
		d.Add(&p.Terms()[i], stint.Figures{Remaining: r.i7(), RetryAfter: r.wait(), MoreAfter: r.wait(), ResetAfter: r.wait()})
	}
	d.Conclude(mode, at)
	if (flag == chargePasses) != (d.Outcome == stint.Allowed) || flag > chargeRefused {
		r.dead = true
	}
	return d
}
