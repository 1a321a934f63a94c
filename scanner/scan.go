package scanner

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"
)

// scan is one look at the tree.
type scan struct {
	*Scanner
	start time.Time
	last  *Snapshot
	// done tells which entries of last are decided: seen again, carried over, or gone.
	done    []bool
	entries []Entry
	ignored []Ignored
	faults  faults
	room    int // how many more names may be listed (D4)
	// names is the listing of one directory; there is never a second one, so that memory does not grow with the depth of the tree (S4).
	names []dirent
}

func newScan(s *Scanner, last *Snapshot) *scan {
	return &scan{
		Scanner: s, start: time.Now(), last: last, room: s.cfg.MaxEntries,
		done: make([]bool, last.Len()), entries: make([]Entry, 0, last.Len()),
	}
}

// directory is one that is being read.
type directory struct {
	path  string
	depth int
	// known entries of the last snapshot below path are last.entries[lo:hi].
	lo, hi int
	// trouble is why nothing may be concluded from absence here: a listing on the way, or the one of this directory, is not whole (U1).
	trouble error
}

// run reads the tree from the root. Its error is the context's.
func (w *scan) run(ctx context.Context) error {
	root := directory{path: w.root}
	root.lo, root.hi = w.below(w.root, 0, w.last.Len())
	if err := w.findRoot(); err != nil {
		w.faults.add(err)
		for i := root.lo; i < root.hi; i++ {
			w.carry(i, err)
		}
		return ctx.Err()
	}
	return w.directory(ctx, root)
}

func (w *scan) directory(ctx context.Context, d directory) error {
	names, err := w.list(ctx, d.path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if w.removedMeanwhile(d, err) {
			return nil
		}
		w.faults.add(err)
		d.trouble = err
	}
	t := tally{dir: d.path}
	var subs []string
	for i, n := range names {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		isDir, err := w.entry(ctx, &d, n, &t)
		if err != nil {
			return err
		}
		if isDir {
			subs = append(subs, n.name)
		}
	}
	w.ignored = t.appendTo(w.ignored)
	if err := w.settle(ctx, d, names, subs); err != nil {
		return err
	}
	for _, name := range subs {
		sub := directory{path: join(d.path, name), depth: d.depth + 1, trouble: d.trouble}
		sub.lo, sub.hi = w.below(sub.path, d.lo, d.hi)
		if err := w.directory(ctx, sub); err != nil {
			return err
		}
	}
	return nil
}

// removedMeanwhile tells the removal of a subdirectory between its parent's listing and its own, which is no error if nothing was known in
// it: only the net change counts (D6).
func (w *scan) removedMeanwhile(d directory, err error) bool {
	if d.depth == 0 || d.lo < d.hi || len(w.names) > 0 || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, _, err = w.lstat(d.path)
	return errors.Is(err, fs.ErrNotExist)
}

// entry deals with one listed name, and reports whether it is a directory to read.
func (w *scan) entry(ctx context.Context, d *directory, n dirent, t *tally) (isDir bool, err error) {
	if n.name[0] == '.' {
		w.ignore(d, n, t, DotName)
		return false, nil
	}
	switch classify(w.goos, n.typ, answer{}, answer{}) {
	case classDirectory:
		return w.subdirectory(d, n, t), nil
	case classNotSocket:
		w.ignore(d, n, t, NotSocket)
		return false, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return w.candidate(d, n, t), nil
}

func (w *scan) subdirectory(d *directory, n dirent, t *tally) bool {
	if d.depth >= w.cfg.MaxDepth {
		w.ignore(d, n, t, TooDeep)
		return false
	}
	if w.cfg.Each != nil {
		w.cfg.Each(join(d.path, n.name), Verdict{Outcome: IsDirectory, Type: typeWord(fs.ModeDir)})
	}
	return true
}

// candidate looks at a name that is, or may be, a socket or a link to one.
func (w *scan) candidate(d *directory, n dirent, t *tally) (isDir bool) {
	path := join(d.path, n.name)
	f := w.look(path, n.typ)
	i := w.index(path, d)
	n.typ = f.typ
	switch f.class {
	case classDirectory:
		w.gone(i, d)
		if w.cfg.MaxEntries >= 0 {
			w.room++ // its name was counted before anybody could know
		}
		return w.subdirectory(d, n, t)
	case classSocket:
		w.found(i, n, IsSocket, Entry{Path: path, ID: f.id}, nil)
	case classMaybe:
		if i >= 0 && w.outweighs(i, f) {
			if f.err != nil {
				w.faults.add(f.err)
			}
			w.unreadable(i, path, n, t, f.err)
			break
		}
		w.found(i, n, MaybeSocket, Entry{Path: path, ID: f.id, Maybe: true}, f.err)
	case classVanished:
		// Unknown before and gone again: no net change (D6). Known before: two witnesses disagree (U2).
		if i >= 0 {
			w.unreadable(i, path, n, t, &Error{Op: "lstat", Path: path, Err: errOnlyListing})
		}
	case classUnreadable:
		w.faults.add(f.err)
		w.unreadable(i, path, n, t, f.err)
	default:
		w.gone(i, d)
		w.ignore(d, n, t, f.class.reason())
	}
	return false
}

func (c class) reason() Reason {
	switch c {
	case classLinkToDirectory:
		return LinkToDirectory
	case classDangling:
		return DanglingLink
	}
	return NotSocket
}

// finding is what the filesystem tells about one candidate.
type finding struct {
	class class
	typ   fs.FileMode // of the entry itself
	id    Identity
	err   error
}

func (w *scan) look(path string, listed fs.FileMode) finding {
	f := finding{typ: listed, id: Identity{Stamp: Stamp{Type: listed}}}
	info, real, err := w.lstat(path)
	link, target := answer{asked: true, err: err}, answer{}
	op := "lstat"
	if err == nil {
		f.id.Stamp = stampOf(info)
		link.typ = f.id.Type
		f.typ = link.typ
	}
	if !real && listed&fs.ModeSymlink != 0 {
		// There is no Lstat: this was the target's Stat already, and the link keeps its type from the listing.
		link, target = answer{asked: true, typ: fs.ModeSymlink}, answer{asked: true, typ: f.id.Type, err: err}
		f.typ, op = fs.ModeSymlink, "stat"
	}
	f.class = classify(w.goos, listed, link, target)
	if f.class == askStat {
		f.id.Link, f.id.Stamp = f.id.Stamp, Stamp{}
		op = "stat"
		info, err = w.cfg.FS.Stat(path)
		target = answer{asked: true, err: err}
		if err == nil {
			f.id.Stamp = stampOf(info)
			target.typ = f.id.Type
		}
		f.class = classify(w.goos, listed, link, target)
	}
	if err != nil {
		f.err = &Error{Op: op, Path: path, Err: err}
	}
	return f
}

// snapshot is last itself if the scan found nothing else.
func (w *scan) snapshot() *Snapshot {
	slices.SortFunc(w.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.SortStableFunc(w.ignored, func(a, b Ignored) int { return strings.Compare(a.Dir, b.Dir) })
	if w.last != nil && slices.EqualFunc(w.last.entries, w.entries, Entry.equal) && slices.EqualFunc(w.last.ignored, w.ignored, Ignored.equal) {
		return w.last
	}
	return &Snapshot{entries: slices.Clip(w.entries), ignored: w.ignored}
}

// below narrows the range lo, hi of the last snapshot's entries to those below dir.
func (w *scan) below(dir string, lo, hi int) (int, int) {
	if lo == hi {
		return lo, lo
	}
	prefix := join(dir, "")
	known := w.last.entries[lo:hi]
	first := sort.Search(len(known), func(i int) bool { return known[i].Path >= prefix })
	n := sort.Search(len(known)-first, func(i int) bool { return !strings.HasPrefix(known[first+i].Path, prefix) })
	return lo + first, lo + first + n
}
