package scanner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/afero"
)

// This file warns of directories in which anybody may put a socket, or which anybody may put in the root's place (X1).

// maxWarned is how many directories of a root are warned about; more say nothing new.
const maxWarned = 20

// The messages.
const (
	warnWritable = "anybody may write to this directory, and so have plugins registered"
	warnParent   = "anybody may write to this directory above the root, and so put another one in the root's place"
)

// exposed decides whether a directory is to be warned about. It is one that those may write to who are neither its owner nor in its group: a group was
// chosen by somebody, and a warning of what was meant is not read. On Windows a mode says nothing about who may write.
//
// Its sticky bit keeps others from removing and renaming, and not from adding. So it helps only a directory on the way to the root (above), and only
// if what is there by the next name on that way belongs to root or to us: while nothing is there, anybody may be the first, as in /tmp after a
// restart of the machine.
func exposed(goos string, mode fs.FileMode, above, ours bool) bool {
	if goos == "windows" || !mode.IsDir() || mode.Perm()&0o002 == 0 {
		return false
	}
	return !above || mode&fs.ModeSticky == 0 || !ours
}

// heed looks at the mode of the root or a directory in it.
func (s *Scanner) heed(path string, mode fs.FileMode) {
	if exposed(s.goos, mode, false, false) {
		s.warn(warnWritable, path, mode)
	}
}

func (s *Scanner) warn(message, path string, mode fs.FileMode) {
	if s.warned[path] || len(s.warned) >= maxWarned {
		return
	}
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	s.warned[path] = true
	s.cfg.Logger.Warn(message, "path", Quote(path), "mode", octal(mode))
}

// octal writes a mode as chmod(1) takes it.
func octal(mode fs.FileMode) string {
	bits := mode.Perm()
	for bit, special := range map[fs.FileMode]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&special != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}

// above is what is still to be looked at on the way from the root up.
type above struct {
	begun bool
	left  []string
	ours  bool // what was looked at last belongs to root or to us
}

// lookAbove looks at the directories on the way to the root, once in a Scanner's life. Their names are taken as Config.Root has them: where a link in it
// leads is not looked into.
func (w *scan) lookAbove(ctx context.Context) error {
	a := &w.above
	if !a.begun {
		a.begun = true
		if w.goos != "windows" && w.cfg.Logger.IsWarn() {
			a.left = wayUp(w.cfg.FS, w.root)
		}
	}
	for len(a.left) > 0 {
		if _, ended := w.ask(ctx, func(c *caller) {
			for len(a.left) > 0 {
				path := a.left[0]
				a.left = a.left[1:] // first: it is not tried again if it hangs
				w.lookUp(c, path)
			}
		}); ended != nil {
			return ended
		}
	}
	return nil
}

// lookUp looks at one directory on the way, or at the root, to know whose it is.
func (w *scan) lookUp(c *caller, path string) {
	ours := w.above.ours
	w.above.ours = false
	info, _, err := c.lstat(path)
	if err != nil {
		return
	}
	owner, known := osOwner(info.Sys())
	w.above.ours = known && (owner == 0 || int64(owner) == int64(os.Geteuid()))
	if path == w.root {
		return
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = c.stat(path); err != nil {
			return
		}
	}
	if exposed(w.goos, info.Mode(), true, ours) {
		w.warn(warnParent, path, info.Mode())
	}
}

// wayUp returns root and the directories that it is in.
func wayUp(fs afero.Fs, root string) []string {
	way := []string{root}
	switch fs.(type) {
	case *afero.OsFs, afero.OsFs:
		if absolute, err := filepath.Abs(root); err == nil {
			root = absolute
		}
	}
	for parent := filepath.Dir(root); parent != root; parent = filepath.Dir(root) {
		way = append(way, parent)
		root = parent
	}
	return way
}
