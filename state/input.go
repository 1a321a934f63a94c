package state

import (
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// Input is something that happened: the only way to change a Core.
type Input interface{ input() }

// EffectID numbers effects. Every effect of a Core has another one; 0 is none. A connection is named by the effect that opened it.
type EffectID uint64

// Failure says what a failed effect means for the next try.
type Failure int

const (
	// Transient, the zero value: tried again with backoff (R12).
	Transient Failure = iota
	// Unsupported: the other side does not know the call (R4, R13).
	Unsupported
	// Refused: nobody listens. A new instance may have been dialled between its bind and its listen, so its first refusal is no failure yet (R10).
	Refused
	// Permanent: asked again when the socket changes, on Retry, or after ten minutes (R13).
	Permanent
)

// Info is a plugin's answer to GetInfo, its endpoint parsed.
type Info struct {
	Type, Name, Endpoint string
	Versions             []string
}

type (
	// Scanned is the result of one scan of a root. A Snapshot may come with an error; the one given last, again, means that nothing changed.
	Scanned struct {
		Root     string
		Snapshot *scanner.Snapshot
		Err      error
		Ended    time.Time
	}
	// HandlerAdded: there is a handler for a type from now on (R8).
	HandlerAdded struct{ Type string }
	// Asked is the result of Ask. Connected says that a connection under the effect's number is open and now the core's to close; with Err it means that
	// the plugin answered, and that the answer is no good.
	Asked struct {
		ID        EffectID
		Info      Info
		Connected bool
		Err       error
		Failure   Failure
	}
	// Called is the result of Validate, Register or Deregister.
	Called struct {
		ID      EffectID
		Err     error
		Failure Failure
	}
	// Notified is the result of Notify. Connected as in Asked, for a Notify that dialled.
	Notified struct {
		ID        EffectID
		Connected bool
		Err       error
		Failure   Failure
	}
	// Reported: the handler says something of the plugin that the effect Register with this number registered.
	Reported struct {
		ID     EffectID
		Report Report
	}
	// RetryAsked: somebody wants the socket at Path tried now; the empty Path means all.
	RetryAsked struct{ Path string }
	// Tick: the time of Deadline has come. Every other input does the same on its way.
	Tick struct{}
	// Stopping: no handler call starts any more, but for those of DeregisterOnStop (S1, S2).
	Stopping struct{}
)

func (Scanned) input()      {}
func (HandlerAdded) input() {}
func (Asked) input()        {}
func (Called) input()       {}
func (Notified) input()     {}
func (Reported) input()     {}
func (RetryAsked) input()   {}
func (Tick) input()         {}
func (Stopping) input()     {}
