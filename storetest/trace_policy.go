package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stintlimit/stint"
)

// parsePolicy reads "<id> <limit> [+ <limit>]… [<option>]…".
func (p *parser) parsePolicy(text string) error {
	name, rest, _ := strings.Cut(text, " ")
	pol := stint.Policy{ID: name}
	for part := range strings.SplitSeq(rest, "+") {
		l, err := parseLimit(&pol, strings.Fields(part))
		if err != nil {
			return err
		}
		pol.Limits = append(pol.Limits, l)
	}
	frozen, err := stint.NewPolicy(pol)
	if err != nil {
		return err
	}
	if p.policies[name] == nil {
		p.ids = append(p.ids, name)
	}
	p.policies[name] = frozen
	return nil
}

// parseLimit reads an algorithm and its fields. Words that belong to the
// policy go there.
func parseLimit(p *stint.Policy, words []string) (stint.Limit, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no limit: fixed-window, sliding-counter or token-bucket")
	}
	var quantity, refill int64
	var period time.Duration
	own := map[string]func(string) error{}
	switch words[0] {
	case "fixed-window", "sliding-counter":
		own["limit"], own["window"] = integer(&quantity), duration(&period)
	case "token-bucket":
		own["capacity"], own["refill"], own["every"] = integer(&quantity), integer(&refill), duration(&period)
	default:
		return nil, fmt.Errorf("%q is no limit: fixed-window, sliding-counter or token-bucket", words[0])
	}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		set := own[name]
		if set == nil {
			set = policyOption(p, name)
		}
		if set == nil {
			return nil, fmt.Errorf("%q is no part of a %s or of a policy", name, words[0])
		}
		if err := set(value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	switch words[0] {
	case "fixed-window":
		return stint.FixedWindow{Limit: quantity, Window: period}, nil
	case "sliding-counter":
		return stint.SlidingCounter{Limit: quantity, Window: period}, nil
	}
	return stint.TokenBucket{Capacity: quantity, Refill: refill, Every: period}, nil
}

// policyOption returns what sets a field of the policy, or nil.
func policyOption(p *stint.Policy, name string) func(string) error {
	switch name {
	case "mode":
		return func(v string) error {
			switch v {
			case "enforce":
				p.Mode = stint.Enforce
			case "shadow":
				p.Mode = stint.Shadow
			default:
				return fmt.Errorf("%q is no mode: enforce or shadow", v)
			}
			return nil
		}
	case "revision":
		return func(v string) error {
			n, err := strconv.ParseUint(v, 10, 32)
			p.Revision = uint32(n)
			return err
		}
	case "maximum_cost":
		return integer(&p.MaximumCost)
	case "regression":
		return duration(&p.MaximumClockRegression)
	case "grace":
		return duration(&p.CleanupGrace)
	case "dedup":
		return func(v string) error {
			p.Dedup.Off = v == "off"
			if v != "off" && v != "on" {
				return fmt.Errorf("%q: on or off", v)
			}
			return nil
		}
	case "dedup_ttl":
		return duration(&p.Dedup.TTL)
	case "dedup_entries":
		return integer(&p.Dedup.MaxEntries)
	case "dedup_bytes":
		return integer(&p.Dedup.MaxBytes)
	}
	return nil
}

func integer[T int | int64](to *T) func(string) error {
	return func(v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		*to = T(n)
		return err
	}
}

func duration(to *time.Duration) func(string) error {
	return func(v string) (err error) {
		*to, err = time.ParseDuration(v)
		return err
	}
}
