package state

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

func compare(a, b string) int { return strings.Compare(a, b) }

// root is what the scans of one directory have shown.
type root struct {
	Root
	last        *scanner.Snapshot
	scanned     bool
	behind      bool      // last is not what the core goes by: a look has shown something else
	started     time.Time // when the last scan did
	ended, good time.Time
	err         string
	lines       Lines
}

// scanned takes a snapshot over: what it does not hold is gone (U1–U5 are the scanner's work).
func (c *Core) scanned(in Scanned) {
	r := c.root(in.Root)
	if r == nil || c.stopping {
		return
	}
	first := !r.scanned
	if first {
		r.scanned = true
		c.unscanned--
	}
	r.ended = in.Ended
	if in.Filesystem != "" {
		r.Filesystem = in.Filesystem
	}
	c.rootHealth(r, in)
	if in.Snapshot != nil && (in.Snapshot != r.last || r.behind) {
		c.compare(r, in, first)
	}
	if in.Snapshot != nil {
		r.started = in.Started
	}
}

// compare takes over what a scan shows differently. What a look that started later has shown of a path stands.
func (c *Core) compare(r *root, in Scanned, first bool) {
	known := r.last
	if r.behind {
		known = c.asKnown(r)
	}
	r.behind = false
	c.seen++
	for _, change := range scanner.Diff(known, in.Snapshot) {
		s := c.sockets[change.Entry.Path]
		// A stale entry is what the scans knew before, not what is there.
		if s != nil && (in.Started.Before(s.looked) || change.Kind == scanner.Replaced && change.Entry.Stale != nil) {
			r.behind = true
			continue
		}
		switch change.Kind {
		case scanner.Added:
			c.added(r, change.Entry, first)
		case scanner.Replaced:
			c.changed(s, change.Entry)
		case scanner.Removed:
			if _, had := r.last.At(change.Entry.Path); !had && leavesOpen(in.Err, change.Entry.Path) {
				r.behind = true
				continue
			}
			c.gone(change.Entry.Path)
		}
	}
	for e := range in.Snapshot.All() {
		if s := c.sockets[e.Path]; s != nil {
			s.entry.Stale = e.Stale
		}
	}
	r.last = in.Snapshot
	c.version++
}

// leavesOpen reports whether a scan that ended with err cannot say that nothing is at path: something failed there or on the way to it. What scans have shown
// before is carried over then, but not what a look has shown since (U1).
func leavesOpen(err error, path string) bool {
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it is asked for its parts
		all = several.Unwrap()
	}
	return err != nil && slices.ContainsFunc(all, func(err error) bool {
		e, ok := errors.AsType[*scanner.Error](err)
		if !ok { // for one, that there were more
			return true
		}
		below, ok := strings.CutPrefix(path, strings.TrimRight(e.Path, `/\`))
		return ok && (below == "" || strings.ContainsRune(`/\`, rune(below[0])))
	})
}

// asKnown is the snapshot that would show what the core goes by.
func (c *Core) asKnown(r *root) *scanner.Snapshot {
	var entries []scanner.Entry
	for _, s := range c.sockets {
		if s.root == r && !s.gone {
			entries = append(entries, s.entry)
		}
	}
	return scanner.NewSnapshot(entries, nil)
}

func (c *Core) root(path string) *root {
	for _, r := range c.roots {
		if r.Path == path {
			return r
		}
	}
	return nil
}

// rootHealth notes whether the scan was good, and says so once when that changes (O1).
func (c *Core) rootHealth(r *root, in Scanned) {
	was := r.err
	if in.Err == nil {
		r.err, r.good = "", in.Ended
		level := r.lines.Recovered()
		if was != "" {
			c.emit(level, Event{Kind: EventRootRecovered, Root: r.Path})
		}
		return
	}
	r.err = scanner.Clean(in.Err.Error(), maxMessage)
	level := r.lines.Level(c.now, r.err)
	if level > Debug || was != r.err {
		c.emit(level, Event{Kind: EventRootFailing, Root: r.Path, Error: r.err})
	}
}

func (r *root) view(now time.Time) RootView {
	v := RootView{
		Path: r.Path, PathBase64: scanner.Base64(r.Path), Filesystem: r.Filesystem,
		LastScan: r.ended, LastGoodScan: r.good, Error: r.err, Entries: r.last.Len(),
	}
	if !r.good.IsZero() {
		v.GoodScanAge = now.Sub(r.good).Seconds()
	}
	for _, i := range r.last.Ignored() {
		v.Ignored = append(v.Ignored, NewIgnoredView(i))
	}
	return v
}
