package simfs

import (
	"context"
	"io/fs"
	"slices"
	"time"
)

// Op names an operation, for Inject and Calls. Its text is the Op of the *fs.PathError that the operation returns.
type Op string

// The operations. A fault is kept under the path as the caller wrote it, cleaned lexically: links are not resolved, and
// a fault of a directory does not spread to what is below.
const (
	OpOpen     Op = "open"       // Open, OpenFile and Create
	OpList     Op = "readdirent" // one pass over a directory: the first ReadDir, Readdir or Readdirnames after Open or Seek
	OpEntry    Op = "entry"      // an entry's place in a listing of its directory: any fault leaves it out
	OpLstat    Op = "lstat"      // LstatIfPossible, DirEntry.Info, and each entry of Readdir
	OpStat     Op = "stat"       // Stat, of a path and of an open file
	OpReadlink Op = "readlink"
	OpRead     Op = "read"  // Read and ReadAt
	OpWrite    Op = "write" // Write, WriteAt, WriteString and Truncate
	OpMkdir    Op = "mkdir" // also for each directory that MkdirAll makes
	OpMknod    Op = "mknod"
	OpSymlink  Op = "symlink" // under the path of the link
	OpRename   Op = "rename"  // under the old path
	OpRemove   Op = "remove"  // also for each thing that RemoveAll removes
	OpChmod    Op = "chmod"
	OpChown    Op = "chown"
	OpChtimes  Op = "chtimes"
	OpBind     Op = "bind"
	OpDial     Op = "connect"
)

// Fault is what goes wrong with an operation. The parts happen in the order of the fields.
type Fault struct {
	// Hook, when not nil, is called first, with nothing locked: it may change the filesystem, so that the change falls
	// between two calls of the code under test.
	Hook func()

	// Hang holds the call until the fault is cleared; then it goes on. FS.Close ends it with fs.ErrClosed, and a Dial
	// also ends with its context.
	Hang bool

	// Err, when not nil, is returned instead of doing the operation: any error, as a rule a syscall.Errno. It comes
	// wrapped as package os would wrap it. With OpList it cuts the listing: the first After entries come, then Err. There
	// io.EOF cuts without a sign of it.
	Err error

	// After is the number of entries that come before Err. OpList only.
	After int

	// Stale answers with what was there when the fault was injected, as the caches of NFS and FUSE do: type, inode, size and
	// stamps of then, what was removed since as if it were still there, and fs.ErrNotExist for what is new. OpLstat, OpStat
	// and OpList only; all other operations see what there is. Stat of an open file and a listing are stale only where the
	// file or directory is the one that was at the path then. See also Freeze.
	Stale bool

	// Times is the number of calls the fault is good for. Zero: until it is cleared.
	Times int

	// For is how long the fault is good for, by Config.Now. It lets no call go that hangs already. Zero: until it is cleared.
	For time.Duration
}

type point struct {
	path string
	op   Op
}

type fault struct {
	Fault
	used    int
	until   time.Time // zero: no such time
	was     *past     // nil: not stale
	cleared chan struct{}
}

// outcome is what a call is to do. An Err in it stands in for the operation.
type outcome struct {
	Fault
	was *past // answers in the operation's place; nil: what is there does
}

// Inject adds a fault to an operation on a path. Several faults of one point are used up one after the other, the
// oldest first. The returned function clears this fault and lets go the calls that hang in it; it may be called more
// than once.
func (f *FS) Inject(name string, op Op, what Fault) (clear func()) {
	var was *past
	if what.Stale {
		was = f.remember(clean(name))
	}
	return f.inject(point{clean(name), op}, what, was)
}

// Freeze has all that shows a path show it as it is now, for d by Config.Now; zero: until it is thawed. It is a Fault with
// Stale for each of OpLstat, OpStat and OpList, all of one moment. The returned function clears them.
func (f *FS) Freeze(name string, d time.Duration) (thaw func()) {
	was := f.remember(clean(name))
	var clears []func()
	for _, op := range []Op{OpLstat, OpStat, OpList} {
		clears = append(clears, f.inject(point{clean(name), op}, Fault{Stale: true, For: d}, was))
	}
	return func() {
		for _, clear := range clears {
			clear()
		}
	}
}

func (f *FS) inject(at point, what Fault, was *past) (clear func()) {
	added := &fault{Fault: what, was: was, cleared: make(chan struct{})}
	f.faultMu.Lock()
	defer f.faultMu.Unlock()
	if what.For > 0 {
		added.until = f.clock().Add(what.For)
	}
	f.faults[at] = append(f.faults[at], added)
	return func() {
		f.faultMu.Lock()
		defer f.faultMu.Unlock()
		for i, have := range f.faults[at] {
			if have == added {
				f.faults[at] = append(f.faults[at][:i:i], f.faults[at][i+1:]...)
				close(added.cleared)
				return
			}
		}
	}
}

// ClearFaults clears every fault and lets go all calls that hang.
func (f *FS) ClearFaults() {
	f.faultMu.Lock()
	defer f.faultMu.Unlock()
	for at, list := range f.faults {
		for _, have := range list {
			close(have.cleared)
		}
		delete(f.faults, at)
	}
}

// Calls is the number of calls of an operation on a path since New, failed ones included. The path is taken as for
// Inject.
func (f *FS) Calls(name string, op Op) int {
	f.faultMu.Lock()
	defer f.faultMu.Unlock()
	return f.calls[point{clean(name), op}]
}

// clock is the time now, not cut to the granularity of stamps.
func (f *FS) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cfg.Now == nil {
		return time.Now()
	}
	return f.cfg.Now()
}

// enter counts a call and lets its fault happen.
func (f *FS) enter(op Op, name string) outcome { return f.enterContext(context.Background(), op, name) }

func (f *FS) enterContext(ctx context.Context, op Op, name string) outcome {
	have := f.claim(point{clean(name), op})
	if have == nil {
		return outcome{}
	}
	return f.happen(ctx, have)
}

func (f *FS) happen(ctx context.Context, have *fault) outcome {
	if have.Hook != nil {
		have.Hook()
	}
	if have.Hang {
		select {
		case <-have.cleared:
		case <-ctx.Done():
			return outcome{Fault: Fault{Err: ctx.Err()}}
		case <-f.closed:
			return outcome{Fault: Fault{Err: fs.ErrClosed}}
		}
	}
	return outcome{have.Fault, have.was}
}

// claim counts a call and uses its oldest fault that is neither used up nor over; nil: none. Those that are, and hold no call, are forgotten.
func (f *FS) claim(at point) *fault {
	f.faultMu.Lock()
	defer f.faultMu.Unlock()
	f.calls[at]++
	f.faults[at] = slices.DeleteFunc(f.faults[at], func(have *fault) bool { return !have.Hang && f.spent(have) })
	for _, have := range f.faults[at] {
		if !f.spent(have) {
			have.used++
			return have
		}
	}
	return nil
}

// spent reports whether a fault is used up or over.
func (f *FS) spent(have *fault) bool {
	usedUp := have.Times > 0 && have.used >= have.Times
	return usedUp || !have.until.IsZero() && !f.clock().Before(have.until)
}
