package quota

import (
	"strconv"
	"time"

	"github.com/stintlimit/stint"
)

// maxInteger is the largest Integer of a structured field, RFC 9651 §3.3.1.
const maxInteger = 999_999_999_999_999

// form is what the fields say about a policy whatever the decision.
type form struct {
	policy string   // its items of RateLimit-Policy
	names  []string // of each limit: `"name";r=`
}

func newForm(p *stint.Policy) form {
	f := form{names: make([]string, len(p.Limits))}
	terms := make([]stint.Terms, len(p.Limits))
	for _, t := range p.Terms() {
		terms[t.Index] = t
	}
	var b []byte
	for i, t := range terms {
		name := strconv.Quote(p.LimitName(i)) // letters, digits, '.', '_', '-'
		f.names[i] = name + ";r="
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, name...), ";q="...)
		b = appendInteger(b, t.Quota)
		if w := window(t); w > 0 {
			b = appendInteger(append(b, ";w="...), w)
		}
	}
	f.policy = string(b)
	return f
}

// window is the time in which q units are granted, in whole seconds: the
// window, or, of a token bucket, the time in which an empty one becomes full.
// It is 0, to be left out, unless that is a whole number of seconds: the field
// has no fractions, and a rounded one would misstate the rate.
func window(t stint.Terms) int64 {
	period := t.Period
	if t.Algorithm == stint.AlgorithmTokenBucket {
		period *= (t.Quota + t.Refill - 1) / t.Refill
	}
	if period%time.Second.Milliseconds() != 0 {
		return 0
	}
	return period / time.Second.Milliseconds()
}

func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxInteger), 10)
}

// seconds rounds up: a client that waits as long as it is told has waited long
// enough.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// RetrySeconds is the value of Retry-After for a wait: whole seconds, rounded
// up, at least 1.
func RetrySeconds(d time.Duration) int64 { return max(1, seconds(d)) }
