package cni

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// polls is what the polls of a directory have shown.
type polls struct {
	// seen is what the newest snapshot comes to, ignored what else it has, doubtful whether an entry of it that matters is unconfirmed.
	seen     *set
	ignored  []scanner.Ignored
	doubtful error
	entries  int

	// last is what the last poll showed that showed anything, decided what was decided upon.
	last, decided picture
	// unsettled is since when no two polls in a row have shown the same. Zero: the last two did (CN5).
	unsettled time.Time
	// changed says that the next poll should come soon.
	changed bool

	ended, good time.Time
	failed      bool   // whether the last poll has failed
	err         string // why the last two have
	filesystem  string
}

// picture is what a poll shows. The zero value: nothing yet.
type picture struct {
	revision Revision
	absent   string // why there is no directory; empty: there is one
}

// errUnknown is what a poll says that shows nothing certain.
var errUnknown = errors.New("it is not known what is in it")

// scanned takes a poll over. One that could not list what matters changes nothing: not seen is not the same as gone.
func (c *core) scanned(in *scanned) {
	p := &c.polls
	p.ended = in.ended
	if in.filesystem != p.filesystem {
		p.filesystem = in.filesystem
		c.version++
	}
	if in.set != nil {
		p.seen, p.ignored, p.entries, p.doubtful = in.set, in.snapshot.Ignored(), in.snapshot.Len(), unconfirmed(c.cfg.ConfDir, in.snapshot, in.set)
		c.version++
	}
	absent, failed, doubt := c.judge(in.err)
	c.scanHealth(failed, doubt)
	if failed == nil && p.seen != nil {
		p.good = in.ended
	}
	if !doubt && p.seen != nil {
		c.observe(picture{p.seen.revision, absent})
	}
	if len(c.health.missing) > 0 && c.health.round == nil && !c.retired {
		c.check() // CN10: with each poll
	}
}

// observe compares a poll with the one before (CN5).
func (c *core) observe(seen picture) {
	p := &c.polls
	if seen == p.last {
		p.unsettled = time.Time{}
		if seen != p.decided {
			c.decide(seen)
		}
		return
	}
	p.last, p.changed = seen, true
	c.version++
	if p.unsettled.IsZero() {
		p.unsettled = c.now
	}
	if c.now.Sub(p.unsettled) >= settleLimit && seen != p.decided {
		p.unsettled = c.now
		c.decide(seen)
	}
}

// scanHealth notes whether a poll has failed, and says so once when that changes (O1). A single one that has is nothing to speak of: so does each
// begin that finds another directory in the place of the one before. doubt says that it may hide files that matter.
func (c *core) scanHealth(failed error, doubt bool) {
	p := &c.polls
	was := p.err
	p.changed = (failed != nil) != p.failed
	p.failed = failed != nil
	switch {
	case failed == nil && was == "", failed != nil && p.changed:
		return
	case failed == nil:
		p.err = ""
		c.emit(c.lines.scan.Recovered(), Event{Kind: EventScanRecovered})
		return
	}
	p.err = scanner.Clean(failed.Error(), maxLine)
	level := c.lines.scan.Level(c.now, p.err)
	if level > state.Debug || was != p.err {
		e := Event{Kind: EventScanFailing, Error: p.err}
		if doubt && !c.retired {
			e.Network = c.good.name() // it stays
		}
		c.emit(level, e)
	}
}

// judge says what a poll's error means. absent is why there is no directory, or nothing in it for certain. failed is what went wrong, if that is more than a
// directory that does not exist; doubt says that it may hide files that matter.
func (c *core) judge(err error) (absent string, failed error, doubt bool) {
	p := &c.polls
	if err == nil {
		return "", p.doubtful, p.doubtful != nil
	}
	for _, e := range parts(err) {
		part, ok := errors.AsType[*scanner.Error](e)
		switch {
		case ok && part.Path == c.cfg.ConfDir && p.entries == 0 && errors.Is(part, fs.ErrNotExist):
			return scanner.Quote(part.Path) + " does not exist: it is waited for, and never made", nil, false
		case ok && part.Path == c.cfg.ConfDir && p.entries == 0:
			// What was known is gone for certain, or it would have been carried over.
			return unreadable(part), e, false
		case matters(c.cfg.ConfDir, part, p.seen):
			return "", e, true
		}
	}
	return "", p.doubtful, p.doubtful != nil
}

func unreadable(e *scanner.Error) string {
	dir := scanner.Quote(e.Path)
	return dir + " cannot be read: " + scanner.Clean(strings.TrimPrefix(e.Error(), e.Op+" "+dir+": "), maxLine)
}

// matters reports whether what failed in a scan leaves open what the set is. nil: it is not known what failed.
func matters(dir string, failed *scanner.Error, seen *set) bool {
	if failed == nil {
		return seen == nil || len(seen.subdirs) > 0
	}
	sub, name := place(dir, failed.Path)
	switch {
	case failed.Path == dir, sub == "" && failed.Op != "list" && selected(name):
		return true
	case seen == nil:
		return false
	case sub == "":
		return slices.Contains(seen.subdirs, name)
	}
	return slices.Contains(seen.subdirs, sub) && selected(name)
}

// unconfirmed returns why an entry that counts for the set could not be seen again. nil: all were.
func unconfirmed(dir string, s *scanner.Snapshot, seen *set) error {
	for e := range s.All() {
		if e.Stale == nil {
			continue
		}
		if sub, _ := place(dir, e.Path); sub == "" || slices.Contains(seen.subdirs, sub) {
			if e.Stale.Err == nil {
				return errUnknown
			}
			return e.Stale.Err
		}
	}
	return nil
}

// parts are the errors that a scan has joined.
func parts(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the outermost is asked for
		return all.Unwrap()
	}
	return []error{err}
}

func selected(name string) bool { return slices.Contains(extensions, filepath.Ext(name)) }

// extensions are those of configuration files (CN1).
var extensions = []string{".conf", ".conflist", ".json"}
