package main

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// maxPause is the longest pause between two scans of a root that does not come from its Interval (U6).
const maxPause = 5 * time.Second

// lately is how old the last good scan of a root may be: two pauses, and the time of a call that hangs.
func lately(interval time.Duration) time.Duration {
	return 2*max(interval, maxPause) + scanner.DefaultCallTimeout
}

// readiness is the answer to /readyz?verbose.
type readiness struct {
	Version string          `json:"version"`
	Time    time.Time       `json:"time"`
	Ready   bool            `json:"ready"`
	Synced  bool            `json:"synced"`
	Roots   []rootReadiness `json:"roots"`
	CNI     []cniReadiness  `json:"cni,omitempty"`
}

type rootReadiness struct {
	Path         string    `json:"path"`
	PathBase64   string    `json:"path_base64,omitempty"`
	Ready        bool      `json:"ready"`
	LastGoodScan time.Time `json:"last_good_scan,omitzero"`
	GoodScanAge  float64   `json:"good_scan_age_seconds"`
	Error        string    `json:"error,omitempty"`
}

// cniReadiness is of a CNI directory. One that is stale is ready: its pods have a network.
type cniReadiness struct {
	Name          string    `json:"name"`
	ConfDir       string    `json:"conf_dir"`
	ConfDirBase64 string    `json:"conf_dir_base64,omitempty"`
	State         cni.State `json:"state"`
	Ready         bool      `json:"ready"`
	LastGoodScan  time.Time `json:"last_good_scan,omitzero"`
	GoodScanAge   float64   `json:"good_scan_age_seconds"`
	Error         string    `json:"error,omitempty"`
}

func readinessOf(v state.View, lately time.Duration, ofCNI ...cni.View) readiness {
	r := readiness{Version: v.Version, Time: v.Time, Ready: v.Synced, Synced: v.Synced, Roots: []rootReadiness{}}
	for _, root := range v.Roots {
		one := rootReadiness{root.Path, root.PathBase64, goodLately(root, lately), root.LastGoodScan, root.GoodScanAge, root.Error}
		r.Ready = r.Ready && one.Ready
		r.Roots = append(r.Roots, one)
	}
	for _, d := range ofCNI {
		one := cniReadiness{d.Name, d.ConfDir, d.ConfDirBase64, d.State, d.Ready && seenLately(d, lately), d.LastGoodScan, d.GoodScanAge, cmp.Or(d.Message, d.ScanError)}
		r.Ready = r.Ready && one.Ready
		r.CNI = append(r.CNI, one)
	}
	return r
}

func goodLately(r state.RootView, lately time.Duration) bool {
	return !r.LastGoodScan.IsZero() && r.GoodScanAge <= lately.Seconds()
}

func seenLately(d cni.View, lately time.Duration) bool {
	return !d.LastGoodScan.IsZero() && d.GoodScanAge <= lately.Seconds()
}

// healthz answers as long as the Manager does: a restart is no cure for a directory that cannot be read.
func (s *site) healthz(w http.ResponseWriter, _ *http.Request) {
	s.shots.current(0)
	sendText(w, http.StatusOK, "ok\n")
}

// readyz says whether everything that was there at start was tried, every directory was read lately, and the networks are ready.
func (s *site) readyz(w http.ResponseWriter, r *http.Request, names bool) {
	now := s.readiness()
	code := http.StatusOK
	if !now.Ready {
		code = http.StatusServiceUnavailable
	}
	switch {
	case names && r.URL.Query().Has("verbose"):
		sendJSON(w, code, now)
	case now.Ready:
		sendText(w, code, "ok\n")
	case !now.Synced:
		sendText(w, code, "not ready: not everything that was there at start was tried yet\n")
	case slices.ContainsFunc(now.CNI, func(d cniReadiness) bool { return d.State == cni.Loading || d.State == cni.NotReady }):
		sendText(w, code, "not ready: the network of a CNI directory is not ready\n")
	default:
		sendText(w, code, "not ready: a directory could not be read lately\n")
	}
}

func (s *site) readiness() readiness {
	now := s.shots.current(0)
	return readinessOf(now.view, s.lately, now.cni...)
}

func sendText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	send(w, code, []byte(text))
}
