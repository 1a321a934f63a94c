package cni

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// The texts of the condition that runtimes report (CN13).
const (
	// Condition is its type.
	Condition = "NetworkReady"
	// ReasonNotReady is its reason while it is false.
	ReasonNotReady = "NetworkPluginNotReady"
	// MessagePrefix begins its message while it is false.
	MessagePrefix = "Network plugin returns error: "
)

// State is where a directory stands. The texts are part of the JSON interface.
type State string

// The states.
const (
	Loading  State = "loading"   // nothing was decided yet
	Ready    State = "ready"     // what is on disk is in use, and works as far as it was asked
	Stale    State = "stale"     // the last good configuration is in use and works; what is on disk now cannot be used (CN7)
	NotReady State = "not ready" // no pod can be set up: Message says why
)

// View is everything there is to see of one directory at one moment (CN13). What it points to is shared between Views: do not change it.
type View struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	// Name is that of the runtime handler; "" the default one.
	Name          string `json:"name"`
	ConfDir       string `json:"conf_dir"`
	ConfDirBase64 string `json:"conf_dir_base64,omitempty"`
	// BinDirs are searched for plugins, in this order.
	BinDirs []DirView `json:"bin_dirs"`
	State   State     `json:"state"`
	// Since is when it entered its state. Zero: Run has not begun.
	Since time.Time `json:"since,omitzero"`
	// Ready is the status of the condition NetworkReady: true in the states ready and stale.
	Ready bool `json:"ready"`
	// Reason and Message are those of the condition; empty if it is true. Message begins with MessagePrefix and is one line.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Observed is the revision of what the last poll that could list everything saw, Applied that of the set in use. Empty: there was none.
	Observed Revision `json:"observed_revision,omitempty"`
	Applied  Revision `json:"applied_revision,omitempty"`
	// DefaultNetwork is the name of the first network in use. Pinned is true if Config.DefaultNetwork asked for one.
	DefaultNetwork string `json:"default_network,omitempty"`
	Pinned         bool   `json:"pinned,omitempty"`
	// Networks are those in use, the last good ones, in order, without loopback's.
	Networks []NetworkView `json:"networks"`
	// Files has a verdict on each file, in order, as of the set observed last that had settled.
	Files []FileView `json:"files"`
	// Ignored counts what else the directory holds.
	Ignored []state.IgnoredView `json:"ignored,omitempty"`
	// Error is why what is on disk cannot be used. nil: it can, or there is nothing.
	Error *ConfError `json:"error,omitempty"`
	// Status is what came of the STATUS verbs.
	Status StatusView `json:"status"`
	// Reloads counts the sets that were taken into use since Run began.
	Reloads int `json:"reloads"`
	// LastSuccess is when the set in use was taken into use. Zero: there is none.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// LastError is the newest failure that still stands, in one line, of whatever kind: a file, the directory, a missing plugin, STATUS.
	LastError string `json:"last_error,omitempty"`
	// NextRetry is when what fails is tried again by itself. Zero: nothing fails that is not looked at by each poll anyway.
	NextRetry time.Time `json:"next_retry,omitzero"`
	// Filesystem is the kind of filesystem the directory is on, as in state.RootView.
	Filesystem string `json:"filesystem"`
	// LastScan is when the last poll ended, LastGoodScan when the last one did that told what is there. Zero: there was none. A directory that does not
	// exist was told.
	LastScan     time.Time `json:"last_scan,omitzero"`
	LastGoodScan time.Time `json:"last_good_scan,omitzero"`
	// GoodScanAge is Time less LastGoodScan, in seconds; 0 if there was none.
	GoodScanAge float64 `json:"good_scan_age_seconds"`
	// ScanError is what was wrong with the last poll.
	ScanError string `json:"scan_error,omitempty"`
}

// DirView is one directory of plugins.
type DirView struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
}

// NetworkView is one network in use.
type NetworkView struct {
	Name string `json:"name"`
	// File is the path of the file that it was read from.
	File       string `json:"file"`
	FileBase64 string `json:"file_base64,omitempty"`
	CNIVersion string `json:"cni_version"`
	// Interface is the name of its interface in a pod.
	Interface string       `json:"interface"`
	Plugins   []PluginView `json:"plugins"`
}

// PluginView is one plugin of a network, in the order in which they run.
type PluginView struct {
	// Type is the name of its binary.
	Type string `json:"type"`
	// Path is its binary. Empty: not all of the directory's plugins were found yet.
	Path       string `json:"path,omitempty"`
	PathBase64 string `json:"path_base64,omitempty"`
	// Missing is why there is no such binary that can be run (CN10). Empty: there is one, or it was not looked for yet.
	Missing string `json:"missing,omitempty"`
	// IPAM is the type of the plugin that gives it addresses. Empty: its configuration names none.
	IPAM string `json:"ipam,omitempty"`
	// IPAMMissing is why there is no such binary in BinDirs that can be run. It makes nothing not ready: some plugins look for theirs elsewhere (CN10). Empty:
	// there is one, or it was not looked for yet.
	IPAMMissing string `json:"ipam_missing,omitempty"`
}

// StatusView is what came of the STATUS verbs (CN12). They are asked of networks of cniVersion 1.1.0 and later; others have nothing to say, which counts as well.
type StatusView struct {
	// Asked is when the last answer came. Zero: there was none.
	Asked time.Time `json:"asked,omitzero"`
	// Error is what is wrong by that answer, in one line.
	Error string `json:"error,omitempty"`
	// Running is since when the plugins have been asked. Zero: they are not being asked just now.
	Running time.Time `json:"running_since,omitzero"`
	// Tries counts the failed ones in a row.
	Tries int `json:"tries"`
}

// NotReadyError is what LastStatus returns: no pod can be set up.
type NotReadyError struct {
	// State is Loading or NotReady.
	State State
	// Text says why, in one line; View's Message is MessagePrefix and this.
	Text string
	// Err is the cause, if it is one that errors.Is and errors.As have a use for: a *ConfError, an error of a STATUS verb, gocni.ErrCNINotInitialized if there is no network.
	Err error
}

// Error returns the text.
func (e *NotReadyError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Err }

func dirViews(dirs []string) []DirView {
	views := make([]DirView, 0, len(dirs))
	for _, dir := range dirs {
		views = append(views, DirView{dir, scanner.Base64(dir)})
	}
	return views
}
