package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// FSSubject is a filesystem that may be polled.
type FSSubject struct {
	// FS is the filesystem. nil: the operating system's.
	FS afero.Fs
	// Dir is a directory that is there and may be written to. Each rule works in a directory of its own below it, which it removes at the end.
	Dir string
	// Socket makes a socket; nobody needs to listen there. nil: on the operating system's filesystem one is bound and left; on another one files stand in for
	// sockets, and FS7 is skipped.
	Socket func(path string) error
	// Break has listings of a directory fail from now on, after at least one of its three entries, until mend is called. nil: U3 is skipped.
	Break func(dir string) (mend func())
	// Lacks are the ids of rules that FS is known not to keep: they are skipped.
	Lacks []string
}

// FS returns the rules for a filesystem that is to be polled. Two runs in one Dir get in each other's way.
func FS(s FSSubject) []Rule {
	if s.FS == nil {
		s.FS = afero.NewOsFs()
	}
	b := bench{s}
	var rules []Rule
	for _, r := range slices.Concat(b.listings(), b.identities(), b.changes()) {
		r.check = func(ctx context.Context) error { return b.apart(ctx, r) }
		rules = append(rules, r.Rule)
	}
	return without(rules, s.Lacks)
}

// dirRule is a rule that works in a directory of its own.
type dirRule struct {
	Rule
	in func(ctx context.Context, dir string) error
}

// bench is where the rules work on a filesystem.
type bench struct{ FSSubject }

// apart gives a rule a directory of its own.
func (b bench) apart(ctx context.Context, r dirRule) (err error) {
	dir := b.join(b.Dir, "rule-"+r.ID)
	if err := b.FS.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("no directory could be made to work in: %w", err)
	}
	defer func() {
		if removed := b.FS.RemoveAll(dir); removed != nil {
			err = errors.Join(err, fmt.Errorf("the directory could not be removed: %w", removed))
		}
	}()
	return r.in(ctx, dir)
}

func (b bench) onOS() bool {
	_, ok := b.FS.(*afero.OsFs)
	return ok
}

// join puts a path together: filesystems that are not the operating system's have slashes everywhere.
func (b bench) join(dir, name string) string {
	if b.onOS() {
		return filepath.Join(dir, name)
	}
	return path.Join(dir, name)
}

// socket makes one, or what stands in for one, and returns the type it has. It is there then: where none can be made FS7 is broken, and what is not about sockets
// alone does without.
func (b bench) socket(name string) (typ fs.FileMode, err error) {
	switch {
	case b.Socket != nil:
		typ, err = fs.ModeSocket, b.Socket(name)
	case !b.onOS():
		err = b.file(name)
	default:
		typ, err = fs.ModeSocket, bindAndLeave(name)
	}
	if err == nil {
		_, err = b.lstat(name)
	}
	return typ, err
}

func bindAndLeave(name string) error {
	if _, err := register.SocketAddress(name, runtime.GOOS); err != nil && runtime.GOOS != "linux" {
		return fault{err}
	}
	l, err := listen(name)
	if err != nil {
		return err
	}
	return l.Close()
}

func (b bench) file(name string) error { return afero.WriteFile(b.FS, name, nil, 0o644) }

// fill makes files.
func (b bench) fill(dir string, names ...string) error {
	for _, name := range names {
		if err := b.file(b.join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// lstat looks at an entry itself, as a scan does.
func (b bench) lstat(name string) (fs.FileInfo, error) {
	if l, ok := b.FS.(afero.Lstater); ok {
		info, _, err := l.LstatIfPossible(name)
		return info, err
	}
	return b.FS.Stat(name)
}

func (b bench) stamp(name string) (scanner.Stamp, error) {
	info, err := b.lstat(name)
	if err != nil {
		return scanner.Stamp{}, err
	}
	return scanner.StampOf(info), nil
}

// named is one entry of a listing; typ is fs.ModeIrregular if the listing does not tell.
type named struct {
	name string
	typ  fs.FileMode
}

// list reads a directory n entries at a time, all at once if n is negative, and with types if it can and they are wanted. What came before an error comes with it.
func (b bench) list(dir string, n int, types bool) (all []named, err error) {
	f, err := b.FS.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	typed, ok := f.(fs.ReadDirFile)
	for {
		before := len(all)
		if ok && types {
			var entries []fs.DirEntry
			entries, err = typed.ReadDir(n)
			for _, e := range entries {
				all = append(all, named{e.Name(), e.Type()})
			}
		} else {
			var names []string
			names, err = f.Readdirnames(n)
			for _, name := range names {
				all = append(all, named{name, fs.ModeIrregular})
			}
		}
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return all, nil
		case err != nil || n <= 0 || len(all) == before:
			return all, err
		case len(all) > maxListed:
			return all, fmt.Errorf("a listing of %s has no end: %d entries so far", scanner.Quote(dir), len(all))
		}
	}
}

// maxListed is more entries than any rule makes.
const maxListed = 10_000

func namesOf(list []named) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.name
	}
	slices.Sort(names)
	return names
}
