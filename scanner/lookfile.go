package scanner

import (
	"errors"
	"io/fs"
	"os"
	"sort"
)

// This file looks at the names in a directory for a Scanner that selects files, and reads those that match.

// known returns the path of a name in d, and its position in the last snapshot or -1. The path of one that was there is not made anew.
func (w *scan) known(d *directory, name string) (path string, i int) {
	if d.lo < d.hi {
		skip := len(d.path)
		if !os.IsPathSeparator(d.path[skip-1]) {
			skip++
		}
		entries := w.last.entries[d.lo:d.hi]
		i = sort.Search(len(entries), func(i int) bool { return entries[i].Path[skip:] >= name })
		if i < len(entries) && entries[i].Path[skip:] == name {
			return entries[i].Path, d.lo + i
		}
	}
	return join(d.path, name), -1
}

// lookName looks at a name in d that may be a candidate, or a link to a directory, unless nothing may be called on it.
func (w *scan) lookName(c *caller, d *directory, n dirent) finding {
	path, i := w.known(d, n.name)
	if err := w.barred(path); err != nil {
		if w.cfg.Select.matches(n.name) {
			w.candidates++ // that it hangs makes no room for another
		}
		return finding{class: classUnreadable, typ: n.typ, err: err}
	}
	return w.lookFile(c, path, i, n)
}

// lookFile looks at a name and, if it is a candidate, reads it. i is its position in the last snapshot, or -1.
func (w *scan) lookFile(c *caller, path string, i int, n dirent) finding {
	matches := w.cfg.Select.matches(n.name)
	if n.typ&fs.ModeIrregular != 0 {
		info, _, err := c.lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return finding{class: classVanished, typ: n.typ, err: &Error{Op: "lstat", Path: path, Err: err}}
		case err != nil && matches && w.counts():
			return w.problem(i, n.typ, ProblemUnreadable, errorText(err))
		case err != nil && matches:
			return w.problem(i, n.typ, ProblemTooMany, tooManyText())
		case err != nil:
			return finding{class: classUnreadable, typ: n.typ, err: &Error{Op: "lstat", Path: path, Err: err}}
		}
		n.typ = info.Mode().Type()
	}
	link := n.typ&fs.ModeSymlink != 0 || reparsePoint(w.goos, n.typ)
	switch {
	case n.typ.IsDir():
		return finding{class: classDirectory, typ: n.typ}
	case !matches && !link:
		return finding{class: classOtherName, typ: n.typ}
	case matches && !w.counts():
		return w.problem(i, n.typ, ProblemTooMany, tooManyText())
	case link:
		f := w.lookLink(c, path, i, n.typ, matches)
		if f.class == classVanished || f.class == classDangling || f.class == classFile && f.file.Problem == ProblemDangling {
			// Something on its way may just have been put in the place of what was there, as with the links of a ConfigMap.
			f = w.lookLink(c, path, i, n.typ, matches)
		}
		return f
	case !n.typ.IsRegular():
		return w.problem(i, n.typ, ProblemNotRegular, typeText(n.typ, false))
	}
	r := c.read(path)
	if errors.Is(r.err, fs.ErrNotExist) {
		return finding{class: classVanished, typ: n.typ, err: &Error{Op: "open", Path: path, Err: r.err}}
	}
	return w.fileFinding(i, n.typ, r)
}

// lookLink looks at what a link leads to, and reads it if the link's name matches.
func (w *scan) lookLink(c *caller, path string, i int, typ fs.FileMode, matches bool) finding {
	info, err := c.stat(path)
	if err == nil && matches && info.Mode().IsRegular() {
		r := c.read(path)
		if err = r.err; err == nil || !leadsNowhere(err) {
			return w.fileFinding(i, typ, r)
		}
	}
	if err != nil && leadsNowhere(err) {
		return w.leadsNowhere(c, path, i, typ, matches, err)
	}
	switch {
	case err != nil && matches:
		return w.problem(i, typ, ProblemUnreadable, errorText(err))
	case err != nil:
		return finding{class: classUnreadable, typ: typ, err: &Error{Op: "stat", Path: path, Err: err}}
	case matches:
		return w.problem(i, typ, ProblemNotRegular, typeText(info.Mode().Type(), true))
	case info.IsDir():
		return finding{class: classLinkToDirectory, typ: typ}
	}
	return finding{class: classOtherName, typ: typ}
}

// leadsNowhere tells a dangling link from one that is gone itself.
func (w *scan) leadsNowhere(c *caller, path string, i int, typ fs.FileMode, matches bool, err error) finding {
	_, real, gone := c.lstat(path)
	switch {
	case real && errors.Is(gone, fs.ErrNotExist):
		return finding{class: classVanished, typ: typ, err: &Error{Op: "lstat", Path: path, Err: gone}}
	case matches:
		return w.problem(i, typ, ProblemDangling, danglingText(err))
	}
	return finding{class: classDangling, typ: typ}
}

// counts counts a candidate, and reports whether it is among those that are read.
func (w *scan) counts() bool {
	w.candidates++
	return w.candidates <= MaxFiles
}

func (w *scan) fileFinding(i int, typ fs.FileMode, r reading) finding {
	switch {
	case r.err != nil:
		return w.problem(i, typ, ProblemUnreadable, errorText(r.err))
	case !r.typ.IsRegular():
		return w.problem(i, typ, ProblemNotRegular, typeText(r.typ, typ&fs.ModeSymlink != 0))
	case r.tooLarge():
		return w.problem(i, typ, ProblemTooLarge, tooLargeText(r.size))
	}
	f := finding{class: classFile, typ: typ}
	if i >= 0 {
		f.file = w.last.entries[i].File
	}
	if f.file == nil || f.file.Problem != "" || f.file.Content != string(r.content) {
		f.file = &File{Content: string(r.content)}
	}
	return f
}

func (w *scan) problem(i int, typ fs.FileMode, p Problem, detail string) finding {
	now := File{Problem: p, Detail: detail}
	f := finding{class: classFile, typ: typ}
	if i >= 0 {
		f.file = w.last.entries[i].File
	}
	if f.file == nil || *f.file != now {
		f.file = &now
	}
	return f
}

// file deals with one listed name and what was found there, and reports whether it is a directory to read.
func (w *scan) file(d *directory, n dirent, f finding, t *tally) (isDir bool) {
	switch {
	case n.typ.IsDir():
		return w.subdirectory(d, n, t)
	case !w.needsLook(n):
		w.ignore(d, n, t, OtherName)
		return false
	}
	path, i := w.known(d, n.name)
	n.typ = f.typ
	switch f.class {
	case classFile:
		w.found(i, n, IsFile, Entry{Path: path, File: f.file}, nil)
	case classDirectory:
		w.gone(i, d)
		return w.newDirectory(d, n, t)
	case classLinkToDirectory:
		w.gone(i, d)
		if w.cfg.Select.follows(d.depth + 1) {
			return w.subdirectory(d, n, t)
		}
		w.ignore(d, n, t, LinkToDirectory)
	case classVanished, classUnreadable:
		w.unseen(d, path, i, n, f, t)
	default:
		w.gone(i, d)
		w.ignore(d, n, t, f.class.reason())
	}
	return false
}

// unseen deals with a name that could not be looked at. It may have been that of a directory.
func (w *scan) unseen(d *directory, path string, i int, n dirent, f finding, t *tally) {
	if f.class == classVanished {
		w.vanished(path, i, n, t)
		return
	}
	w.faults.add(f.err)
	w.unreadable(i, path, n, t, f.err)
	lo, hi := w.below(path, d.lo, d.hi)
	for ; lo < hi; lo++ {
		w.carry(lo, f.err)
	}
}
