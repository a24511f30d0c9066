package stint

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Problem is one thing wrong with a policy.
type Problem struct {
	Field   string // a path in Policy, such as "Limits[1].Window"
	Message string // what is wrong, and what would be right
}

// InvalidPolicyError lists everything that is wrong with one policy.
type InvalidPolicyError struct {
	Policy   string // its id, as given
	Problems []Problem
}

func (e *InvalidPolicyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %q:", e.Policy)
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s: %s", p.Field, p.Message)
	}
	return b.String()
}

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,31}$`)
	namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)
)

// checker collects problems.
type checker struct{ problems []Problem }

func (c *checker) add(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) quantity(field string, v int64) bool {
	if v < 1 || v > MaxInteger {
		c.add(field, "%d is out of range: 1 to %d", v, int64(MaxInteger))
		return false
	}
	return true
}

func (c *checker) duration(field string, d time.Duration) bool {
	switch {
	case d < time.Millisecond || d > MaxDuration:
		c.add(field, "%v is out of range: 1ms to %v", d, MaxDuration)
	case d%time.Millisecond != 0:
		c.add(field, "%v is not a whole number of milliseconds", d)
	default:
		return true
	}
	return false
}

func (c *checker) durationOrZero(field string, d time.Duration) {
	if d != 0 {
		c.duration(field, d)
	}
}

func (c *checker) size(field string, n, most int) {
	if n < 0 || n > most {
		c.add(field, "%d is out of range: 1 to %d, or 0 for the default", n, most)
	}
}

func (p *Policy) validate() []Problem {
	var c checker
	if !idPattern.MatchString(p.ID) {
		c.add("ID", "%q is not an id: a letter, then at most 31 letters, digits, '.', '_' or '-'", p.ID)
	}
	if len(p.Limits) == 0 || len(p.Limits) > MaxLimits {
		c.add("Limits", "a policy has 1 to %d limits, not %d", MaxLimits, len(p.Limits))
	}
	smallest, sound := p.validateLimits(&c)
	switch {
	case p.MaximumCost < 0:
		c.add("MaximumCost", "%d is out of range: at least 1, or 0 for the smallest quota", p.MaximumCost)
	case sound && p.MaximumCost > smallest:
		c.add("MaximumCost", "%d is above the smallest quota, %d: such a cost could never pass", p.MaximumCost, smallest)
	}
	c.durationOrZero("MaximumClockRegression", p.MaximumClockRegression)
	c.durationOrZero("CleanupGrace", p.CleanupGrace)
	c.durationOrZero("Dedup.TTL", p.Dedup.TTL)
	c.size("Dedup.MaxEntries", p.Dedup.MaxEntries, 1<<16)
	c.size("Dedup.MaxBytes", p.Dedup.MaxBytes, 1<<24)
	if p.Mode > Shadow {
		c.add("Mode", "%d is no mode: Enforce or Shadow", p.Mode)
	}
	return c.problems
}

// validateLimits returns the smallest quota, and whether every limit is sound.
func (p *Policy) validateLimits(c *checker) (smallest int64, sound bool) {
	smallest = MaxInteger
	before := len(c.problems)
	shapes := map[string]int{}
	names := map[string]int{}
	for i, l := range p.Limits {
		path := fmt.Sprintf("Limits[%d]", i)
		if l == nil {
			c.add(path, "is nil: FixedWindow, SlidingCounter or TokenBucket")
			continue
		}
		if !validateLimit(c, path, l) {
			continue
		}
		t := l.terms()
		smallest = min(smallest, t.Quota)
		if j, taken := shapes[t.shape()]; taken {
			c.add(path, "has the algorithm and the period of Limits[%d]: the stricter of the two is enough", j)
		}
		shapes[t.shape()] = i
		name := limitName(p.ID, l, i, len(p.Limits))
		if j, taken := names[name]; taken {
			c.add(path+".Name", "%q already names Limits[%d]", name, j)
		}
		names[name] = i
	}
	return smallest, len(c.problems) == before && len(p.Limits) > 0
}

func validateLimit(c *checker, path string, l Limit) bool {
	before := len(c.problems)
	switch l := l.(type) {
	case FixedWindow:
		c.quantity(path+".Limit", l.Limit)
		c.duration(path+".Window", l.Window)
	case SlidingCounter:
		sound := c.quantity(path+".Limit", l.Limit)
		sound = c.duration(path+".Window", l.Window) && sound
		if most := MaxInteger/max(1, l.Window.Milliseconds()) - 1; sound && l.Limit > most {
			c.add(path+".Limit", "%d is too large for a window of %v: at most %d, so that their product stays below 2^53",
				l.Limit, l.Window, most)
		}
	case TokenBucket:
		sound := c.quantity(path+".Capacity", l.Capacity)
		sound = c.quantity(path+".Refill", l.Refill) && sound
		sound = c.duration(path+".Every", l.Every) && sound
		if periods := MaxDuration.Milliseconds() / max(1, l.Every.Milliseconds()); sound && (l.Capacity-1)/l.Refill >= periods {
			c.add(path+".Capacity", "%d takes longer than %v to refill: at most %d", l.Capacity, MaxDuration, periods*l.Refill)
		}
	default:
		c.add(path, "%T is no limit: FixedWindow, SlidingCounter or TokenBucket", l)
		return false
	}
	if n := l.name(); n != "" && !namePattern.MatchString(n) {
		c.add(path+".Name", "%q is not a name: a letter, then at most 63 letters, digits, '.', '_' or '-'", n)
	}
	return len(c.problems) == before
}
