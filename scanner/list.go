package scanner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/afero"
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
	if len(w.names) > 0 && w.names[0].name == "" {
		w.names = w.names[1:]
	}
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
	f, err := c.open(d.path, !w.cfg.Select.follows(d.depth))
	if err != nil {
		return false, false, err
	}
	defer c.close(f, d.path)
	_, typed = f.(fs.ReadDirFile)
	typed = typed && types
	trusted = w.trusts(c, f, d.path, d.settling.key)
	// Directories are not counted against the limit, but a listing that never ends must end.
	room, dirs := w.room, w.cfg.MaxEntries
	for {
		before := len(w.names)
		w.names, err = c.next(w.names, f, d.path, typed)
		switch {
		case !w.fits(before, &room, &dirs):
			return typed, trusted, limitError(w.cfg.MaxEntries)
		case err == io.EOF: //nolint:errorlint // fs.ReadDirFile promises io.EOF itself
			return typed, trusted, nil
		case err != nil:
			return typed, trusted, err
		}
	}
}

// next appends the names that one call lists, and at the end io.EOF.
func (c *caller) next(names []dirent, f afero.File, path string, typed bool) (_ []dirent, err error) {
	if file, ok := f.(*os.File); ok && typed {
		if names, ok, err := c.nextRaw(names, file, path); ok {
			return names, err
		}
	}
	before := len(names)
	if typed {
		var entries []fs.DirEntry
		c.enter("list", path)
		entries, err = f.(fs.ReadDirFile).ReadDir(chunk)
		c.leave()
		for _, e := range entries {
			names = append(names, dirent{e.Name(), e.Type()})
		}
	} else {
		var list []string
		c.enter("list", path)
		list, err = f.Readdirnames(chunk)
		c.leave()
		for _, name := range list {
			names = append(names, dirent{name, typeUnknown})
		}
	}
	if err == nil && len(names) == before {
		err = io.EOF
	}
	return names, err
}

// fits counts the names from the first on against what may still come, and cuts off those that may not.
func (w *scan) fits(first int, room, dirs *int) bool {
	if w.cfg.MaxEntries < 0 {
		return true
	}
	for i, n := range w.names[first:] {
		left := room
		if n.typ.IsDir() {
			left = dirs
		}
		if *left == 0 {
			w.names = w.names[:first+i]
			return false
		}
		*left--
	}
	return true
}

// limitError says that a scan took all the names it may (D4).
type limitError int

func (e limitError) Error() string {
	return fmt.Sprintf("the scan's limit of %d entries is reached: raise MaxEntries", int(e))
}
