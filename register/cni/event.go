package cni

import (
	"time"
)

// EventKind is what happened. The texts are part of the JSON interface.
type EventKind string

// The kinds of Event.
const (
	EventView           EventKind = "view"            // the first event of a subscription: View is set
	EventApplied        EventKind = "applied"         // another set of files was taken into use: Revision, Networks
	EventRejected       EventKind = "rejected"        // what is on disk cannot be used: Conf, Error; the last good set stays (CN7)
	EventRepaired       EventKind = "repaired"        // it can be again, and is what was in use all the time
	EventUnaffected     EventKind = "unaffected"      // other files have changed than those in use: Revision
	EventEmpty          EventKind = "empty"           // there is no file any more, or no directory: Error
	EventDefaultChanged EventKind = "default_changed" // the default network has another name: Network, Former (CN9)
	EventPluginsMissing EventKind = "plugins_missing" // binaries of a network in use are: Error
	EventPluginsFound   EventKind = "plugins_found"   // none is any more
	EventStatusFailing  EventKind = "status_failing"  // a STATUS verb says so, or does not answer: Error, NextRetry
	EventStatusOK       EventKind = "status_ok"       // it is well again
	EventScanFailing    EventKind = "scan_failing"    // the directory cannot be listed: Error; nothing changes for that, and Network is the default one in use that stays
	EventScanRecovered  EventKind = "scan_recovered"  // it can be again
	EventReady          EventKind = "ready"           // pods can be set up
	EventNotReady       EventKind = "not_ready"       // they cannot: Error
	EventSynced         EventKind = "synced"          // it was decided for the first time what the directory comes to
	EventLost           EventKind = "lost"            // a slow reader missed Lost events
)

// Event is one change of one directory, as Events yields it.
type Event struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	Kind    EventKind `json:"kind"`
	// Name is that of the runtime handler; "" the default one.
	Name          string `json:"name"`
	ConfDir       string `json:"conf_dir"`
	ConfDirBase64 string `json:"conf_dir_base64,omitempty"`
	// State is the one after the event.
	State State `json:"state"`
	// Revision is that of the set the event is about.
	Revision Revision `json:"revision,omitempty"`
	// Network is the name of the default network, Networks how many there are; Former is the name it had before.
	Network  string `json:"network,omitempty"`
	Networks int    `json:"networks,omitempty"`
	Former   string `json:"former,omitempty"`
	// Error is why, in one line. Conf is the same with its parts, if a file is to blame.
	Error string     `json:"error,omitempty"`
	Conf  *ConfError `json:"conf_error,omitempty"`
	// NextRetry is when it is tried again.
	NextRetry time.Time `json:"next_retry,omitzero"`
	Lost      int       `json:"lost,omitempty"`
	View      *View     `json:"view,omitempty"`
}
