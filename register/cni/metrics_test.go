package cni

import (
	"strings"
	"testing"

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
