package scanner

import (
	"context"
	"io/fs"
)

// finding is what the filesystem tells about one candidate.
type finding struct {
	class class
	typ   fs.FileMode // of the entry itself
	id    Identity
	err   error
	file  *File // of classFile
}

// look looks at a path that is listed with this type.
func (s *Scanner) look(c *caller, path string, listed fs.FileMode) finding {
	f := finding{typ: listed, id: Identity{Stamp: Stamp{Type: listed}}}
	info, real, err := c.lstat(path)
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
	f.class = classify(s.goos, listed, link, target)
	if f.class == askStat {
		f.id.Link, f.id.Stamp = f.id.Stamp, Stamp{}
		op = "stat"
		info, err = c.stat(path)
		target = answer{asked: true, err: err}
		if err == nil {
			f.id.Stamp = stampOf(info)
			target.typ = f.id.Type
		}
		f.class = classify(s.goos, listed, link, target)
	}
	if err != nil {
		f.err = &Error{Op: op, Path: path, Err: err}
	}
	return f
}

// block is how many names are looked at before the first of them is dealt with: it bounds what that takes of memory (S4).
const block = 256

// lookAhead looks at those candidates among some names that were not looked at yet.
func (w *scan) lookAhead(ctx context.Context, d *directory, names []dirent) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for {
		for w.looked < len(names) && !w.needsLook(names[w.looked]) {
			w.looked++
		}
		if w.looked >= len(names) {
			return nil
		}
		stuck, ended := w.ask(ctx, func(c *caller) { w.lookAt(c, d, names) })
		if ended != nil {
			return ended
		}
		if stuck != nil {
			w.noLook(names[w.looked], stuck)
		}
	}
}

// lookAt looks at names from w.looked on.
func (w *scan) lookAt(c *caller, d *directory, names []dirent) {
	for ; w.looked < len(names); w.looked++ {
		n := names[w.looked]
		if !w.needsLook(n) {
			continue
		}
		w.findings[w.looked] = w.lookOne(c, d, n)
	}
}

func (w *scan) lookOne(c *caller, d *directory, n dirent) finding {
	if w.cfg.Select.files {
		return w.lookName(c, d, n)
	}
	path := join(d.path, n.name)
	if err := w.barred(path); err != nil {
		return finding{class: classUnreadable, typ: n.typ, err: err}
	}
	return w.look(c, path, n.typ)
}

// noLook takes note of a name at which a look did not come to an end.
func (w *scan) noLook(n dirent, err error) {
	w.findings[w.looked] = finding{class: classUnreadable, typ: n.typ, err: err}
	w.looked++
}

func (w *scan) needsLook(n dirent) bool {
	if w.cfg.Select.files {
		return n.name[0] != '.' && !n.typ.IsDir() && (w.cfg.Select.matches(n.name) || n.typ&(fs.ModeSymlink|fs.ModeIrregular) != 0)
	}
	return n.name[0] != '.' && classify(w.goos, n.typ, answer{}, answer{}) == askLstat
}
