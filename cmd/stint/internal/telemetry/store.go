package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Reachable adds stint_store_up, which is what up says at each scrape. Call it
// once.
func (t *Telemetry) Reachable(up func() bool) {
	t.registry.MustRegister(gauge("stint_store_up", "1 if the store answers, as /readyz sees it.", nil, up))
}

// Breaker adds stint_breaker_state, one series for each of the states and 1
// for the one that current returns at a scrape, and stint_breaker_opened_total,
// which the function that it returns counts up. Call it once.
func (t *Telemetry) Breaker(states []string, current func() string) (opened func()) {
	for _, s := range states {
		t.registry.MustRegister(gauge("stint_breaker_state", "1 for the state that the breaker before the store is in.",
			prometheus.Labels{"state": s}, func() bool { return current() == s }))
	}
	times := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "stint_breaker_opened_total",
		Help: "How often the breaker opened after it had been closed.",
	})
	t.registry.MustRegister(times)
	return times.Inc
}

// Subjects adds stint_store_subjects, which is what held says at each scrape,
// and stint_store_subjects_limit. Call it once, for a store with such a limit.
func (t *Telemetry) Subjects(held func() int, limit int) {
	t.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stint_store_subjects",
			Help: "Counters held, with those that have expired and were not swept yet.",
		}, func() float64 { return float64(held()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "stint_store_subjects_limit",
			Help: "Counters held at most: max_subjects.",
		}, func() float64 { return float64(limit) }),
	)
}

// gauge is 1 while a condition holds.
func gauge(name, help string, labels prometheus.Labels, holds func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
		if holds() {
			return 1
		}
		return 0
	})
}
