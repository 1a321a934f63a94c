package state

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// Effect is something the shell is to do. Those with an Op end in one input that carries its ID; the others are done at once and have no result.
type Effect interface{ effect() }

// Op names an effect that has a result.
type Op struct {
	ID EffectID
	// Generation of the socket's instance the effect belongs to (R7).
	Generation uint64
	Path       string
}

type (
	// Ask: dial the socket and call GetInfo. Ends in Asked.
	Ask struct {
		Op
		Entry scanner.Entry
		// Tries is how many tries of this instance failed before.
		Tries int
		// Unseen is, for the first dial of an instance that a scan found, when the last scan started that did not show it. Zero: not known.
		Unseen time.Time
	}
	// Look: look at the path now. Ends in Looked.
	Look struct{ Op }
	// Validate: call the handler's Validate. Ends in Called.
	Validate struct {
		Op
		Registration Registration
	}
	// Register: call the handler's Register. Ends in Called.
	Register struct {
		Op
		Registration Registration
	}
	// Deregister: call the handler's Deregister. Ends in Called.
	Deregister struct {
		Op
		Registration Registration
	}
	// Notify: call NotifyRegistrationStatus. Ends in Notified.
	Notify struct {
		Op
		// Conn is the connection to use.
		Conn EffectID
		// Registered and Message are what the plugin is told (R3): valid UTF-8, at most 1 KiB.
		Registered bool
		Message    string
	}
	// Cancel: end the effect with this number. A probe's result is no longer waited for; a handler call's is.
	Cancel struct{ ID EffectID }
	// Close: close the connection with this number.
	Close struct{ Conn EffectID }
	// Rescan: scan the root at the eager pace (U6), because something in it seems to be gone.
	Rescan struct{ Root string }
	// Emit: print and publish.
	Emit struct {
		Level Level
		Event Event
	}
	// Synced: every root was scanned and everything found then was tried (O3). Comes once.
	Synced struct{}
	// Stopped: after Stopping, no handler call is running or wanted any more, and every connection was closed. Comes once.
	Stopped struct{}
)

func (Ask) effect()        {}
func (Look) effect()       {}
func (Validate) effect()   {}
func (Register) effect()   {}
func (Deregister) effect() {}
func (Notify) effect()     {}
func (Cancel) effect()     {}
func (Close) effect()      {}
func (Rescan) effect()     {}
func (Emit) effect()       {}
func (Synced) effect()     {}
func (Stopped) effect()    {}
