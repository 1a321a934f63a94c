package simfs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// Remove removes a name; a directory must be empty. Open files, and the plugin behind a socket, live on. A mount point
// is EBUSY.
func (f *FS) Remove(name string) error {
	return f.do(OpRemove, name, func() error {
		at, err := f.walk(name, false)
		if err == nil {
			err = f.removable(at)
		}
		if err == nil && len(at.node.kids) > 0 {
			err = syscall.ENOTEMPTY
		}
		if err == nil {
			f.detach(at.dir, at.name)
		}
		return err
	})
}

// RemoveAll removes a name and all below it, as much as it can. It returns the first error, and nil when there is
// nothing to remove.
func (f *FS) RemoveAll(name string) error {
	var first error
	for _, below := range f.names(name) {
		if err := f.RemoveAll(path.Join(name, below)); first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// names lists a directory in listing order, without faults. Anything else has none, a link too.
func (f *FS) names(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name, false)
	if err != nil {
		return nil
	}
	return f.sorted(n)
}

func (f *FS) sorted(dir *node) []string {
	names := make([]string, 0, len(dir.kids))
	rank := make(map[string]uint64, len(dir.kids))
	for name, e := range dir.kids {
		names = append(names, name)
		rank[name] = f.cfg.rank(e, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := cmp.Compare(rank[a], rank[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return names
}

// Rename moves an entry, and replaces a file that is in its way. A directory in its way is EEXIST even when empty, as
// with os.Rename; another device is EXDEV; a directory into itself is EINVAL; a mount point is EBUSY. The inode stays,
// and with it open files and the plugin behind a socket; its change time moves, and both stamps of both directories.
func (f *FS) Rename(oldname, newname string) error {
	err := f.enter(OpRename, oldname).Err
	if err == nil {
		err = f.rename(oldname, newname)
	}
	if err != nil {
		return &os.LinkError{Op: string(OpRename), Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (f *FS) rename(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := f.walk(oldname, false)
	if err != nil {
		return err
	}
	to, err := f.walk(newname, false)
	if err == nil {
		err = f.removable(from)
	}
	switch {
	case err != nil:
		return err
	case to.node != nil && to.node.mode.IsDir() && (to.node != from.node || oldname == newname):
		return syscall.EEXIST
	case to.node == from.node:
		return nil
	case to.dir.device != from.dir.device:
		return syscall.EXDEV
	case from.node.mode.IsDir() && within(to.dir, from.node):
		return syscall.EINVAL
	case to.node != nil && from.node.mode.IsDir():
		return syscall.ENOTDIR
	}
	if to.node != nil {
		f.detach(to.dir, to.name)
	}
	delete(from.dir.kids, from.name)
	f.touch(from.dir)
	f.attach(to.dir, to.name, from.node)
	from.node.ctime = f.cfg.now()
	return nil
}

// within says whether dir is below ancestor or is it.
func within(dir, ancestor *node) bool {
	for dir != ancestor {
		if dir == dir.parent {
			return false
		}
		dir = dir.parent
	}
	return true
}
