package scanner

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
)

// This file decides what becomes of the entries of the last snapshot: not seen is not the same as gone.

// index returns the position of path among the entries known below d, or -1.
func (w *scan) index(path string, d *directory) int {
	if d.lo == d.hi {
		return -1
	}
	known := w.last.entries[d.lo:d.hi]
	i := sort.Search(len(known), func(i int) bool { return known[i].Path >= path })
	if i == len(known) || known[i].Path != path {
		return -1
	}
	return d.lo + i
}

// found takes an entry that this scan saw; i is its position in the last snapshot, or -1.
func (w *scan) found(i int, n dirent, o Outcome, e Entry, err error) {
	if i >= 0 {
		w.done[i] = true
	}
	w.entries = append(w.entries, e)
	if w.cfg.Each != nil {
		w.cfg.Each(e.Path, Verdict{Outcome: o, Err: err, Type: typeWord(n.typ), Entry: e})
	}
}

// unreadable takes an entry that is listed and could not be looked at; what was known about it stands (U1).
func (w *scan) unreadable(i int, path string, n dirent, t *tally, err error) {
	if i >= 0 {
		w.carry(i, err)
	}
	w.unsure = true
	t.unreadable(n.name, err)
	if w.cfg.Each != nil {
		w.cfg.Each(path, Verdict{Outcome: IsUnreadable, Err: err, Type: typeWord(n.typ)})
	}
}

// ignore counts an entry that is no candidate. It must not allocate: there may be very many.
func (w *scan) ignore(d *directory, n dirent, t *tally, r Reason) {
	t.add(r, n.name)
	if w.cfg.Each != nil {
		w.cfg.Each(join(d.path, n.name), Verdict{Outcome: IsIgnored, Reason: r, Type: typeWord(n.typ)})
	}
}

// outweighs reports whether what was known says more than a finding that cannot tell the type: a look that was refused, or one where nothing
// but the type went missing. Anything else that differs is another instance (I1), and dialling decides about it (D2).
func (w *scan) outweighs(i int, f finding) bool {
	prev := w.last.entries[i]
	if f.err != nil {
		return !prev.Maybe || prev.ID.known()
	}
	typeless := f.id
	typeless.Type = prev.ID.Type
	return !prev.Maybe && prev.ID == typeless
}

// carry keeps an entry that could be neither seen nor ruled out.
func (w *scan) carry(i int, err error) {
	e := w.last.entries[i]
	switch {
	case e.Stale == nil:
		e.Stale = &Stale{Since: w.start, Err: err}
	case !sameText(e.Stale.Err, err):
		e.Stale = &Stale{Since: e.Stale.Since, Err: err}
	}
	w.entries = append(w.entries, e)
	w.done[i] = true
	w.unsure = true
}

// gone lets go of an entry that was confirmed to be absent or something else, unless a listing on the way to it is not whole (U1).
func (w *scan) gone(i int, d *directory) {
	switch {
	case i < 0:
	case d.trouble != nil:
		w.carry(i, d.trouble)
	default:
		w.done[i] = true
	}
}

// absent decides about the known entries below d that its listing did not show, except those in subs, which are read next.
func (w *scan) absent(ctx context.Context, d directory, names []dirent, subs []string) error {
	var reason error
	asked := "" // the component that reason is about
	direct := false
	skip := len(join(d.path, ""))
	for i := d.lo; i < d.hi; i++ {
		if w.done[i] {
			continue
		}
		name, deeper := cutComponent(w.last.entries[i].Path[skip:])
		if _, read := slices.BinarySearch(subs, name); deeper && read {
			continue
		}
		if name != asked || direct == deeper {
			var ended error
			if reason, ended = w.doubt(ctx, &d, names, name, deeper); ended != nil {
				return ended
			}
			asked, direct = name, !deeper
		}
		if reason != nil {
			w.carry(i, reason)
		} else {
			w.gone(i, &d)
		}
	}
	return nil
}

// doubt says why a known entry may still be there, nil if it is gone. name is the first component below d on the way to it that is not read as
// a directory: the entry itself, or a directory that it was in (deeper).
func (w *scan) doubt(ctx context.Context, d *directory, names []dirent, name string, deeper bool) (reason, ended error) {
	at, listed := slices.BinarySearchFunc(names, name, func(n dirent, name string) int { return strings.Compare(n.name, name) })
	if !listed && d.trouble != nil {
		return d.trouble, nil
	}
	path := join(d.path, name)
	info, err, ended := w.lstat(ctx, path)
	switch {
	case ended != nil:
		return nil, ended
	case errors.Is(err, fs.ErrNotExist) && !listed:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Op: "lstat", Path: path, Err: errOnlyListing}, nil
	case err != nil:
		w.faults.add(err)
		return err, nil
	case !listed:
		return &Error{Op: "lstat", Path: path, Err: errOnlyLstat}, nil
	case deeper && (!info.IsDir() || d.depth >= w.cfg.MaxDepth):
		return nil, nil
	case !deeper && info.Mode().Type() == names[at].typ:
		// Both say that it is of a type that is no candidate.
		return nil, nil
	}
	return &Error{Op: "lstat", Path: path, Err: errOtherType}, nil
}

// lstat looks at one path. err is an *Error, also if nothing may be called on the path; ended is the context's.
func (w *scan) lstat(ctx context.Context, path string) (info fs.FileInfo, err, ended error) {
	if err = w.barred(path); err != nil {
		return nil, err, nil
	}
	stuck, ended := w.ask(ctx, func(c *caller) {
		if info, _, err = c.lstat(path); err != nil {
			err = &Error{Op: "lstat", Path: path, Err: err}
		}
	})
	return info, cmp.Or(stuck, err), ended
}

// cutComponent returns the first component of a relative path, and whether there are more.
func cutComponent(path string) (name string, deeper bool) {
	for i := range len(path) {
		if os.IsPathSeparator(path[i]) {
			return path[:i], true
		}
	}
	return path, false
}

func sameText(a, b error) bool {
	return a == b || a.Error() == b.Error() //nolint:errorlint // one text for one cause is what people see
}

// equal reports whether two entries mean the same to those who keep them.
func (e Entry) equal(o Entry) bool {
	if e.Path != o.Path || e.ID != o.ID || e.Maybe != o.Maybe || !sameFile(e.File, o.File) || (e.Stale == nil) != (o.Stale == nil) {
		return false
	}
	return e.Stale == nil || e.Stale.Since.Equal(o.Stale.Since) && sameText(e.Stale.Err, o.Stale.Err)
}
