package scanner

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/afero"
)

// Polling says how a root is polled and why, as far as the root itself tells. Directories below it may be on other filesystems; each is treated
// by its own.
type Polling struct {
	// Type is the filesystem's, in the word that mount(8) has for it: "ext4" (also for ext2 and ext3, which have the same number), "tmpfs", "nfs",
	// "9p", "fuse" …; its magic number, as "0x1234", if that is not a known one; "unknown" where the system does not tell, which is everywhere but
	// on Linux. For an afero filesystem that is not the operating system's it is its Name.
	Type string
	// SkipsUnchanged says whether a directory that has not changed is not read again until FullEvery is over.
	SkipsUnchanged bool
	// Why is the reason for that, as the part of a sentence that follows "because".
	Why string
	// Settle is how long a directory must have been left alone before it is skipped, by the granularity of the root's stamps: 50 ms, or 2.1 s if
	// they have no parts of a second. 0: nothing is skipped.
	Settle time.Duration
	// Interval is Config.Interval or its default: the least pause between two looks when nothing changes. What Pace makes of it depends on how
	// long a look takes (U6).
	Interval time.Duration
}

// Polling opens the root and says how it is polled. It makes no root (D8), and may be called while a Scan runs. It returns an *Error if the root
// cannot be opened, is no directory, or does not answer within Config.CallTimeout, and ctx.Err() if ctx has ended; the Polling is then the zero value. A
// call that does not return is left behind, and not made again as long as it is stuck (U4).
func (s *Scanner) Polling(ctx context.Context) (Polling, error) {
	asker := ctx
	if s.cfg.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.CallTimeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return Polling{}, err
	}
	if stuck := s.calls.list(); len(stuck) >= maxStuck || slices.ContainsFunc(stuck, func(c Call) bool { return c.Path == s.root }) {
		return Polling{}, s.silent()
	}
	c := s.newCaller()
	var found Polling
	var failed error
	c.jobs <- func(c *caller) { found, failed = s.polling(c, ctx.Done()) }
	select {
	case <-c.done:
		close(c.jobs)
		<-c.ended
		return found, failed
	case <-ctx.Done():
		c.quit(&s.calls, true)
		if asker.Err() != nil {
			return Polling{}, asker.Err()
		}
		return Polling{}, s.silent()
	}
}

// silent is the error of a root that does not answer.
func (s *Scanner) silent() error {
	return &Error{Op: "stat", Path: s.cfg.Root, Err: noAnswer(s.cfg.CallTimeout)}
}

func (s *Scanner) polling(c *caller, stop <-chan struct{}) (Polling, error) {
	f, err := c.open(s.root, false)
	if err != nil {
		return Polling{}, &Error{Op: "list", Path: s.cfg.Root, Err: err}
	}
	defer c.close(f, s.root)
	c.enter("stat", s.root)
	info, err := f.Stat()
	c.leave()
	if err != nil {
		return Polling{}, &Error{Op: "stat", Path: s.cfg.Root, Err: err}
	}
	if !info.IsDir() {
		return Polling{}, &Error{Op: "list", Path: s.cfg.Root, Err: errNotDirectory}
	}
	t := traits{goos: s.goos, key: keyOf(info)}
	if fs, ok := s.cfg.FS.(interface{ Stable() bool }); ok {
		t.declares, t.stable = true, fs.Stable()
	}
	if file := osFile(f); file == nil {
		t.simulated = s.cfg.FS.Name()
	} else if v := s.askFilesystem(file, t.key.Device, s.root, patience(s.cfg.CallTimeout), stop); v != nil {
		select {
		case <-v.answered:
			t.magic, t.tells = v.magic, v.told
		default:
			t.silent = true
		}
	}
	p := t.polling()
	if s.cfg.Select.files {
		p.SkipsUnchanged, p.Why, p.Settle = false, "what is in a file does not move its directory's stamps", 0
	}
	p.Interval = s.cfg.Interval
	return p, nil
}

// patience is how much of the time for a call the question for the filesystem may take, so that what else is known can be said.
func patience(timeout time.Duration) time.Duration {
	if timeout < 0 {
		timeout = DefaultCallTimeout
	}
	return timeout / 2
}

// traits are what decides how a root is polled.
type traits struct {
	goos             string
	simulated        string // the name of a filesystem that is not the operating system's
	declares, stable bool   // whether the filesystem itself says if its keys can be trusted, and what
	magic            uint32
	tells            bool // whether the system has told the magic
	silent           bool // it has not answered yet
	key              key  // of the root
}

// polling tells in words what trusts and key.tells decide for each directory.
func (t traits) polling() Polling {
	p := Polling{Type: "unknown"}
	known := filesystemOf(t.magic)
	switch {
	case t.simulated != "":
		p.Type = t.simulated
	case t.tells:
		p.Type = known.name
	}
	switch {
	case t.declares && !t.stable:
		p.Why = "the filesystem declares that its directory stamps do not move with every change"
	case t.declares:
		p.SkipsUnchanged, p.Why = true, "the filesystem declares that "+stampsMove
	case t.simulated != "":
		p.Why = "it is not the operating system's and does not declare that " + stampsMove
	case t.goos != "linux":
		p.Why = "on " + systemName(t.goos) + " nobody has measured whether directory stamps move with every change"
	case t.silent:
		p.Why = "the question which filesystem it is has no answer yet"
	case !t.tells:
		p.Why = "the system does not tell which filesystem it is"
	default:
		p.SkipsUnchanged, p.Why = known.why == stampsMove, known.why
	}
	if p.SkipsUnchanged {
		switch {
		case t.key.Inode == 0:
			p.SkipsUnchanged, p.Why = false, "the filesystem gives no inode"
		case t.key.ChangeTime == 0:
			p.SkipsUnchanged, p.Why = false, "the filesystem gives no change time"
		default:
			p.Settle = t.key.settleTime()
		}
	}
	return p
}

func systemName(goos string) string {
	switch goos {
	case "windows":
		return "Windows"
	case "darwin":
		return "macOS"
	}
	return goos
}

// osFile returns the operating system's file that f is or wraps without hiding anything of it, or nil.
func osFile(f afero.File) *os.File {
	for {
		switch file := f.(type) {
		case *afero.BasePathFile:
			f = file.File
		case *os.File:
			return file
		default:
			return nil
		}
	}
}
