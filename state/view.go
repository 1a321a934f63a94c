package state

import (
	"slices"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// Phase is where a socket stands. The texts are part of the JSON interface.
type Phase string

// The phases.
const (
	Pending       Phase = "pending"       // found, waiting for its first try
	Registering   Phase = "registering"   // being asked or handed to the handler
	Registered    Phase = "registered"    // the handler has it
	Observed      Phase = "observed"      // asked and acceptable; observe mode does no more (R18)
	Standby       Phase = "standby"       // acceptable, and another instance of its name is registered (N2)
	Unreachable   Phase = "unreachable"   // registered, but it does not answer any more (L1)
	Backoff       Phase = "backoff"       // the last try failed; NextTry says when the next one is
	Rejected      Phase = "rejected"      // tried again when something changes, on Retry or, but for an unknown type, after ten minutes
	NotPlugin     Phase = "ignored"       // it does not speak the registration protocol
	Deregistering Phase = "deregistering" // it must go, for whatever Reason, and its handler is being told
)

// Acknowledged is whether a registered plugin took the news (R4). Empty: it has not been told yet.
type Acknowledged string

// The values of Acknowledged. The texts are part of the JSON interface.
const (
	AckYes         Acknowledged = "yes"
	AckNo          Acknowledged = "no"          // telling it failed; tried again
	AckUnsupported Acknowledged = "unsupported" // it does not implement being told
)

// View is everything there is to see at one moment (O2), sorted by path. What it points to is shared between Views: do not change it.
type View struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	// Synced is true once every root was scanned and everything found then was tried (O3).
	Synced bool `json:"synced"`
	// Types are those that have a handler, sorted.
	Types   []string     `json:"types"`
	Roots   []RootView   `json:"roots"`
	Sockets []SocketView `json:"sockets"`
}

// RootView is one scanned directory.
type RootView struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
	// Filesystem is the kind of filesystem the root is on, as mount(8) calls it, or the name of the afero filesystem if that is not the operating system's.
	Filesystem string `json:"filesystem"`
	// LastScan is when the last scan ended, LastGoodScan when the last one without an error did. Zero: there was none.
	LastScan     time.Time `json:"last_scan,omitzero"`
	LastGoodScan time.Time `json:"last_good_scan,omitzero"`
	// GoodScanAge is Time less LastGoodScan, in seconds; 0 if there was none.
	GoodScanAge float64 `json:"good_scan_age_seconds"`
	// Error is why the last scan was not good.
	Error string `json:"error,omitempty"`
	// Entries is how many sockets there are, the unconfirmed ones among them.
	Entries int           `json:"entries"`
	Ignored []IgnoredView `json:"ignored,omitempty"`
}

// IgnoredView counts what a directory holds besides sockets (D9).
type IgnoredView struct {
	Dir       string         `json:"dir"`
	DirBase64 string         `json:"dir_base64,omitempty"`
	Reason    scanner.Reason `json:"reason"`
	Count     int            `json:"count"`
	// Examples are names as they are shown to people: quoted where they are not plain.
	Examples []string `json:"examples"`
	Detail   string   `json:"detail,omitempty"`
}

// NewIgnoredView shows what a scan has ignored.
func NewIgnoredView(i scanner.Ignored) IgnoredView {
	names := make([]string, len(i.Examples))
	for n, name := range i.Examples {
		names[n] = scanner.Quote(name)
	}
	return IgnoredView{Dir: i.Dir, DirBase64: scanner.Base64(i.Dir), Reason: i.Reason, Count: i.Count, Examples: names, Detail: i.Detail}
}

// SocketView is one socket.
type SocketView struct {
	Path       string           `json:"path"`
	PathBase64 string           `json:"path_base64,omitempty"`
	Root       string           `json:"root"`
	RootBase64 string           `json:"root_base64,omitempty"`
	Phase      Phase            `json:"phase"`
	Identity   scanner.Identity `json:"identity"`
	// Maybe is true if the filesystem cannot tell whether it is a socket.
	Maybe bool `json:"maybe,omitempty"`
	// Plugin is what is registered, else what the plugin last said of itself. nil: it has not answered.
	Plugin *Plugin `json:"plugin,omitempty"`
	// Found is when this instance was first seen, Since when it entered its phase.
	Found time.Time `json:"found"`
	Since time.Time `json:"since"`
	// Holder is, for a standby, the path of the instance that is registered or about to be.
	Holder       string `json:"holder,omitempty"`
	HolderBase64 string `json:"holder_base64,omitempty"`
	// Call is the handler call that runs. nil: none does.
	Call *CallView `json:"call,omitempty"`
	// Tries counts the failed tries in a row.
	Tries     int    `json:"tries"`
	LastError string `json:"last_error,omitempty"`
	// NextTry is when it is tried again. Zero: nothing is planned.
	NextTry      time.Time    `json:"next_try,omitzero"`
	Acknowledged Acknowledged `json:"acknowledged,omitempty"`
	// Stale is set while the filesystem can neither show the socket nor rule it out.
	Stale  *StaleView  `json:"stale,omitempty"`
	Report *ReportView `json:"report,omitempty"`
}

// CallView is a handler call that runs.
type CallView struct {
	Verb  string    `json:"verb"` // validate, register or deregister
	Since time.Time `json:"since"`
	// Parked is true once it has run for so long that it gave its place to others (R11).
	Parked bool `json:"parked"`
}

// Plugin is what a plugin says of itself.
type Plugin struct {
	Type           string   `json:"type"`
	Name           string   `json:"name"`
	Endpoint       string   `json:"endpoint"`
	EndpointBase64 string   `json:"endpoint_base64,omitempty"`
	Versions       []string `json:"versions"`
}

// StaleView says since when and why a socket is unconfirmed.
type StaleView struct {
	Since time.Time `json:"since"`
	Error string    `json:"error"`
}

// ReportView is a handler's Report, with the time it came.
type ReportView struct {
	Time    time.Time `json:"time"`
	Health  Health    `json:"health"`
	Message string    `json:"message,omitempty"`
	Detail  any       `json:"detail,omitempty"`
}

func (i Info) plugin() *Plugin {
	return &Plugin{Type: i.Type, Name: i.Name, Endpoint: i.Endpoint, EndpointBase64: scanner.Base64(i.Endpoint), Versions: append([]string{}, i.Versions...)}
}

func (r Registration) plugin() *Plugin {
	return Info{r.Type, r.Name, r.Endpoint, r.Versions}.plugin()
}

// View shows the state at now. The sockets are built anew only after a change.
func (c *Core) View(now time.Time) View {
	v := View{Version: APIVersion, Time: now, Synced: c.synced, Types: c.types()}
	v.Roots = make([]RootView, 0, len(c.roots))
	for _, r := range c.roots {
		v.Roots = append(v.Roots, r.view(now))
	}
	if c.viewed != c.version || c.view == nil {
		c.view = make([]SocketView, 0, len(c.sockets))
		for _, s := range c.sockets {
			c.view = append(c.view, s.view())
		}
		slices.SortFunc(c.view, func(a, b SocketView) int { return compare(a.Path, b.Path) })
		c.viewed = c.version
	}
	v.Sockets = slices.Clone(c.view)
	return v
}
