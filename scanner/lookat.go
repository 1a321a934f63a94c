package scanner

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// maxLooks is how many Looks of one root make calls at a time; others wait for their turn. It is few because each may come to be stuck.
const maxLooks = 4

// errNotBelow is the error of a path that no scan can have given.
var errNotBelow = errors.New("it is not below the root")

var errLookFiles = errors.New("a look is for sockets, and this Scanner selects files: only a scan reads them")

// noCandidate says what is at a path instead of a socket. It is fs.ErrNotExist for errors.Is.
type noCandidate string

func (e noCandidate) Error() string { return "no longer a candidate: " + string(e) }

func (e noCandidate) Is(target error) bool { return target == fs.ErrNotExist }

// Look takes one look at one path that a scan of sockets has given, as Entry.Path, and makes of it what a scan makes of it (D2, D5). It may be called at any time, also
// while a Scan or other Looks run. It does not wait for a Scan, nor a Scan for it, and what it sees changes nothing about what a Scan returns.
//
// An error for which errors.Is(err, fs.ErrNotExist) holds says that there is no candidate any more, and its text whether the path is gone or what is there
// now. That need not be the last word: the root may be unmounted, or another directory in its place; only a scan confirms that something is gone (U2,
// U5). Any other error means that it is unknown what is there; the Entry that comes with it is zero, but if a look was refused where that means
// "present, maybe" (D2): then it has Maybe set, and an ID that tells no more than that. Errors are *Error, or ctx.Err().
//
// It returns when ctx ends at the latest. Four Looks of a root make their calls at a time, others wait for their turn. A call may take as long as one of a scan
// (U4): Config.CallTimeout, or less if the path hung not long ago. One that has not returned then is left behind, see Stuck. Until it has, Looks at that path
// and below it are answered at once with an error, as they are where a Scan has left one behind, and a Scan keeps away from it too. The same holds
// for any path while eight calls of the root are stuck.
func (s *Scanner) Look(ctx context.Context, path string) (Entry, error) {
	if s.cfg.Select.files {
		return Entry{}, &Error{Op: "lstat", Path: path, Err: errLookFiles}
	}
	if err := s.mayBe(path); err != nil {
		return Entry{}, &Error{Op: "lstat", Path: path, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	select {
	case s.looks <- struct{}{}:
	case <-ctx.Done():
		return Entry{}, ctx.Err()
	}
	defer func() { <-s.looks }()
	c := &caller{fs: s.cfg.FS, ended: make(chan struct{})}
	for {
		other, err := s.calls.admit(c, path, s.root, s.cfg.CallTimeout)
		if err != nil {
			return Entry{}, err
		}
		if other == nil {
			break
		}
		// Another call is made on the path, or was left behind a moment ago, or the last places are taken.
		if err := s.waitFor(ctx, other, 0); err != nil && ctx.Err() != nil {
			return Entry{}, ctx.Err()
		}
	}
	var f finding
	go func() {
		defer close(c.ended)
		defer s.calls.remove(c)
		f = s.look(c, path, typeUnknown)
	}()
	if err := s.waitFor(ctx, c, s.calls.soonest(s.cfg.CallTimeout, false)); err != nil {
		if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
			c.quit(&s.calls, true)
		}
		return Entry{}, err
	}
	return f.entry(path)
}

// waitFor returns nil when the caller's goroutine has ended. It gives the caller up when its call takes too long, for which it looks at it after first.
func (s *Scanner) waitFor(ctx context.Context, c *caller, first time.Duration) error {
	select {
	case <-c.ended: // so it is mostly
		return nil
	default:
	}
	var after <-chan time.Time
	var timer *time.Timer
	if s.cfg.CallTimeout > 0 {
		timer = time.NewTimer(first)
		defer timer.Stop()
		after = timer.C
	}
	for {
		select {
		case <-c.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-after:
			given, stuck, later := c.giveUp(&s.calls, s.cfg.CallTimeout, false)
			if stuck {
				return &Error{Op: given.Op, Path: given.Path, Err: noAnswer(given.after)}
			}
			timer.Reset(later)
		}
	}
}

// admit says that c is about to make a call on path. other is who does that already, or who has the last place, and is to be waited for; err is why nothing
// may be called there.
func (l *calls) admit(c *caller, path, root string, timeout time.Duration) (other *caller, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other = l.looking[path]; other != nil && l.stuck[other].Path == "" {
		return other, nil
	}
	for other, g := range l.stuck {
		same, given := g.Path == path, g.after > 0 || timeout > 0 && time.Since(g.Since) >= timeout
		switch {
		case same && !given:
			return other, nil
		case given && (same || len(g.Path) >= len(root) && inside(path, g.Path)):
			return nil, &Error{Op: g.Op, Path: g.Path, Err: noAnswer(cmp.Or(g.after, timeout))}
		}
	}
	if len(l.stuck) >= maxStuck {
		return nil, &Error{Op: "lstat", Path: path, Err: tooManyStuck(maxStuck)}
	}
	under := 0
	for _, c := range l.looking {
		if l.stuck[c].Path == "" {
			other = c
			under++
		}
	}
	if len(l.stuck)+under >= maxStuck {
		return other, nil
	}
	if l.looking == nil {
		l.looking = map[string]*caller{}
	}
	l.looking[path] = c
	c.path = path
	return nil, nil
}

// inside reports whether path is one below dir.
func inside(path, dir string) bool {
	return len(path) > len(dir) && strings.HasPrefix(path, dir) && (os.IsPathSeparator(path[len(dir)]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// mayBe says why no scan looks at path.
func (s *Scanner) mayBe(path string) error {
	rest, ok := strings.CutPrefix(path, s.root)
	if ok && rest != "" && !os.IsPathSeparator(s.root[len(s.root)-1]) {
		ok = os.IsPathSeparator(rest[0])
		rest = rest[1:]
	}
	if !ok || rest == "" {
		return errNotBelow
	}
	for depth := 0; ; depth++ {
		name, deeper := cutComponent(rest)
		switch {
		case name == "":
			return errNotBelow
		case name[0] == '.':
			return noCandidate(DotName)
		case depth > max(s.cfg.MaxDepth, 0):
			return noCandidate(TooDeep)
		case !deeper:
			return nil
		}
		rest = rest[len(name)+1:]
	}
}

// entry is what a Look returns.
func (f finding) entry(path string) (Entry, error) {
	switch f.class {
	case classSocket:
		return Entry{Path: path, ID: f.id}, nil
	case classMaybe:
		return Entry{Path: path, ID: f.id, Maybe: true}, f.err
	case classVanished:
		return Entry{}, f.err
	case classUnreadable:
		if errors.Is(f.err, syscall.ENOTDIR) {
			return Entry{}, &Error{Op: "lstat", Path: path, Err: noCandidate("a file is on the way to it")}
		}
		return Entry{}, f.err
	case classDirectory:
		return Entry{}, &Error{Op: "lstat", Path: path, Err: noCandidate("a directory")}
	}
	return Entry{}, &Error{Op: "lstat", Path: path, Err: noCandidate(f.class.reason())}
}
