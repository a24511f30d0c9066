package config

import (
	"math"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stintlimit/stint"
	"github.com/stintlimit/stint/subject"
)

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,31}$`)
	namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)
)

const (
	idBounds   = "a letter, then at most 31 letters, digits, '.', '_', '-'"
	nameBounds = "a letter, then at most 63 letters, digits, '.', '_', '-'"
)

func identifier(into *string) shape {
	return text("id", idBounds, into, func(s string) string {
		if idPattern.MatchString(s) {
			return ""
		}
		return "is not an id: " + idBounds
	})
}

func limitName(into *string) shape {
	return text("text", nameBounds, into, func(s string) string {
		if namePattern.MatchString(s) {
			return ""
		}
		return "is not a name: " + nameBounds
	})
}

func policy(p *stint.Policy) shape {
	return mapping([]setting{
		must("id", identifier(&p.ID)),
		or("revision", "1", integer(&p.Revision, 0, math.MaxUint32)),
		must("limits", list(&p.Limits, "list of 1 to 8 mappings", limit)),
		may("maximum_cost", "the smallest limit or capacity", integer(&p.MaximumCost, 1, stint.MaxInteger)),
		or("maximum_clock_regression", "5s", period(&p.MaximumClockRegression)),
		or("cleanup_grace", "30s", period(&p.CleanupGrace)),
		or("evaluation_dedup", "{}", dedup(&p.Dedup)),
		or("mode", "enforce", choice(&p.Mode, []string{"enforce", "shadow"}, stint.Enforce, stint.Shadow)),
	})
}

func limit(l *stint.Limit) shape {
	return exactlyOne("algorithm", []setting{
		may("fixed-window", "one of the three", algorithm(l, func(w *stint.FixedWindow) []setting {
			return windowed(&w.Limit, &w.Window, &w.Name)
		})),
		may("sliding-counter", "one of the three", algorithm(l, func(c *stint.SlidingCounter) []setting {
			return windowed(&c.Limit, &c.Window, &c.Name)
		})),
		may("token-bucket", "one of the three", algorithm(l, func(b *stint.TokenBucket) []setting {
			return []setting{
				must("capacity", quantity(&b.Capacity)),
				must("refill", quantity(&b.Refill)),
				must("every", period(&b.Every)),
				named(&b.Name),
			}
		})),
	})
}

func windowed(limit *int64, window *time.Duration, name *string) []setting {
	return []setting{must("limit", quantity(limit)), must("window", period(window)), named(name)}
}

func named(name *string) setting {
	return may("name", "the policy's id, and the limit's number if it has several", limitName(name))
}

func quantity(into *int64) shape       { return integer(into, 1, stint.MaxInteger) }
func period(into *time.Duration) shape { return duration(into, time.Millisecond, stint.MaxDuration) }

// algorithm reads a T and puts it where limits are kept.
func algorithm[T stint.Limit](into *stint.Limit, settings func(*T) []setting) shape {
	return shape{kind: "mapping", inner: settings(new(T)), read: func(d *decoder, n *yaml.Node, path string) {
		var t T
		mapping(settings(&t)).read(d, n, path)
		*into = t
	}}
}

func dedup(into *stint.Dedup) shape {
	return orOff(&into.Off, mapping([]setting{
		or("ttl", "5s", period(&into.TTL)),
		or("max_entries", "256", integer(&into.MaxEntries, 1, 1<<16)),
		or("max_bytes", "65536", integer(&into.MaxBytes, 1, 1<<24)),
	}))
}

func route(r *Route) shape {
	return mapping([]setting{
		must("id", identifier(&r.ID)),
		must("match", pattern(&r.Match)),
		or("cost", "1", integer(&r.Cost, 1, stint.MaxInteger)),
		must("charge", list(&r.Charges, "list of mappings", charge)),
	})
}

func pattern(into *string) shape { return nonEmpty(into, "pattern", "of net/http.ServeMux") }

func charge(c *Charge) shape {
	return mapping([]setting{
		must("policy", nonEmpty(&c.Policy, "id", "of one of `policies`")),
		must("subject", choice(&c.Subject, []string{"client-ip", "api-key", "principal", "everyone"},
			subject.ClientIP, subject.APIKey, subject.Principal, subject.Everyone)),
		or("missing", "refuse", choice(&c.SkipMissing, []string{"refuse", "skip"}, false, true)),
		or("ipv6_prefix", "64", integer(&c.IPv6Prefix, 1, 128)),
		may("per", "one budget over all routes", choice(&c.PerRoute, []string{"route"}, true)),
	})
}
