package register

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// otherType is the label of what no handler is there for: the text of a plugin is never one (O5, X3).
const otherType = "other"

// phases are all there are, so that a phase without a socket is a zero and not a gap.
var phases = [...]state.Phase{
	state.Pending, state.Registering, state.Registered, state.Observed, state.Standby, state.Unreachable, state.Backoff, state.Rejected, state.NotPlugin, state.Deregistering,
}

// results are those of a try that came to a decision.
var results = map[state.EventKind]string{
	state.EventRegistered: "registered",
	state.EventFailing:    "failed",
	state.EventRejected:   "rejected",
}

// The results of Deregister (R5).
const (
	deregisterOK     = "ok"
	deregisterFailed = "failed"
)

// metrics are the counters and histograms; the gauges are read off the View.
type metrics struct {
	scanDuration, discoveryDelay         prometheus.Histogram
	scanErrors, retries                  prometheus.Counter
	registrations, deregistrations       *prometheus.CounterVec
	registrationDuration                 *prometheus.HistogramVec
	scanAge, sockets, unreadable, parked *prometheus.Desc
}

func newMetrics() *metrics {
	name := func(n string) string { return "plugpoll_" + n }
	counter := func(n, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name(n), Help: help})
	}
	histogram := func(n, help string, least float64, count int) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name(n), Help: help, Buckets: prometheus.ExponentialBuckets(least, 4, count)}
	}
	return &metrics{
		scanDuration: prometheus.NewHistogram(histogram("scan_duration_seconds", "How long a scan of one root took.", 0.0001, 9)),
		discoveryDelay: prometheus.NewHistogram(histogram("discovery_delay_seconds",
			"From the start of the last scan that did not show a socket to the first dial of it.", 0.005, 8)),
		scanErrors: counter("scan_errors_total", "Scans that ended with an error."),
		retries:    counter("retries_total", "Dials of sockets whose last try had failed."),
		registrations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("registrations_total"), Help: "Tries to register a plugin, by what came of them."},
			[]string{"type", "result"}),
		deregistrations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("deregistrations_total"), Help: "Plugins whose handler was told that they are gone, by what it returned."},
			[]string{"type", "result"}),
		registrationDuration: prometheus.NewHistogramVec(histogram("registration_duration_seconds", "From the dial to the end of Register, of those that succeeded.", 0.001, 9),
			[]string{"type"}),
		scanAge:    prometheus.NewDesc(name("scan_age_seconds"), "Time since the end of the last scan without an error, of the root where it is longest ago.", nil, nil),
		sockets:    prometheus.NewDesc(name("sockets"), "Sockets that are known, by phase.", []string{"phase"}, nil),
		unreadable: prometheus.NewDesc(name("unreadable_entries"), "Directory entries that could not be looked at.", nil, nil),
		parked:     prometheus.NewDesc(name("handler_calls_parked"), "Handler calls that take long and gave their place to others.", nil, nil),
	}
}

// known has the series of a type that has a handler begin at zero.
func (m *metrics) known(pluginType string) {
	for _, result := range results {
		m.registrations.WithLabelValues(pluginType, result)
	}
	for _, result := range []string{deregisterOK, deregisterFailed} {
		m.deregistrations.WithLabelValues(pluginType, result)
	}
	m.registrationDuration.WithLabelValues(pluginType)
}

func (m *metrics) asked(a state.Ask) {
	if a.Tries > 0 {
		m.retries.Inc()
	}
	if !a.Unseen.IsZero() {
		m.discoveryDelay.Observe(time.Since(a.Unseen).Seconds())
	}
}

func (m *metrics) scanned(s scanned) {
	m.scanDuration.Observe(s.ended.Sub(s.started).Seconds())
	if s.err != nil {
		m.scanErrors.Inc()
	}
}

// happened counts an event. pluginType is a label already.
func (m *metrics) happened(e state.Event, pluginType string) {
	if result := results[e.Kind]; result != "" {
		m.registrations.WithLabelValues(pluginType, result).Inc()
	}
	switch {
	case e.Kind == state.EventRegistered && e.Took > 0: // 0: it came too late and is undone at once (R7)
		m.registrationDuration.WithLabelValues(pluginType).Observe(e.Took)
	case e.Kind == state.EventDeregistered && e.Error != "":
		m.deregistrations.WithLabelValues(pluginType, deregisterFailed).Inc()
	case e.Kind == state.EventDeregistered:
		m.deregistrations.WithLabelValues(pluginType, deregisterOK).Inc()
	}
}

// typeLabel is the plugin type of an event if there is a handler for it.
func (m *Manager) typeLabel(e state.Event) string {
	if e.Plugin != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.handlers[e.Plugin.Type] != nil {
			return e.Plugin.Type
		}
	}
	return otherType
}

// Collector returns the metrics of this Manager, for a registry of the caller's choice (O5); the default one is left alone. Two Managers do not fit into one
// registry unless prometheus.WrapRegistererWith tells them apart. No label carries a path or a text of a plugin: type is that of a handler, or "other".
func (m *Manager) Collector() prometheus.Collector { return collector{m} }

type collector struct{ *Manager }

func (c collector) parts() []prometheus.Collector {
	m := c.metrics
	return []prometheus.Collector{m.scanDuration, m.discoveryDelay, m.scanErrors, m.retries, m.registrations, m.registrationDuration, m.deregistrations}
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, p := range c.parts() {
		p.Describe(to)
	}
	for _, d := range []*prometheus.Desc{c.metrics.scanAge, c.metrics.sockets, c.metrics.unreadable, c.metrics.parked} {
		to <- d
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.parts() {
		p.Collect(to)
	}
	v := c.View()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counts, parked, unreadable := map[state.Phase]int{}, 0, 0
	for _, s := range v.Sockets {
		counts[s.Phase]++
		if s.Call != nil && s.Call.Parked {
			parked++
		}
	}
	for _, r := range v.Roots {
		for _, i := range r.Ignored {
			if i.Reason == scanner.Unreadable {
				unreadable += i.Count
			}
		}
	}
	for _, p := range phases {
		gauge(c.metrics.sockets, float64(counts[p]), string(p))
	}
	gauge(c.metrics.parked, float64(parked))
	gauge(c.metrics.unreadable, float64(unreadable))
	if age, ok := c.scanAge(v); ok {
		gauge(c.metrics.scanAge, age.Seconds())
	}
}

// scanAge is the greatest of all roots. A root without a good scan counts from the begin of Run; before that there is no age.
func (m *Manager) scanAge(v state.View) (age time.Duration, ok bool) {
	m.mu.Lock()
	began := m.began
	m.mu.Unlock()
	if began.IsZero() {
		return 0, false
	}
	for _, r := range v.Roots {
		last := r.LastGoodScan
		if last.IsZero() {
			last = began
		}
		age = max(age, v.Time.Sub(last))
	}
	return age, true
}
