// Package simfs is a simulated node: a filesystem in memory and the plugins behind its sockets, for tests of whatever
// looks for plugins by looking at files.
//
// # Use
//
//	node := simfs.New(simfs.Config{ReuseInodes: true})
//	defer node.Close()
//	err := node.MkdirAll("/plugins", 0o755)
//	plugin, err := node.Bind("/plugins/a.sock", simfs.Plugin{Type: "CSIPlugin", Name: "a.example.com"})
//	// give node to the code under test as its afero.Fs, and node.Dial, which takes a path, as its dialer. For a Manager of package register:
//	cfg := register.Config{
//		Roots: []scanner.Config{{FS: node, Root: "/plugins"}},
//		Dial:  func(ctx context.Context, e scanner.Entry) (net.Conn, error) { return node.Dial(ctx, e.Path) },
//	}
//	record, err := plugin.Wait(ctx, func(r simfs.Record) bool { return len(r.Notices) > 0 })
//
// Files are made, changed and removed by the methods of afero.Fs and the functions of package afero. Mknod makes what
// has no other call: sockets with nobody behind them, FIFOs, devices. Mount and Unmount change what device a directory
// is on. Inject makes a call fail, hang, list too little, show what was there before, or meet a change made at that very
// moment; Calls counts them. Freeze has a path show what was there before, as an attribute cache does.
//
// # Paths
//
// Paths are separated by slashes on every system, Windows too, and start at the root; a relative path starts there as
// well. Names may have any bytes but slash and NUL, at most 255. ".." is the parent of what was really reached, after
// links.
//
// # Promises
//
//   - Errors, open flags and the listing calls behave as those of package os on Linux.
//   - What a FileInfo or a listing says was true at one moment and never changes afterwards.
//   - Stamps: making, removing and renaming move both stamps of the directory; writing moves both of the file; Chmod and
//     Chown move the change time alone, and so do rename and removal for what was renamed or removed; Chtimes sets the
//     modification time and moves the change time. Nothing else moves a stamp.
//   - An inode number is used again only where Config.ReuseInodes says so, and never while a name, an open file or a
//     listener holds the inode.
//   - The same calls in the same order give the same inodes and the same listings.
//   - No call sleeps, and none uses the network or the disk. Time is time.Now and timers, so in a testing/synctest bubble
//     all time is the bubble's, provided that New was called inside it.
//   - No goroutine is left after FS.Close, or after Crash or Stop of every plugin, beside callers stuck in a Hook.
//
// # What it does not do
//
// Permissions are shown and never enforced: inject EACCES. There are no hard links, access times, umask or quotas. A
// FIFO, device or socket cannot be opened (ENXIO). The size of a directory never changes. A connection carries no file
// descriptors or credentials; its Peer method says what Plugin says. Crash shows the client an end of file, never a
// reset. Unmounting does not ask whether files are open. A slash behind a name about to be made is ignored.
package simfs
