package simfs

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Plugin says what the plugin behind a socket is and how it behaves. The zero value answers at once, with an empty name
// and type, and is content with what it is told.
type Plugin struct {
	// Type, Name, Endpoint and Versions are the answer to GetInfo.
	Type, Name, Endpoint string
	Versions             []string

	// GetInfo and Notify say how the two calls go.
	GetInfo, Notify Call

	// RefuseDials is the number of dials that are refused with ECONNREFUSED. Negative: all of them.
	RefuseDials int

	// Silent accepts connections and never reads from them or writes to them. It holds for connections made while it is
	// set.
	Silent bool

	// MaxIdle is how long a connection may have no call under way before the plugin says GOAWAY and closes it. Zero: for ever. What was given to Bind
	// holds for all its connections.
	MaxIdle time.Duration

	// UID, PID and Start are what the connection's Peer method returns: owner, process and start of the process. A PID of
	// zero means unknown by custom.
	UID, PID int
	Start    uint64
}

// Call says how one kind of call goes. The zero value answers at once and well.
type Call struct {
	// Delay is the time before the answer. The call ends early when its context ends or the plugin crashes.
	Delay time.Duration

	// Code is the status to fail with, codes.Unimplemented for one. Zero (codes.OK): no failure.
	Code codes.Code

	// Times is the number of calls that fail with Code, those after it go well. Zero: all fail.
	Times int
}

// Record is what happened to a plugin since Bind.
type Record struct {
	Dials    int      // tries to connect that reached it, refused ones included
	Conns    int      // connections open now
	GetInfos int      // calls of GetInfo that arrived, failed ones included
	Notices  []Notice // calls of NotifyRegistrationStatus in the order they arrived, failed ones included
}

// Notice is what one NotifyRegistrationStatus said.
type Notice struct {
	Registered bool
	Error      string
}

func (p Plugin) clone() Plugin {
	p.Versions = slices.Clone(p.Versions)
	return p
}

func (r Record) clone() Record {
	r.Notices = slices.Clone(r.Notices)
	return r
}
