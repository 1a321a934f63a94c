package register

import (
	"context"

	"github.com/plugpoll/plugpoll/state"
)

// Handler takes plugins of one type. Its methods may be called at the same time for different plugin names, never at the same time for one name or one
// socket (R7). Each context carries the call's deadline, if there
// is one (Config.HandlerTimeout). Those of Validate and Register end when Run's does; that of Deregister does too, unless Config.DeregisterOnStop is set.
//
// A Handler that also has a method Exclusive() bool, and returns true, is given one instance of a plugin name at a time, the one that was found last; the others stand
// by and follow when it leaves (N2). Any other is given all of them (N1). AddHandler asks once.
type Handler interface {
	// Validate says whether the plugin is acceptable; it should have no effect. The plugin is told the error's text.
	Validate(ctx context.Context, r state.Registration) error
	// Register takes the plugin over. After nil, and only then, Deregister is called, once and with the same Registration (R2, R5); not on stop, unless Config.DeregisterOnStop is set.
	// After an error it is tried again with backoff, or later if the error is Permanent. report may be called, from any goroutine and any number of times,
	// to show something of the plugin in View and Events, until Deregister returns; later calls are dropped, and of several in quick succession all but the last may be.
	Register(ctx context.Context, r state.Registration, report func(state.Report)) error
	// Deregister lets the plugin go: its socket is gone or belongs to another instance. An error is shown and not retried (R5).
	Deregister(ctx context.Context, r state.Registration) error
}
