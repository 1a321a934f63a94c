package scanner

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"sort"
	"time"
)

// maxLinks is how many links in a directory are looked at to skip it. They are remembered, and so must be few (S4); a directory with more is
// read at each poll.
const maxLinks = 64

// memory is what a Scanner remembers about the directories that the last Snapshot it returned came from. It belongs to that Snapshot: a scan
// that is given another one remembers nothing, so what different Scanners have seen never mixes. It changes during a scan, and a scan that
// does not end leaves none behind.
type memory struct {
	snapshot *Snapshot
	dirs     []remembered // each before those in it, those in one directory sorted by name
}

// remembered is one directory.
type remembered struct {
	path        string
	parent, end int // position of its parent; position behind the last directory below it
	settling    settling
	fullRead    time.Time // when it is read whatever its key says
	counted     int       // how many of its names count against MaxEntries
	links       []link    // without their errors
	found       check     // by the scan that runs
}

// link is a symbolic link and what was found there. Where it leads the directory's key does not tell.
type link struct {
	path    string
	finding finding
}

// check is what a look at a remembered directory came to.
type check int

const (
	toSkip check = iota + 1
	toRead
	// toRefresh is to be read only because that was long ago.
	toRefresh
	// toFind is no directory any more, or does not let itself be looked at: what it is now, its parent's listing says.
	toFind
)

// recall returns what s remembers about last, and takes it out: a scan that does not end must not leave half a memory.
// Where files are selected that is nothing: what is in them their directory's key does not tell (CN2).
func (s *Scanner) recall(last *Snapshot) []remembered {
	m := s.memory
	s.memory = memory{}
	if last == nil || m.snapshot != last || s.cfg.Select.files {
		return nil
	}
	return m.dirs
}

// check looks at the root and, if it is there, at every remembered directory, and reports whether all may be skipped or refreshed. rootErr is why the root
// cannot be read.
func (w *scan) check(ctx context.Context, root *directory) (unchanged bool, rootErr, ended error) {
	if rootErr = w.barred(w.root); rootErr != nil {
		return false, rootErr, nil
	}
	asked, next := false, 0
	for {
		stuck, ended := w.ask(ctx, func(c *caller) {
			if !asked {
				var info fs.FileInfo
				if info, rootErr = w.findRoot(c); rootErr != nil {
					return
				}
				root.settling.seen(keyOf(info), time.Now())
				w.heed(w.root, info.Mode())
				asked = true
			}
			for next < len(w.before) {
				next = w.checkOne(c, next, root)
			}
		})
		switch {
		case ended != nil:
			return false, nil, ended
		case stuck == nil && rootErr == nil:
			unchanged = len(w.before) > 0 && !slices.ContainsFunc(w.before, func(d remembered) bool { return d.found != toSkip && d.found != toRefresh })
			return unchanged, nil, nil
		case stuck == nil || !asked:
			return false, cmp.Or(rootErr, stuck), nil
		case w.barred(w.before[next].path) != nil:
			next = w.lose(next)
		default: // a link in it
			w.before[next].found = toRead
			next++
		}
	}
}

// checkOne looks at the remembered directory i, and returns the one that is next.
func (w *scan) checkOne(c *caller, i int, root *directory) int {
	d := &w.before[i]
	if i == 0 {
		k := root.settling.key
		if k != d.settling.key {
			d.settling = root.settling
		}
		d.found = w.judge(c, d, k)
		return i + 1
	}
	if w.barred(d.path) != nil {
		return w.lose(i)
	}
	k, mode, ok := c.key(d.path)
	if !ok {
		d.found = toFind
		w.doubtParent(d)
		return i + 1
	}
	if k != d.settling.key {
		d.settling.seen(k, time.Now())
		w.heed(d.path, mode)
	}
	d.found = w.judge(c, d, k)
	return i + 1
}

// lose leaves out a directory that nothing may be called on, and all below.
func (w *scan) lose(i int) (next int) {
	for next = i; next < w.before[i].end; next++ {
		w.before[next].found = toFind
	}
	w.doubtParent(&w.before[i])
	return next
}

// doubtParent has the parent read, to learn what has become of d.
func (w *scan) doubtParent(d *remembered) {
	if parent := &w.before[d.parent]; parent.found == toSkip {
		parent.found = toRead
	}
}

// judge says what to do with a directory whose key is k now.
func (w *scan) judge(c *caller, d *remembered, k key) check {
	if !d.settling.settled || d.settling.key != k {
		return toRead
	}
	for _, l := range d.links {
		if w.barred(l.path) != nil {
			return toRead
		}
		f := w.look(c, l.path, l.finding.typ)
		if f.err = nil; f != l.finding && (f.class != l.finding.class || !f.class.settled()) {
			return toRead
		}
	}
	if !w.start.Before(d.fullRead) {
		return toRefresh
	}
	return toSkip
}

// settled says of what a link leads to that only its kind matters, not which it is.
func (c class) settled() bool {
	return c == classNotSocket || c == classLinkToDirectory || c == classDangling
}

// skip takes over what the last scan found in a directory, and walks on to those below it.
func (w *scan) skip(ctx context.Context, d directory) error {
	old := &w.before[d.old]
	skip := len(join(d.path, ""))
	for i := d.lo; i < d.hi; i++ {
		if _, deeper := cutComponent(w.last.entries[i].Path[skip:]); !deeper {
			w.entries = append(w.entries, w.last.entries[i])
			w.done[i] = true
		}
	}
	w.ignored = append(w.ignored, w.last.ignoredIn(d.path)...)
	w.room -= old.counted
	mine := w.remember(&d, *old)
	for i := d.old + 1; i < old.end; i = w.before[i].end {
		sub := directory{path: w.before[i].path, depth: d.depth + 1, parent: mine, old: i}
		sub.lo, sub.hi = w.below(sub.path, d.lo, d.hi)
		if err := w.directory(ctx, sub); err != nil {
			return err
		}
	}
	w.after[mine].end = len(w.after)
	return nil
}

// maySkip reports whether the directory d was found unchanged, and there is room for what it holds.
func (w *scan) maySkip(d *directory) bool {
	return d.old >= 0 && d.trouble == nil && w.before[d.old].found == toSkip && (w.cfg.MaxEntries < 0 || w.before[d.old].counted <= w.room)
}

// remember appends a directory to what the next scan will know, and returns its position.
func (w *scan) remember(d *directory, r remembered) int {
	r.path, r.parent = d.path, d.parent
	w.after = append(w.after, r)
	return len(w.after) - 1
}

// children is a cursor over the remembered directories in one; they are sorted, and asked for in their order.
type children struct {
	dirs      []remembered
	next, end int
}

func (w *scan) children(parent int) children {
	if parent < 0 {
		return children{}
	}
	return children{w.before, parent + 1, w.before[parent].end}
}

// find returns the position of path, or -1.
func (c *children) find(path string) int {
	for c.next < c.end && c.dirs[c.next].path < path {
		c.next = c.dirs[c.next].end
	}
	if c.next < c.end && c.dirs[c.next].path == path {
		return c.next
	}
	return -1
}

// ignoredIn returns what is ignored in one directory.
func (s *Snapshot) ignoredIn(dir string) []Ignored {
	lo := sort.Search(len(s.ignored), func(i int) bool { return s.ignored[i].Dir >= dir })
	n := slices.IndexFunc(s.ignored[lo:], func(g Ignored) bool { return g.Dir != dir })
	if n < 0 {
		return s.ignored[lo:]
	}
	return s.ignored[lo : lo+n]
}
