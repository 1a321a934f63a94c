package scanner

import (
	"context"
	"slices"
	"time"
)

// This file reads directories of an unchanged tree that were not read for FullEvery. In a large tree some are at nearly every poll, and what it takes
// to put a new Snapshot together for all of it is more than those few reads. So they are read for themselves, and if each is as it is known,
// nothing has changed.

// refresh reads those directories that are due, and reports whether everything in them is as it is known. It is for a tree whose other directories may all be
// skipped. If it is not as known, or not to be known for certain, nothing is lost but time: the whole tree is put together then.
func (w *scan) refresh(ctx context.Context) (unchanged bool, ended error) {
	var again *scan
	for i := range w.before {
		d := &w.before[i]
		if d.found != toRefresh {
			continue
		}
		if !w.nested {
			return false, nil // step by step it may be given up at any call: not worth it
		}
		if again == nil {
			again = &scan{Scanner: w.Scanner, watchdog: w.watchdog, start: w.start, last: w.last, before: w.before, done: make([]bool, w.last.Len())}
		}
		same, ended := again.sameAs(ctx, i)
		if !same || ended != nil {
			return false, ended
		}
		d.found = toSkip
	}
	return true, nil
}

// sameAs reads the remembered directory i, compares it with what is known of it, and remembers when that was.
func (w *scan) sameAs(ctx context.Context, i int) (same bool, ended error) {
	w.entries, w.ignored, w.room = w.entries[:0], w.ignored[:0], w.cfg.MaxEntries
	known := &w.before[i]
	w.names = slices.Grow(w.names[:0], known.counted)
	d := directory{path: known.path, old: i, settling: known.settling}
	for up := i; up > 0; up = w.before[up].parent {
		d.depth++
	}
	d.lo, d.hi = w.below(d.path, 0, w.last.Len())
	found, subs, vanished, ended := w.contents(ctx, &d)
	if ended != nil || vanished || d.trouble != nil || w.unsure || w.faults.count() > 0 || found.counted != known.counted {
		return false, ended
	}
	if !w.sameEntries(&d) || !slices.EqualFunc(w.last.ignoredIn(d.path), w.ignored, Ignored.equal) {
		return false, nil
	}
	children := w.children(i)
	for _, name := range subs {
		if children.next == children.end || w.before[children.next].path != join(d.path, name) {
			return false, nil
		}
		children.next = w.before[children.next].end
	}
	if children.next != children.end {
		return false, nil
	}
	known.settling, known.links, known.fullRead = found.settling, found.links, found.read.Add(FullEvery)
	return true, nil
}

// sameEntries compares the entries found in d with those known in it.
func (w *scan) sameEntries(d *directory) bool {
	skip := len(join(d.path, ""))
	n := 0
	for i := d.lo; i < d.hi; i++ {
		if _, deeper := cutComponent(w.last.entries[i].Path[skip:]); deeper {
			continue
		}
		if n == len(w.entries) || !w.entries[n].equal(w.last.entries[i]) {
			return false
		}
		n++
	}
	return n == len(w.entries)
}

// contents is what one read of a directory has shown, beside entries and what is ignored.
type contents struct {
	settling settling
	read     time.Time
	counted  int
	links    []link
}
