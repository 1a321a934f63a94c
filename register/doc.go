// Package register makes it so: it keeps the set of registered plugins equal to the sockets in its directories. A [Manager] scans (package scanner),
// decides (package state) and carries out: it dials each socket, asks the plugin who it is, hands it to the [Handler] of its type, and tells it what became of it.
//
// # Use
//
// Make a Manager with [NewManager], give it a Handler for each plugin type with [Manager.AddHandler], and call [Manager.Run], which works until its context
// ends. The example below is complete. [Manager.Synced] says when everything that was there at start has been tried, [Manager.View] shows everything at one
// moment, [Manager.Events] what changes from now on, and [Manager.Retry] does not wait for the backoff.
//
// A Handler is yours, or record.Handler, which accepts what keeps the rules of its type and does nothing with it, or one that was written for the kubelet, by [Kubelet].
//
// # Duties of a Handler
//
//   - It obeys its context. A call that does not return keeps its own socket and plugin name waiting, and is left behind when Run ends (a [StuckError] lists it).
//     One that panics, or ends its goroutine, has failed (R9).
//   - Validate has no effect. It is called again for each try.
//   - Register that returns an error has left nothing behind.
//   - Deregister takes the Registration as it was given to Register, which is all there is to know: the plugin may be gone.
//   - Several sockets may announce one name. They are told apart by Entry.Path.
//   - A Handler that can have one instance of a name only says so by a method Exclusive() bool (N2).
//   - An error that waiting does not mend is wrapped by [Permanent].
//
// # Promises
//
// The numbers are those of docs/contract.md.
//
//   - Every Register that returned nil gets one Deregister, with the same Registration, except when Run ends (R5, S2).
//   - Calls for one plugin name or one socket never overlap (R7). A Register that succeeds after its socket is gone is followed by Deregister at once.
//   - A plugin whose socket is replaced is asked first and then swapped: Deregister of the old, Validate and Register of the new, back to back (R6).
//   - A plugin that is refused is told why (R3). One that cannot be told that it is registered stays registered (R4).
//   - A directory that cannot be read deregisters nothing: not seen is not the same as gone (U1).
//   - The connection to a registered plugin stays open. When it ends the plugin is asked anew at once: the same instance stays registered, and the handler sees
//     nothing; one that does not answer is shown as unreachable, and deregistered after [Config].LivenessGrace (L1, L2).
//   - What is dialled is the socket that was scanned (R15, Linux), and with [Config].AllowedUIDs one of these users' (X1).
//   - What a plugin says is bounded: a name or type of 253 bytes, an endpoint of 4096, 64 versions of 256, an answer of 1 MiB, no control characters (R16).
//   - Connections never take the descriptors that scans need. A plugin that finds none left is tried again.
//   - A try costs one connect (R17). Failed tries are spaced from half a second to two minutes, for ever (R12).
//   - When Run has returned, no goroutine, descriptor or timer of it is left but what the StuckError lists (S3).
//
// It never opens what is not a socket, never removes a socket, never calls a plugin's own API, and never deregisters on stop unless
// [Config].DeregisterOnStop is set. With [Config].Observe it never registers either (R18). It keeps nothing in Prometheus' default registry: [Manager.Collector]
// gives the metrics to a registry of yours.
//
// # Log
//
// Lines follow changes, not tries (O1): the first Info of a socket is "registered", the first Warn "failing". The messages are constant. The keys are
//
//	path        of the socket, or of the directory that cannot be read
//	type        of the plugin, as it says; name, endpoint (if it is not path) and versions likewise
//	tries       failed ones in a row
//	next_try    time of day of the next one
//	error       why, in one line
//	reason      why it was deregistered: gone, replaced, silent (its successor has not answered), unreachable, outranked or stopping
//	holder      path of the instance that a standby stands by for
//	health      what its handler reports
//	message     likewise; also what a refused plugin is told
//	took        duration of a dial and GetInfo
//	registered  whether a plugin is told that it is
//	verb        of a handler's call that panicked: Validate, Register or Deregister
//	stack       where it did, in one line
//
// A value that is not plain text is quoted, so that neither a file name nor a plugin can forge a line (D10).
package register
