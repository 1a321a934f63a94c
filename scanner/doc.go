// Package scanner answers one question: which plugin sockets, or configuration files, are in a directory tree right now?
//
// It looks, and looks again. There is no notification behind it, so it works wherever a directory can be listed: Windows, FUSE, network
// filesystems, containers without inotify, and a simulated filesystem in a test.
//
// # Use
//
// A Scanner belongs to one root. Scan takes one full look and wants the Snapshot of the look before, because what an earlier look has seen
// decides what this one may conclude:
//
//	s, err := scanner.New(scanner.Config{Root: "/var/lib/kubelet/plugins_registry"})
//	…
//	next, err := s.Scan(ctx, last)
//	for _, c := range scanner.Diff(last, next) { … }
//	last = next
//
// Watch does this in a loop, at the pace of Pace, for those who want nothing else from the loop. Look takes one look at one path that a Scan has found, and
// may be called while Scans run.
//
// # Files
//
// With Config.Select set to Files the same Scanner is for a directory of configuration. Its entries are then the files with these extensions, Entry.File has their
// content or why that is not known, and a Change is a change of content (CN1 to CN4). What follows holds for them as well, but that no directory is skipped and that
// stamps are not asked.
//
// # Promises
//
// A Snapshot is sorted, immutable and holds copies of values (I5). Scan returns the Snapshot it was given, the same pointer, when nothing
// changed, so an unchanged tree costs its user nothing.
//
// Not seen is not the same as gone. A socket leaves the Snapshot only if every directory on the way to it was listed to its end and Lstat
// confirms that it, or the directory it was in, does not exist or is something else now (U1, U2). Whatever else happens, be it an unreadable
// directory, half a listing, an errno of any kind, or a limit that was reached, keeps the entry with Entry.Stale set. So does a root that is
// missing or on another filesystem than before, but only for Config.RootGrace (U5). A scan therefore returns a Snapshot that may be used together with its error.
//
// One bad entry never hides another (U3). Names that start with a dot are not looked at (D3). Files, pipes and devices are counted and
// never opened (D2), but for the regular files that are selected. Directories are opened by path on every scan, so what was removed and made again, renamed or mounted over is found (D7).
//
// Only net changes between two scans count (D6). Two looks at one path are compared by equality of the identity, never by which is newer,
// and no file's time is ever compared with a clock (I1).
//
// A directory that has not changed is not read again, where that can be known: see Scanner.Scan.
//
// A call that does not return holds up its own path and nothing else (U4). It is left behind, listed by Scanner.Stuck, because nothing can end
// it; no other goroutine outlives the Scan that started it. The package keeps no package-level state. Two calls of Scan on one Scanner wait for
// each other (U6).
package scanner
