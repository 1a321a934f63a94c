package scanner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

const (
	// One chunk is one call, which must come to an end within CallTimeout though each entry be asked for over a network.
	chunk = 128
	// typeUnknown is the type of a name that came without one.
	typeUnknown = fs.ModeIrregular
)

type dirent struct {
	name string
	typ  fs.FileMode
}

// list reads the names in d, sorted bytewise, each once, and says whether the directory's key can be trusted. With an error the names are
// those that could be read, and nothing follows from one that is not among them (U1). The slice is the scan's buffer, good until the next call.
func (w *scan) list(c *caller, d *directory) (names []dirent, trusted bool, err error) {
	w.names = w.names[:0]
	typed, trusted, err := w.read(c, d, true)
	if err != nil && typed && !errors.As(err, new(limitError)) {
		// os.File.ReadDir ends at the first entry whose type it cannot find out; names alone need no type (U3, golang/go#27416).
		_, trusted, err = w.read(c, d, false)
	}
	slices.SortFunc(w.names, func(a, b dirent) int {
		// Of two with one name, the one with a type comes first and stays.
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return cmp.Compare(a.typ&typeUnknown, b.typ&typeUnknown)
	})
	w.names = slices.CompactFunc(w.names, func(a, b dirent) bool { return a.name == b.name })
	if w.cfg.MaxEntries >= 0 {
		for _, n := range w.names {
			if !n.typ.IsDir() {
				w.room--
			}
		}
		w.room = max(w.room, 0)
	}
	if err != nil {
		return w.names, false, &Error{Op: "list", Path: d.path, Err: err}
	}
	return w.names, trusted, nil
}

// read appends to w.names what one opened directory lists, and says whether it tried to get types with it.
func (w *scan) read(c *caller, d *directory, types bool) (typed, trusted bool, err error) {
	f, err := c.open(d.path, d.depth > 0)
	if err != nil {
		return false, false, err
	}
	defer c.close(f, d.path)
	// Directories are not counted against the limit, but a listing that never ends must end.
	room, dirs := w.room, w.cfg.MaxEntries
	add := func(name string, typ fs.FileMode) bool {
		if name == "" {
			return true
		}
		left := &room
		if typ.IsDir() {
			left = &dirs
		}
		if w.cfg.MaxEntries >= 0 {
			if *left == 0 {
				return false
			}
			*left--
		}
		w.names = append(w.names, dirent{name, typ})
		return true
	}
	lister, typed := f.(fs.ReadDirFile)
	c.enter("list", d.path)
	trusted = w.trusts(f, d.settling.key)
	c.leave()
	typed = typed && types
	for {
		n, full := 0, false
		c.enter("list", d.path)
		if typed {
			var entries []fs.DirEntry
			entries, err = lister.ReadDir(chunk)
			c.leave()
			for n < len(entries) && !full {
				full = !add(entries[n].Name(), entries[n].Type())
				n++
			}
		} else {
			var names []string
			names, err = f.Readdirnames(chunk)
			c.leave()
			for n < len(names) && !full {
				full = !add(names[n], typeUnknown)
				n++
			}
		}
		switch {
		case full:
			return typed, trusted, limitError(w.cfg.MaxEntries)
		case err == io.EOF, err == nil && n == 0: //nolint:errorlint // fs.ReadDirFile promises io.EOF itself
			return typed, trusted, nil
		case err != nil:
			return typed, trusted, err
		}
	}
}

// limitError says that a scan took all the names it may (D4).
type limitError int

func (e limitError) Error() string {
	return fmt.Sprintf("the scan's limit of %d entries is reached: raise MaxEntries", int(e))
}
