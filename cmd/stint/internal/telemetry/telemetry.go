// Package telemetry counts decisions for Prometheus.
//
// Which series exist depends on the configuration only: all are there from the
// start, and no request can add one. No label ever holds a subject, an address
// or a path. The package has a registry of its own, logs nothing and decides
// nothing.
package telemetry

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stintlimit/stint"
)

// buckets are of seconds: from a decision in memory to a deadline that passed.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .25, .5, 1}

// Telemetry is safe for concurrent use.
type Telemetry struct {
	registry *prometheus.Registry
	policies map[string]*outcomes
	duration prometheus.Histogram
}

// New returns telemetry for policies with these ids, of a program of that
// version that runs the configuration with that digest.
func New(policies []string, version, digest string) *Telemetry {
	t := &Telemetry{
		registry: prometheus.NewRegistry(),
		policies: make(map[string]*outcomes, len(policies)),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stint_decision_duration_seconds",
			Help:    "Time from the question to the decision, or to the error, once for each charge.",
			Buckets: buckets,
		}),
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stint_decisions_total",
		Help: "Charges decided on, by policy and by what became of them.",
	}, []string{"policy", "outcome"})
	for _, id := range policies {
		t.policies[id] = newOutcomes(decisions, id)
	}
	t.registry.MustRegister(
		decisions,
		t.duration,
		info("stint_build_info", "The program that runs.", prometheus.Labels{"version": version, "goversion": runtime.Version()}),
		info("stint_config_info", "The configuration that is in force.", prometheus.Labels{"digest": digest}),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return t
}

// info is a gauge of 1 whose labels say something.
func info(name, help string, labels prometheus.Labels) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	g.Set(1)
	return g
}

// Observe counts one charge; it is an observer for [stint.WithObserver]. Looks
// that spend nothing are not decisions.
func (t *Telemetry) Observe(o stint.Observation) {
	if o.Op != stint.Take || o.Policy == nil {
		return
	}
	known := t.policies[o.Policy.ID]
	if known == nil {
		return
	}
	t.duration.Observe(o.Elapsed.Seconds())
	known.of(&o).Inc()
}

// Unidentified counts a charge that was not evaluated for want of a subject.
// Under a shadow policy nobody was refused for it.
func (t *Telemetry) Unidentified(policy string, shadow bool) {
	known := t.policies[policy]
	switch {
	case known == nil:
	case shadow:
		known.shadowFailed.Inc()
	default:
		known.unidentified.Inc()
	}
}

// Handler answers scrapes.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
