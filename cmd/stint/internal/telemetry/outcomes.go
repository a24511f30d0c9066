package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintlimit/stint"
)

// outcomes are the counters of one policy.
type outcomes struct {
	allowed, denied, shadowDenied, shadowFailed            prometheus.Counter
	unidentified, unavailable, incompatible, indeterminate prometheus.Counter
}

func newOutcomes(v *prometheus.CounterVec, policy string) *outcomes {
	with := func(outcome string) prometheus.Counter { return v.WithLabelValues(policy, outcome) }
	return &outcomes{
		allowed:       with(stint.Allowed.String()),
		denied:        with(stint.Denied.String()),
		shadowDenied:  with(stint.ShadowDenied.String()),
		shadowFailed:  with(stint.ShadowFailed.String()),
		unidentified:  with("unidentified"),
		unavailable:   with(string(stint.Unavailable)),
		incompatible:  with(string(stint.Incompatible)),
		indeterminate: with(string(stint.Indeterminate)),
	}
}

// of returns the counter of an observation. A charge that its own policy
// allows counts as allowed also where another charge refused its group.
func (c *outcomes) of(o *stint.Observation) prometheus.Counter {
	switch o.Decision.Outcome {
	case stint.Allowed:
		return c.allowed
	case stint.Denied:
		return c.denied
	case stint.ShadowDenied:
		return c.shadowDenied
	case stint.ShadowFailed:
		return c.shadowFailed
	}
	switch stint.ReasonOf(o.Err).Kind() {
	case stint.Unavailable:
		return c.unavailable
	case stint.Incompatible:
		return c.incompatible
	}
	return c.indeterminate
}
