package cni

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// metric checks that these series are there.
func (w *world) metric(want ...string) {
	w.Helper()
	got := exposed(w.T, w.s)
	for _, line := range want {
		if !strings.Contains(got, "plugpoll_"+line+"\n") {
			w.Errorf("at %v the metrics are\n%swithout %s", w.now(), got, line)
		}
	}
}

// exposed is the metrics of Syncers as text.
func exposed(t *testing.T, syncers ...*Syncer) string {
	t.Helper()
	const textPlain = 4 // expfmt.TypeTextPlain, whose module is no dependency of ours
	text, err := testutil.CollectAndFormat(Collector(syncers...), textPlain,
		"plugpoll_cni_reloads_total", "plugpoll_cni_ready", "plugpoll_cni_stale", "plugpoll_cni_last_success_timestamp_seconds", "plugpoll_cni_default_network_changes_total")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// CN15: every metric of the contract, well formed, and no other; nothing in a label but the handler's name.
func TestMetrics(t *testing.T) {
	bubble(t, Config{Name: "kata"}, func(w *world) {
		other, err := New(Config{FS: w.node})
		w.must(err)
		registry := prometheus.NewPedanticRegistry()
		w.must(registry.Register(Collector(w.s, other)))
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		w.write("10-a.conflist", list("a"))
		w.run()
		w.pass(settled)
		w.write("10-a.conflist", list("secret"))
		w.pass(settled)
		w.write("10-a.conflist", broken)
		w.pass(settled)
		got := exposed(t, w.s, other)
		success := float64(w.s.View().LastSuccess.UnixNano()) / 1e9
		want := fmt.Sprintf(`plugpoll_cni_default_network_changes_total{handler=""} 0
plugpoll_cni_default_network_changes_total{handler="kata"} 1
plugpoll_cni_last_success_timestamp_seconds{handler="kata"} %v
plugpoll_cni_ready{handler=""} 0
plugpoll_cni_ready{handler="kata"} 1
plugpoll_cni_reloads_total{handler="",result="applied"} 0
plugpoll_cni_reloads_total{handler="",result="rejected"} 0
plugpoll_cni_reloads_total{handler="kata",result="applied"} 2
plugpoll_cni_reloads_total{handler="kata",result="rejected"} 1
plugpoll_cni_stale{handler=""} 0
plugpoll_cni_stale{handler="kata"} 1
`, success)
		if got != want {
			t.Errorf("the metrics are\n%s, want\n%s", got, want)
		}
		families, err := registry.Gather()
		w.must(err)
		if len(families) != 5 {
			t.Errorf("there are %d metrics", len(families))
		}
	})
}
