package state

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// APIVersion stands in every View and Event: fields may be added to it, never renamed or given another meaning (docs/api.md).
const APIVersion = "v1"

// Level is how loud an event is in the log (O1).
type Level int

// The levels.
const (
	Debug Level = iota
	Notice
	Warn
)

// EventKind is what happened. The texts are part of the JSON interface.
type EventKind string

// The kinds of Event.
const (
	EventView            EventKind = "view"             // the first event of a subscription: View is set
	EventFound           EventKind = "found"            // a socket appeared
	EventReplaced        EventKind = "replaced"         // another instance is at its path
	EventAdopted         EventKind = "adopted"          // its stamps or its connection changed, and it is the same instance (I4, L1)
	EventGone            EventKind = "gone"             // it is no longer there
	EventRegistered      EventKind = "registered"       // the handler has registered it
	EventAcknowledged    EventKind = "acknowledged"     // the plugin was told so
	EventNotAcknowledged EventKind = "not_acknowledged" // the plugin could not be told; that alone is tried again (R4)
	EventObserved        EventKind = "observed"         // it was asked and is acceptable; in observe mode that is all (R18)
	EventStandby         EventKind = "standby"          // another instance of its name is registered (N2): Holder
	EventUnreachable     EventKind = "unreachable"      // it is registered and does not answer any more (L1)
	EventReachable       EventKind = "reachable"        // it answers again
	EventFailing         EventKind = "failing"          // a try failed; NextTry says when the next one is
	EventRejected        EventKind = "rejected"         // tried again when something changes, on Retry or, but for an unknown type, after ten minutes (R8, R13)
	EventIgnored         EventKind = "ignored"          // it is not a registration socket (R13)
	EventDeregistered    EventKind = "deregistered"     // the handler was told that it is gone
	EventReport          EventKind = "report"           // its handler reports something
	EventRootFailing     EventKind = "root_failing"     // a root cannot be read as a whole
	EventRootRecovered   EventKind = "root_recovered"   // it can again
	EventSynced          EventKind = "synced"           // everything found at start was tried (O3)
	EventLost            EventKind = "lost"             // a slow reader missed Lost events
)

// Event is one change, as Events yields it and `run -o json` prints it.
type Event struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	Kind    EventKind `json:"kind"`
	// Root is the scanned directory. An event that has a Root and no Path is about the directory itself. The fields that end in Base64 are set when
	// their path is not UTF-8, which JSON cannot carry (D10).
	Root       string  `json:"root,omitempty"`
	RootBase64 string  `json:"root_base64,omitempty"`
	Path       string  `json:"path,omitempty"`
	PathBase64 string  `json:"path_base64,omitempty"`
	Phase      Phase   `json:"phase,omitempty"`
	Plugin     *Plugin `json:"plugin,omitempty"`
	// Reason is why a plugin was deregistered.
	Reason Reason `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
	Tries  int    `json:"tries,omitempty"`
	// Holder is the path of the instance that a standby stands by for.
	Holder       string `json:"holder,omitempty"`
	HolderBase64 string `json:"holder_base64,omitempty"`
	// Took is, of a registered event, the seconds from the dial to the end of Register.
	Took    float64     `json:"took_seconds,omitempty"`
	NextTry time.Time   `json:"next_try,omitzero"`
	Report  *ReportView `json:"report,omitempty"`
	Lost    int         `json:"lost,omitempty"`
	View    *View       `json:"view,omitempty"`
}

// Reason is why a plugin is deregistered. The texts are part of the JSON interface.
type Reason string

// The reasons.
const (
	ReasonGone        Reason = "gone"        // its socket is
	ReasonReplaced    Reason = "replaced"    // another instance has answered at its path
	ReasonSilent      Reason = "silent"      // another instance is at its path and has not answered within 2 s (R6)
	ReasonStopping    Reason = "stopping"    // Config.DeregisterOnStop
	ReasonUnreachable Reason = "unreachable" // it has not answered for LivenessGrace (L2)
	ReasonOutranked   Reason = "outranked"   // another instance of its name, found later, takes its place (N2)
)

func (c *Core) emit(level Level, e Event) {
	e.Version, e.Time = APIVersion, c.now
	e.PathBase64, e.RootBase64, e.HolderBase64 = scanner.Base64(e.Path), scanner.Base64(e.Root), scanner.Base64(e.Holder)
	c.do(Emit{level, e})
}

// event describes the socket as it stands.
func (s *socket) event(k EventKind) Event {
	v := s.view()
	return Event{
		Kind: k, Root: v.Root, Path: v.Path, Phase: s.phaseNow(), Plugin: v.Plugin,
		Error: v.LastError, Tries: v.Tries, NextTry: v.NextTry,
	}
}
