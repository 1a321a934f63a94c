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
	// Local: the cause is on our side, as a lack of descriptors is. Tried again with backoff; it says nothing of the plugin.
	Local
	// Stale: what is at the path is not what a scan found there. It is looked at again (R15).
	Stale
)

// Peer is the process at the other end of a connection, as the operating system tells. Two instances are the same process if PID and Start are equal.
type Peer struct {
	UID int
	// PID is 0, and Start too, if the process is unknown, as it may be in another pid namespace.
	PID int
	// Start is when the process started, in a unit that only comparing for equality has a use for. 0: unknown.
	Start uint64
}

// process reports whether the peer tells its process.
func (p *Peer) process() bool { return p != nil && p.PID != 0 && p.Start != 0 }

// Info is a plugin's answer to GetInfo, its endpoint parsed.
type Info struct {
	Type, Name, Endpoint string
	Versions             []string
}

type (
	// Scanned is the result of one scan of a root. A Snapshot may come with an error; the one given last, again, means that nothing changed. What it says of a
	// path is dropped if a look at the path started later.
	Scanned struct {
		Root           string
		Snapshot       *scanner.Snapshot
		Err            error
		Started, Ended time.Time
		// Filesystem is the kind of filesystem that the root turned out to be on. Empty: as before.
		Filesystem string
	}
	// Looked is the result of Look. Err nil: Entry is there. An error that is fs.ErrNotExist: nothing is there, which only a scan confirms. Any other: unknown.
	Looked struct {
		ID      EffectID
		Entry   scanner.Entry
		Err     error
		Started time.Time
	}
	// HandlerAdded: there is a handler for a type from now on (R8). Exclusive: it takes one instance of a name at a time (N2).
	HandlerAdded struct {
		Type      string
		Exclusive bool
	}
	// Disconnected: a connection that an Asked has brought ended, and not by Close (L1). GoAway: the other side said that it closes it; otherwise it just ended, as
	// it does when the process dies. It comes once for a connection, not before its Asked.
	Disconnected struct {
		Conn   EffectID
		GoAway bool
	}
	// Asked is the result of Ask. Connected says that a connection under the effect's number is open and now the core's to close; with Err it means that
	// the plugin answered, and that the answer is no good.
	Asked struct {
		ID        EffectID
		Info      Info
		Peer      *Peer // of the connection; nil: unknown
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
	// Notified is the result of Notify.
	Notified struct {
		ID      EffectID
		Err     error
		Failure Failure
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
func (Looked) input()       {}
func (HandlerAdded) input() {}
func (Disconnected) input() {}
func (Asked) input()        {}
func (Called) input()       {}
func (Notified) input()     {}
func (Reported) input()     {}
func (RetryAsked) input()   {}
func (Tick) input()         {}
func (Stopping) input()     {}
