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
	watchdog
	start time.Time
	last  *Snapshot
	// done tells which entries of last are decided: seen again, carried over, or gone.
	done    []bool
	entries []Entry
	ignored []Ignored
	faults  faults
	rootNow rootState
	room    int // how many more names may be listed (D4)
	// before is what is known about the directories that last came from, after what is known now.
	before, after []remembered
	// unsure says that something in the directory that is being read is in doubt, so that it must be read again.
	unsure bool
	links  []link // those in that directory, at most one more than maxLinks
	// names is the listing of one directory; there is never a second one, so that memory does not grow with the depth of the tree (S4).
	names    []dirent
	findings []finding // of a block of them
	looked   int       // how many of those were looked at, or need not be
	// candidates is how many files were found that are selected (CN3).
	candidates int
}

func newScan(s *Scanner, last *Snapshot) *scan {
	return &scan{Scanner: s, start: time.Now(), last: last, room: s.cfg.MaxEntries, before: s.recall(last)}
}

// directory is one that is being read.
type directory struct {
	path  string
	depth int
	// known entries of the last snapshot below path are last.entries[lo:hi].
	lo, hi int
	// trouble is why nothing may be concluded from absence here: a listing on the way, or the one of this directory, is not whole (U1).
	trouble error
	// old is its position in what is known from the last scan, or -1; parent that of its parent in what is known now.
	old, parent int
	// settling has the key it had before it is read.
	settling settling
}

// run looks at the tree from the root, and reports whether all of it is as it was. Its error is the context's.
func (w *scan) run(ctx context.Context) (unchanged bool, err error) {
	root := directory{path: w.root, old: -1}
	unchanged, rootErr, err := w.check(ctx, &root)
	if err == nil {
		err = w.lookAbove(ctx)
	}
	if unchanged && err == nil {
		unchanged, err = w.refresh(ctx)
	}
	if unchanged || err != nil {
		return unchanged, err
	}
	if rootErr == nil && len(w.before) > 0 {
		root.old, root.settling = 0, w.before[0].settling
	}
	w.done, w.entries = make([]bool, w.last.Len()), make([]Entry, 0, w.last.Len())
	root.lo, root.hi = w.below(w.root, 0, w.last.Len())
	var last rootState
	if w.last != nil {
		last = w.last.root
	}
	// When it was looked at, not when the scan started: the grace is between two looks.
	var gone bool
	w.rootNow, root.trouble, gone = judgeRoot(last, root.settling.key.Device, rootErr, root.lo < root.hi, w.cfg.RootGrace, time.Now())
	if rootErr == nil {
		if root.trouble != nil {
			root.trouble = &Error{Op: "stat", Path: w.cfg.Root, Err: root.trouble}
		}
		err := w.directory(ctx, root)
		w.believe(root)
		return false, err
	}
	w.faults.add(rootErr)
	for i := root.lo; i < root.hi && !gone; i++ {
		w.carry(i, rootErr)
	}
	return false, ctx.Err()
}

// directory reads a directory, or skips it, and goes on to those below.
func (w *scan) directory(ctx context.Context, d directory) error {
	if w.maySkip(&d) {
		return w.skip(ctx, d)
	}
	found, subs, vanished, err := w.contents(ctx, &d)
	switch {
	case err != nil:
		return err
	case vanished:
		// Its parent's listing is out of date; the next one settles what becomes of the entries (U2).
		w.after[d.parent].settling.settled = false
		for i := d.lo; i < d.hi; i++ {
			w.carry(i, d.trouble)
		}
		return nil
	}
	mine := w.remember(&d, remembered{
		settling: found.settling, fullRead: fullReadAt(found.read, len(w.after)), counted: found.counted, links: found.links,
	})
	return w.inside(ctx, &d, subs, mine)
}

// contents reads a directory and deals with what is in it. subs are the directories in it that are to be read; vanished says that it was removed
// just now.
func (w *scan) contents(ctx context.Context, d *directory) (found contents, subs []string, vanished bool, ended error) {
	w.unsure, w.links = false, nil
	room := w.room
	began, names, trusted, err, ended := w.open(ctx, d)
	if ended != nil {
		return found, nil, false, ended
	}
	if err != nil {
		d.trouble = err
		if vanished, ended = w.removedMeanwhile(ctx, *d, err); vanished || ended != nil {
			return found, nil, vanished, ended
		}
		w.faults.add(err)
	}
	t := tally{dir: d.path}
	for i, n := range names {
		if i%block == 0 {
			if i > 0 {
				w.looked = 0
			}
			if err := w.lookAhead(ctx, d, names[i:min(i+block, len(names))]); err != nil {
				return found, nil, false, err
			}
		}
		isDir, err := w.entry(ctx, d, n, w.findings[i%block], &t)
		if err != nil {
			return found, nil, false, err
		}
		if isDir {
			subs = append(subs, n.name)
		}
	}
	w.ignored = t.appendTo(w.ignored)
	if err := w.absent(ctx, *d, names, subs); err != nil {
		return found, nil, false, err
	}
	d.settling.read(began, trusted && d.trouble == nil && !w.unsure && len(w.links) <= maxLinks, w.settleTime(d.settling.key))
	return contents{d.settling, began, room - w.room, w.links[:min(len(w.links), maxLinks)]}, subs, false, nil
}

// open looks at a directory and lists it, one after the other (see settling.read), unless the check has just looked at it. It looks at the first
// entries as well, because handing a job over costs as much as several calls.
func (w *scan) open(ctx context.Context, d *directory) (began time.Time, names []dirent, trusted bool, err, ended error) {
	w.looked = 0
	if err = w.barred(d.path); err != nil {
		return began, nil, false, err, nil
	}
	listed := false
	stuck, ended := w.ask(ctx, func(c *caller) {
		if d.depth > 0 {
			w.stat(c, d)
		}
		began = time.Now()
		names, trusted, err = w.list(c, d)
		listed = true
		if n := min(block, len(names)); len(w.findings) < n {
			w.findings = make([]finding, n)
		}
		w.lookAt(c, d, names[:min(block, len(names))])
	})
	switch {
	case stuck != nil && listed:
		w.noLook(names[w.looked], stuck)
	case stuck != nil:
		// Half a listing of a directory that hangs is not worth hanging on each entry.
		return began, nil, false, stuck, nil
	}
	return began, names, trusted, err, ended
}

func (w *scan) stat(c *caller, d *directory) {
	if d.old >= 0 {
		d.settling = w.before[d.old].settling
		if w.before[d.old].found != toFind {
			return
		}
	}
	// What fails here fails again when it is read; without a key it does not settle.
	d.settling = settling{}
	if w.cfg.Select.follows(d.depth) {
		if info, err := c.stat(d.path); err == nil {
			d.settling.seen(keyOf(info), time.Now())
			w.heed(d.path, info.Mode())
		}
		return
	}
	if k, mode, ok := c.key(d.path); ok {
		d.settling.seen(k, time.Now())
		w.heed(d.path, mode)
	}
}

// inside goes on to the directories in d, which is at position mine of what is known now.
func (w *scan) inside(ctx context.Context, d *directory, subs []string, mine int) error {
	known := w.children(d.old)
	for _, name := range subs {
		sub := directory{path: join(d.path, name), depth: d.depth + 1, trouble: d.trouble, parent: mine}
		sub.old = known.find(sub.path)
		sub.lo, sub.hi = w.below(sub.path, d.lo, d.hi)
		if err := w.directory(ctx, sub); err != nil {
			return err
		}
	}
	w.after[mine].end = len(w.after)
	return nil
}

// removedMeanwhile tells the removal of a subdirectory between its parent's listing and its own, which is no error: only the net change counts (D6).
func (w *scan) removedMeanwhile(ctx context.Context, d directory, err error) (vanished bool, ended error) {
	if d.depth == 0 || len(w.names) > 0 || !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	_, err, ended = w.lstat(ctx, d.path)
	return errors.Is(err, fs.ErrNotExist), ended
}

// entry deals with one listed name and what was found there, and reports whether it is a directory to read.
func (w *scan) entry(ctx context.Context, d *directory, n dirent, f finding, t *tally) (isDir bool, err error) {
	if n.name[0] == '.' {
		w.ignore(d, n, t, DotName)
		return false, nil
	}
	if w.cfg.Select.files {
		return w.file(d, n, f, t), ctx.Err()
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
	return w.candidate(d, n, f, t), nil
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

// candidate deals with a name that is, or may be, a socket or a link to one.
func (w *scan) candidate(d *directory, n dirent, f finding, t *tally) (isDir bool) {
	path := join(d.path, n.name)
	i := w.index(path, d)
	n.typ = f.typ
	if f.typ&fs.ModeSymlink != 0 && len(w.links) <= maxLinks {
		w.links = append(w.links, link{path, finding{class: f.class, typ: f.typ, id: f.id}})
	}
	switch f.class {
	case classDirectory:
		w.gone(i, d)
		return w.newDirectory(d, n, t)
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
		w.unsure = w.unsure || f.err != nil
		w.found(i, n, MaybeSocket, Entry{Path: path, ID: f.id, Maybe: true}, f.err)
	case classVanished:
		w.vanished(path, i, n, t)
	case classUnreadable:
		w.faults.add(f.err)
		w.unreadable(i, path, n, t, f.err)
	default:
		w.gone(i, d)
		w.ignore(d, n, t, f.class.reason())
	}
	return false
}

// newDirectory is subdirectory for a name that its listing did not say to be one.
func (w *scan) newDirectory(d *directory, n dirent, t *tally) bool {
	if w.cfg.MaxEntries >= 0 {
		w.room++ // its name was counted before anybody could know
	}
	return w.subdirectory(d, n, t)
}

// vanished deals with a name that is listed and was not there to be looked at.
func (w *scan) vanished(path string, i int, n dirent, t *tally) {
	w.unsure = true
	// Unknown before and gone again: no net change (D6). Known before: two witnesses disagree (U2).
	if i >= 0 {
		w.unreadable(i, path, n, t, &Error{Op: "lstat", Path: path, Err: errOnlyListing})
	}
}

func (c class) reason() Reason {
	switch c {
	case classOtherName:
		return OtherName
	case classLinkToDirectory:
		return LinkToDirectory
	case classDangling:
		return DanglingLink
	}
	return NotSocket
}

// snapshot is last itself if the scan found nothing else.
func (w *scan) snapshot() *Snapshot {
	slices.SortFunc(w.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.SortStableFunc(w.ignored, func(a, b Ignored) int { return strings.Compare(a.Dir, b.Dir) })
	if w.last != nil && w.last.root == w.rootNow && slices.EqualFunc(w.last.entries, w.entries, Entry.equal) && slices.EqualFunc(w.last.ignored, w.ignored, Ignored.equal) {
		return w.last
	}
	return &Snapshot{entries: slices.Clip(w.entries), ignored: w.ignored, root: w.rootNow}
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
