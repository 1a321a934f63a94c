package scanner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/afero"
)

// This file is about calls that do not return (U4). A call of a filesystem cannot be cancelled. So a scan's own goroutine makes none: it has
// another one, a caller, make them, and waits no longer than Config.CallTimeout for each (limit.go). Then it gives the caller up, keeps away from the path
// until that call has returned, and goes on with a new caller.

// maxStuck is how many calls of one root may be stuck. Then nothing more is tried in it until one has returned: each is a thread of the system.
const maxStuck = 8

// quitGrace is how long a caller that is not making a call may take to end.
const quitGrace = 100 * time.Millisecond

// Call is a call of the filesystem that was given up and has not returned.
type Call struct {
	// Op is what it is: "list", "lstat", "stat", "open", "read", "create" or "statfs".
	Op string
	// Path is what it is about, raw. Of "statfs" it is a directory on the device that is asked about.
	Path string
	// Since is when it was made.
	Since time.Time
}

// String returns one line, the path through Quote (D10).
func (c Call) String() string { return c.Op + " " + Quote(c.Path) }

// calls are those of a Scanner that were given up.
type calls struct {
	mu    sync.Mutex
	stuck map[*caller]givenUp
	past  map[string]past // of those that have returned, by path
	// looking are the callers of Looks, by path.
	looking map[string]*caller
}

type givenUp struct {
	Call
	after time.Duration // zero: because a context ended
	apart bool          // it is none of a scan's
}

// Stuck returns the calls that were given up, after Config.CallTimeout or because a scan's context ended, and have not returned, by path (U4).
// Each is a goroutine that nothing can end. It does not wait for a scan.
//
// A "statfs" is given up after a moment already. It keeps nobody away from its path: directories on that device are read at each poll until it has
// returned, and that is all.
func (s *Scanner) Stuck() []Call {
	stuck := s.calls.list()
	for _, v := range s.verdicts.late() {
		stuck = append(stuck, v.call)
	}
	slices.SortFunc(stuck, func(a, b Call) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Op, b.Op)) })
	return stuck
}

// Wait returns when no call is stuck, or ctx ends. A scan whose context ends leaves the call behind that it was just making; mostly that takes
// microseconds.
func (s *Scanner) Wait(ctx context.Context) {
	for c := range s.calls.left() {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return
		}
	}
	for _, v := range s.verdicts.late() {
		select {
		case <-v.answered:
		case <-ctx.Done():
			return
		}
	}
}

func (l *calls) list() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Call, 0, len(l.stuck))
	for _, g := range l.stuck {
		list = append(list, g.Call)
	}
	return list
}

func (l *calls) left() map[*caller]givenUp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.stuck)
}

func (l *calls) add(c *caller, g givenUp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.over {
		return
	}
	if l.stuck == nil {
		l.stuck = map[*caller]givenUp{}
	}
	l.stuck[c] = g
}

// hung is how many have had their time.
func (l *calls) hung() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.stuck {
		if g.after > 0 {
			n++
		}
	}
	return n
}

// remove takes note that a caller has ended.
func (l *calls) remove(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.over = true
	if l.looking[c.path] == c {
		delete(l.looking, c.path)
	}
	if g, ok := l.stuck[c]; ok && g.after > 0 {
		if l.past == nil {
			l.past = map[string]past{}
		}
		now := time.Now()
		l.past[g.Path] = past{now.Sub(g.Since), now}
	}
	delete(l.stuck, c)
}

// caller is a goroutine that makes the calls of one scan, and says which it is making. Once it was given up it touches nothing any more: it ends
// when its call returns.
type caller struct {
	fs    afero.Fs
	jobs  chan func(*caller)
	done  chan struct{} // a job is
	ended chan struct{}
	// path is the one of a Look, and over says that nothing is called any more. Both belong to calls.
	path string
	over bool
	// buffer is for listings, content for files.
	buffer  []byte
	content []byte

	mu      sync.Mutex
	call    Call
	calling bool
	gone    bool // given up
}

func (s *Scanner) newCaller() *caller {
	c := &caller{fs: s.cfg.FS, jobs: make(chan func(*caller)), done: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer s.calls.remove(c)
		for job := range c.jobs {
			job(c)
			c.done <- struct{}{}
		}
	}()
	return c
}

// enter says which call is made next.
func (c *caller) enter(op, path string) {
	now := time.Now()
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		runtime.Goexit()
	}
	c.call, c.calling = Call{op, path, now}, true
	c.mu.Unlock()
}

// leave says that the call has returned. If it was given up meanwhile, the goroutine ends here.
func (c *caller) leave() {
	if !c.left() {
		runtime.Goexit()
	}
}

func (c *caller) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calling = false
	return !c.gone
}

// abandoned reports whether the caller was given up.
func (c *caller) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// lstat looks at path itself where the filesystem can (real), else at what it leads to.
func (c *caller) lstat(path string) (info fs.FileInfo, real bool, err error) {
	l, ok := c.fs.(afero.Lstater)
	if !ok {
		info, err = c.stat(path)
		return info, false, err
	}
	c.enter("lstat", path)
	info, real, err = l.LstatIfPossible(path)
	c.leave()
	return info, real, err
}

// key looks at path, and returns its key and mode if it is a directory.
func (c *caller) key(path string) (k key, mode fs.FileMode, ok bool) {
	switch c.fs.(type) {
	case *afero.OsFs, afero.OsFs:
		c.enter("lstat", path)
		k, mode, ok = osKey(path)
		c.leave()
		return k, mode, ok
	}
	info, real, err := c.lstat(path)
	if err != nil || !real || !info.IsDir() {
		return key{}, 0, false
	}
	return keyOf(info), info.Mode(), true
}

func (c *caller) stat(path string) (info fs.FileInfo, err error) {
	c.enter("stat", path)
	info, err = c.fs.Stat(path)
	c.leave()
	return info, err
}

// open opens a directory to list it. Only the root may be a link (D5).
func (c *caller) open(path string, below bool) (afero.File, error) {
	c.enter("list", path)
	f, err := openDir(c.fs, path, below)
	if !c.left() {
		if err == nil {
			_ = f.Close()
		}
		runtime.Goexit()
	}
	return f, err
}

func openDir(fs afero.Fs, path string, below bool) (afero.File, error) {
	switch fs.(type) {
	case *afero.OsFs, afero.OsFs:
	default:
		return fs.Open(path)
	}
	flags := os.O_RDONLY | openDirectory
	if below {
		flags |= openNoLink
	}
	return fs.OpenFile(path, flags, 0)
}

// close is to be deferred.
func (c *caller) close(f afero.File, path string) { c.closeAs(f, "list", path) }

func (c *caller) closeAs(f io.Closer, op, path string) {
	c.mu.Lock()
	entered := !c.gone
	if entered {
		c.call, c.calling = Call{op, path, time.Now()}, true
	}
	c.mu.Unlock()
	_ = f.Close() // opened for reading: nothing can be lost
	if entered {
		c.leave()
	}
}

// giveUp gives the caller up if its call has taken as long as it may, and says which call that is. If not, it says when to look again.
func (c *caller) giveUp(l *calls, timeout time.Duration, troubled bool) (given givenUp, ok bool, later time.Duration) {
	soonest := l.soonest(timeout, troubled)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calling {
		return givenUp{}, false, soonest
	}
	limit := l.limit(timeout, troubled, c.call.Path)
	if left := limit - time.Since(c.call.Since); left > 0 {
		return givenUp{}, false, min(left, soonest)
	}
	c.gone = true
	given = givenUp{Call: c.call, after: limit}
	l.add(c, given) // before the caller can see that it is gone, and remove it
	return given, true, 0
}

// quit gives the caller up whatever it does; apart: it is none of a scan's. Between two calls it takes no time to end, and is waited for, unless it has
// a file to close and that does not return.
func (c *caller) quit(l *calls, apart bool) {
	c.mu.Lock()
	calling := c.calling
	c.gone = true
	if !calling {
		c.call.Since = time.Now()
	}
	l.add(c, givenUp{Call: c.call, apart: apart})
	c.mu.Unlock()
	if c.jobs != nil {
		close(c.jobs)
	}
	if calling {
		return
	}
	timer := time.NewTimer(quitGrace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	}
}

// noAnswer is the error of a call that was given up. It does not say for how long by now: people get that from Entry.Stale, and an error that
// changes with each scan would be another error.
type noAnswer time.Duration

func (e noAnswer) Error() string { return fmt.Sprintf("no answer for %v", time.Duration(e)) }

type tooManyStuck int

func (e tooManyStuck) Error() string {
	return fmt.Sprintf("%d calls do not return: nothing more is tried until one does", int(e))
}
