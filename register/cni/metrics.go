package cni

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters; the gauges are read off the View.
type metrics struct {
	applied, rejected, defaultChanges atomic.Uint64
}

// happened counts an event.
func (m *metrics) happened(e Event) {
	switch e.Kind {
	case EventApplied:
		m.applied.Add(1)
	case EventRejected:
		m.rejected.Add(1)
	case EventDefaultChanged:
		m.defaultChanges.Add(1)
	}
}

// The metrics of CN15. The label handler is Config.Name.
var (
	reloads        = desc("reloads_total", "Sets of files that were taken into use, or turned down.", "result")
	ready          = desc("ready", "1 if pods can be set up, else 0.")
	stale          = desc("stale", "1 if what is on disk cannot be used and an earlier configuration is in use, else 0.")
	lastSuccess    = desc("last_success_timestamp_seconds", "When the configuration in use was taken into use.")
	defaultChanges = desc("default_network_changes_total", "How often the default network was replaced by one of another name.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plugpoll_cni_"+name, help, append([]string{"handler"}, labels...), nil)
}

// Collector returns the metrics of these Syncers, for a registry of the caller's choice (CN15); the default one is left alone. They are told apart by the label
// handler, so no two of them may have one Config.Name. No label carries a path or anything that a file says.
func Collector(syncers ...*Syncer) prometheus.Collector { return collector(slices.Clone(syncers)) }

type collector []*Syncer

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{reloads, ready, stale, lastSuccess, defaultChanges} {
		to <- d
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	for _, s := range c {
		v, name := s.View(), s.cfg.Name
		send(reloads, prometheus.CounterValue, float64(s.metrics.applied.Load()), name, "applied")
		send(reloads, prometheus.CounterValue, float64(s.metrics.rejected.Load()), name, "rejected")
		send(ready, prometheus.GaugeValue, gauge(v.Ready), name)
		send(stale, prometheus.GaugeValue, gauge(v.State == Stale), name)
		send(defaultChanges, prometheus.CounterValue, float64(s.metrics.defaultChanges.Load()), name)
		if !v.LastSuccess.IsZero() {
			send(lastSuccess, prometheus.GaugeValue, float64(v.LastSuccess.UnixNano())/1e9, name)
		}
	}
}

func gauge(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
