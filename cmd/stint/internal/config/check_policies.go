package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stintlimit/stint"
)

// checkPolicies asks package stint what it thinks of each policy, and keeps
// ids and the names of limits apart.
func (d *decoder) checkPolicies(c *draft) {
	if len(c.Policies) == 0 && d.sound("policies") {
		d.problem("policies", "is empty: a server without a policy limits nothing")
	}
	ids := map[string]int{}
	names := map[string]string{}
	for i, p := range c.Policies {
		at := index("policies", i)
		if j, taken := ids[p.ID]; taken && p.ID != "" {
			d.problem(at+".id", "%q is taken by %s", p.ID, index("policies", j))
			continue
		}
		ids[p.ID] = i
		if !d.sound(at) {
			continue
		}
		frozen, err := stint.NewPolicy(p)
		var invalid *stint.InvalidPolicyError
		switch {
		case errors.As(err, &invalid):
			for _, q := range invalid.Problems {
				d.problem(at+"."+fieldPath(p, q.Field), "%s", filePath(q.Message))
			}
		case err != nil:
			d.problem(at, "%v", err)
		default:
			d.checkLimitNames(frozen, at, names)
		}
	}
}

func (d *decoder) checkLimitNames(p *stint.Policy, at string, names map[string]string) {
	for j := range p.Limits {
		name := p.LimitName(j)
		place := index(at+".limits", j)
		if other, taken := names[name]; taken {
			d.problem(place+"."+algorithmOf(p.Limits[j])+".name", "the limit's name %q is taken by %s: response fields could not tell them apart", name, other)
		}
		names[name] = place
	}
}

var limitField = regexp.MustCompile(`^Limits\[(\d+)\](?:\.(\w+))?$`)

var policyKeys = map[string]string{
	"ID": "id", "Limits": "limits", "MaximumCost": "maximum_cost", "Mode": "mode", "CleanupGrace": "cleanup_grace",
	"MaximumClockRegression": "maximum_clock_regression", "Dedup.TTL": "evaluation_dedup.ttl",
	"Dedup.MaxEntries": "evaluation_dedup.max_entries", "Dedup.MaxBytes": "evaluation_dedup.max_bytes",
}

// fieldPath turns a path in stint.Policy into one in the file.
func fieldPath(p stint.Policy, field string) string {
	m := limitField.FindStringSubmatch(field)
	if m == nil {
		if key, known := policyKeys[field]; known {
			return key
		}
		return field
	}
	i, _ := strconv.Atoi(m[1])
	if i >= len(p.Limits) || p.Limits[i] == nil {
		return fmt.Sprintf("limits[%d]", i)
	}
	path := fmt.Sprintf("limits[%d].%s", i, algorithmOf(p.Limits[i]))
	if m[2] != "" {
		path += "." + strings.ToLower(m[2])
	}
	return path
}

var goPath = regexp.MustCompile(`\bLimits\[`)

// filePath rewrites the Go paths inside a message.
func filePath(message string) string { return goPath.ReplaceAllString(message, "limits[") }

func algorithmOf(l stint.Limit) string {
	switch l.(type) {
	case stint.FixedWindow:
		return stint.AlgorithmFixedWindow.String()
	case stint.SlidingCounter:
		return stint.AlgorithmSlidingCounter.String()
	}
	return stint.AlgorithmTokenBucket.String()
}
