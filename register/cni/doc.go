// Package cni keeps a go-cni instance equal to a directory of network configuration, and says whether the network is ready. It needs no inotify: a [Syncer] looks at the
// directory again and again (package scanner) and goes by what the files hold.
//
// # Use
//
// Make a Syncer with [New], one for each directory, and call [Syncer.Run], which works until its context ends. Ask [Syncer.CNI] for the instance at each Setup: it
// is the newest one that works, and asking waits for nothing. Keep it with the pod for its Remove. [Syncer.LastStatus] is what a runtime reports as NetworkReady, [Syncer.View] shows everything at one moment,
// [Syncer.Events] what changes from now on, and [Syncer.Retry] does not wait for the next poll.
//
// # Promises
//
// The numbers are those of docs/contract.md.
//
//   - A set of files is taken into use as a whole, once two polls in a row have seen the same, and after 10 s of endless writing at the latest (CN5).
//   - It is parsed from the bytes that were scanned, and swapped in by one pointer. An ADD that runs delays neither that nor the status (CN6).
//   - A set that cannot be used leaves the last good one in use, and the state says which file, line and column, and why (CN7).
//   - When all files are gone the network is not ready, and the last good instance still removes pods (CN8).
//   - A directory that cannot be listed changes nothing: not seen is not the same as gone.
//   - A missing plugin binary, a failing STATUS and an unreadable file are tried again without any file changing (CN10). A STATUS that hangs holds up nothing (CN12).
//   - When Run has returned, no goroutine of it is left but what the [StuckError] lists.
//
// It never makes a directory, never opens what is not a regular file, and never runs a plugin but for its STATUS verb.
//
// # Log
//
// Lines follow changes, not polls (O1). The messages are constant. The keys are
//
//	handler   name of the runtime handler; the default one has none
//	path      of the directory, or of the file that is to blame
//	network   name of the default network
//	former    its name before
//	networks  how many there are
//	revision  of what was taken into use
//	error     why, in one line
//	next_try  time of day at which it is asked again
//
// A value that is not plain text is quoted, so that neither a file name nor a plugin can forge a line (D10).
package cni
