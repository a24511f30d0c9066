package quota

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stintlimit/stint"
)

// The fields, in the spelling of http.Header's keys.
const (
	PolicyField = "Ratelimit-Policy"
	LimitField  = "Ratelimit"
)

// Fields are the values of RateLimit-Policy and RateLimit. Both are empty if
// no enforced policy was charged.
type Fields struct{ Policy, Limit string }

// Fields returns what a verdict says, one item for each limit. The policies
// are those of the verdict's decisions, in the same order. Where one policy
// was charged for several subjects, each of its limits shows where it has the
// least left.
func (a *Answers) Fields(policies []*stint.Policy, v *stint.Verdict) Fields {
	var memory [256]byte
	b := memory[:0]
	var f Fields
	for i, p := range policies {
		form, known := a.forms[p]
		if !known || p.Mode == stint.Shadow || slices.Contains(policies[:i], p) {
			continue
		}
		f.Policy = join(f.Policy, form.policy)
		for limit, name := range form.names {
			s := tightest(policies, v, i, limit)
			if len(b) > 0 {
				b = append(b, ", "...)
			}
			b = appendInteger(append(b, name...), s.Remaining)
			if s.MoreAfter > 0 {
				b = appendInteger(append(b, ";t="...), seconds(s.MoreAfter))
			}
		}
	}
	f.Limit = string(b)
	return f
}

// tightest returns the standing of a limit with the least left, among the
// decisions from i on under the policy of decision i.
func tightest(policies []*stint.Policy, v *stint.Verdict, i, limit int) stint.Standing {
	d := v.Decision(i)
	least := d.Standing(limit)
	for j := i + 1; j < len(policies); j++ {
		if policies[j] != policies[i] {
			continue
		}
		d = v.Decision(j)
		s := d.Standing(limit)
		if s.Remaining < least.Remaining || s.Remaining == least.Remaining && s.MoreAfter > least.MoreAfter {
			least = s
		}
	}
	return least
}

// AddTo appends the items to what h already says, say an outer limiter, in one
// line for each field. What is there in the syntax of an earlier draft, which
// has no items, stays alone. Whoever writes the fields later, say the handler behind
// a middleware, replaces or extends them.
func (f Fields) AddTo(h http.Header) {
	addItems(h, PolicyField, f.Policy)
	addItems(h, LimitField, f.Limit)
}

func addItems(h http.Header, field, items string) {
	there := strings.Join(h[field], ", ")
	if items == "" || there != "" && there[0] != '"' {
		return
	}
	h.Set(field, join(there, items))
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}
