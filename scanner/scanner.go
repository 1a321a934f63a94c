package scanner

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Scanner scans one root. It is made by New and safe for concurrent use.
type Scanner struct {
	cfg  Config
	root string // Config.Root without separators at its end
	goos string
	// settleTime is key.settleTime, except where a test shows that it is needed.
	settleTime func(key) time.Duration
	// statfs is statfsOf, except where a test has it hang.
	statfs func(*os.File) func() (magic uint32, told bool)

	// turn holds one token; whoever takes it may scan (U6). It also guards what follows. A mutex would neither heed a context nor let a synctest
	// bubble see that it waits.
	turn     chan struct{}
	rootSeen bool
	memory   memory
	above    above
	warned   map[string]bool // the paths that were warned about
	content  []byte          // the buffer for files, between two scans

	looks    chan struct{} // holds a token for each Look that makes calls
	calls    calls
	verdicts verdicts
	// rootType is the number of the root's filesystem, and toldBit if it is known.
	rootType atomic.Uint64
}

// New returns a Scanner for a Config, or what Config.Check says against it. It does not touch the filesystem.
func New(c Config) (*Scanner, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Scanner{cfg: c.withDefaults(), root: rootPath(c, runtime.GOOS), goos: runtime.GOOS, settleTime: key.settleTime, statfs: statfsOf, turn: make(chan struct{}, 1), looks: make(chan struct{}, maxLooks)}
	s.turn <- struct{}{}
	return s, nil
}

// Root returns Config.Root.
func (s *Scanner) Root() string { return s.cfg.Root }

// Scan takes one full look at the tree. last is the Snapshot of the look before, of a Scanner with the same root; nil is an empty world (D1).
//
// It returns last itself if nothing changed: the entries, whether and why they are stale, what is ignored, and which filesystem the root is on.
// The first scan of an empty tree returns an empty Snapshot, not nil.
//
// An error does not make the Snapshot useless: it is what could be seen, with what could not be seen carried over from last and marked stale.
// The error joins at most 20 *Error and the number of the rest. Only when ctx ends first is the Snapshot last and the error ctx.Err(); it returns
// at once then, though it may leave a call behind that does not return (see Stuck).
//
// It makes its calls from a goroutine of its own, which ends with it. A call that takes longer than Config.CallTimeout is given up (U4).
//
// A directory that has not changed is not read again, where the filesystem is known to tell: its names and what they are stand, and links in
// it are looked at. What changes about a socket without its directory changing, as by chmod, may so be seen up to FullEvery later. This takes
// what the Scanner remembers of its own last look; with another Snapshot, and at any time after a scan that was ended, it reads everything.
//
// Where files are selected every directory and every selected file is read (CN2).
//
// Calls on one Scanner wait for each other. Config.Each must not call Scan.
func (s *Scanner) Scan(ctx context.Context, last *Snapshot) (*Snapshot, error) {
	select {
	case <-ctx.Done():
		return last, ctx.Err()
	case <-s.turn:
	}
	defer func() { s.turn <- struct{}{} }()

	next, err := last, error(nil)
	w, unchanged, ended := newScan(s, last).attempt(ctx)
	switch {
	case ended != nil:
		return last, ended
	case unchanged:
		s.memory = memory{last, w.before}
	default:
		next, err = w.snapshot(), w.faults.join()
		s.memory = memory{next, w.after}
	}
	if s.cfg.Logger.IsTrace() {
		s.cfg.Logger.Trace("scanned", "root", Quote(s.cfg.Root), "took", time.Since(w.start), "entries", next.Len(), "changed", next != last, "errors", w.faults.count())
	}
	return next, err
}
