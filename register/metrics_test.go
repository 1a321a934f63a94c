package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// metric compares the series of some metrics, without HELP and TYPE.
func (w *world) metric(want string, names ...string) {
	w.Helper()
	got := w.exposed()
	var lines []string
	for line := range strings.Lines(got) {
		for _, name := range names {
			if strings.HasPrefix(line, "plugpoll_"+name) {
				lines = append(lines, strings.TrimPrefix(line, "plugpoll_"))
			}
		}
	}
	if text := strings.Join(lines, ""); text != want {
		w.Errorf("at %v the metrics are\n%s, want\n%s", w.now(), text, want)
	}
}

// exposed is the Manager's metrics as text.
func (w *world) exposed() string {
	w.Helper()
	var names []string
	for _, n := range metricNames {
		names = append(names, "plugpoll_"+n)
	}
	text, err := testutil.CollectAndFormat(w.m.Collector(), textPlain, names...)
	w.must(err)
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// textPlain is expfmt.TypeTextPlain, whose module is no dependency of ours.
const textPlain = 4

var metricNames = []string{
	"scan_duration_seconds", "scan_age_seconds", "scan_errors_total", "sockets", "registrations_total", "registration_duration_seconds", "deregistrations_total",
	"discovery_delay_seconds", "retries_total", "unreadable_entries", "handler_calls_parked",
}

// O5: every metric of the contract is there from the start, well formed, and no other.
func TestMetricNames(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.run()
		problems, err := testutil.CollectAndLint(w.m.Collector())
		w.must(err)
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		registry := prometheus.NewPedanticRegistry()
		w.must(registry.Register(w.m.Collector()))
		families, err := registry.Gather()
		w.must(err)
		known := map[string]bool{}
		for _, n := range metricNames {
			known["plugpoll_"+n] = true
		}
		for _, f := range families {
			if !known[f.GetName()] {
				t.Errorf("there is %s", f.GetName())
			}
			delete(known, f.GetName())
		}
		for name := range known {
			t.Errorf("there is no %s", name)
		}
		other, err := prometheus.DefaultGatherer.Gather()
		w.must(err)
		for _, f := range other {
			if strings.HasPrefix(f.GetName(), "plugpoll") {
				t.Errorf("the default registry has %s", f.GetName())
			}
		}
	})
}

// O5: what is counted, and that no text of a plugin gets into a label.
func TestMetrics(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.metric("", "scan_age")
		w.bind("a.sock", simfs.Plugin{})
		w.bind("b.sock", simfs.Plugin{Type: "Unknown\"} 1\n", Name: "b"})
		w.bind("c.sock", simfs.Plugin{Type: "Strange", Name: "c"})
		w.bind("d.sock", simfs.Plugin{Name: "d", GetInfo: simfs.Call{Delay: time.Hour}})
		w.run()
		w.pass(11 * time.Second)
		w.metric(`registrations_total{result="failed",type="TestPlugin"} 0
registrations_total{result="failed",type="other"} 1
registrations_total{result="registered",type="TestPlugin"} 1
registrations_total{result="rejected",type="TestPlugin"} 0
registrations_total{result="rejected",type="other"} 2
retries_total 1
`, "registrations_total", "retries_total")
		w.sleep(30 * time.Millisecond)
		w.bind("e.sock", simfs.Plugin{})
		w.pass(scanner.DefaultInterval)
		w.metric("discovery_delay_seconds_sum 0.2\ndiscovery_delay_seconds_count 1\n", "discovery_delay_seconds_sum", "discovery_delay_seconds_count")
		w.remove("e.sock")
		w.pass(scanner.DefaultInterval)
		w.metric(`handler_calls_parked 0
sockets{phase="backoff"} 0
sockets{phase="deregistering"} 0
sockets{phase="ignored"} 0
sockets{phase="observed"} 0
sockets{phase="pending"} 0
sockets{phase="registered"} 1
sockets{phase="registering"} 1
sockets{phase="rejected"} 2
sockets{phase="standby"} 0
sockets{phase="unreachable"} 0
unreadable_entries 0
`, "sockets", "unreadable", "handler_calls")
		for _, text := range []string{"Unknown", "Strange", ".sock", root} {
			if strings.Contains(w.exposed(), text) {
				t.Errorf("%q is in the metrics", text)
			}
		}
		if got := testutil.CollectAndCount(w.m.Collector(), "plugpoll_registration_duration_seconds"); got != 1 {
			t.Errorf("%d types have a duration", got)
		}
	})
}

// O5: the age is that of the last good scan.
func TestScanMetrics(t *testing.T) {
	bubble(t, slow, func(w *world) {
		w.run()
		w.pass(90 * time.Second)
		w.metric("scan_age_seconds 30\nscan_errors_total 0\n", "scan_age", "scan_errors")
		w.node.Inject(root, simfs.OpOpen, simfs.Fault{Err: syscall.EIO})
		w.node.Inject(root, simfs.OpList, simfs.Fault{Err: syscall.EIO})
		w.pass(2 * time.Minute)
		w.metric("scan_age_seconds 150\nscan_duration_seconds_count 4\nscan_errors_total 2\n", "scan_age", "scan_errors", "scan_duration_seconds_count")
	})
}

// O5: what the core says of a dial is measured.
func TestAskMetrics(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		onShell(w, func(s *shell) {
			w.bind("a.sock", simfs.Plugin{})
			e := scanner.Entry{Path: at("a.sock")}
			s.do(state.Ask{Op: state.Op{ID: 1, Path: e.Path}, Entry: e, Unseen: time.Now().Add(-100 * time.Millisecond)})
			s.do(state.Ask{Op: state.Op{ID: 2, Path: e.Path}, Entry: e, Tries: 1})
			w.metric("discovery_delay_seconds_sum 0.1\ndiscovery_delay_seconds_count 1\nretries_total 1\n", "discovery_delay_seconds_sum", "discovery_delay_seconds_count", "retries")
			s.do(state.Emit{Event: state.Event{Kind: state.EventRegistered, Plugin: &state.Plugin{Type: testType}, Took: 0.5}})
			w.metric(`registration_duration_seconds_sum{type="TestPlugin"} 0.5`+"\n", "registration_duration_seconds_sum")
		})
	})
}

// O5, R5: a Deregister is counted, and whether it failed.
func TestDeregistrationMetrics(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		want := func(ok, failed int) {
			t.Helper()
			w.metric(fmt.Sprintf("deregistrations_total{result=\"failed\",type=\"TestPlugin\"} %d\nderegistrations_total{result=\"ok\",type=\"TestPlugin\"} %d\n", failed, ok), "deregistrations_total")
		}
		for _, name := range []string{"a.sock", "b.sock", "c.sock"} {
			w.bind(name, simfs.Plugin{})
		}
		w.run()
		want(0, 0)
		w.remove("a.sock")
		w.pass(time.Second)
		want(1, 0)
		w.h.fails("Deregister", errors.New("it broke"))
		w.remove("b.sock")
		w.pass(time.Second)
		want(1, 1)
		w.h.on("Deregister", func(context.Context, state.Registration) error { panic("it broke") })
		w.remove("c.sock")
		w.pass(time.Second)
		want(1, 2)
	})
}

// O5: a Register that came too late and is undone is none whose duration tells anything.
func TestLateRegisterMetrics(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.h.on("Register", func(context.Context, state.Registration) error { w.sleep(5 * time.Second); return nil })
		w.bind("a.sock", simfs.Plugin{})
		w.bind("b.sock", simfs.Plugin{})
		w.run()
		w.remove("a.sock")
		w.pass(10 * time.Second)
		w.metric(`registration_duration_seconds_sum{type="TestPlugin"} 5
registration_duration_seconds_count{type="TestPlugin"} 1
`, "registration_duration_seconds_sum", "registration_duration_seconds_count")
	})
}
