package simfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// pass is one reading of a directory, from its first call after Open or Seek. What it shows is what was there then.
type pass struct {
	left []dirEntry
	err  error // comes after the last entry; nil: the listing is complete
}

// ReadDir lists with types and without looking at the entries. It keeps the contract of os.File.ReadDir: with n > 0 at
// most n entries, then io.EOF; with n <= 0 all that are left, and an error beside those that came before it.
func (f typedFile) ReadDir(n int) ([]fs.DirEntry, error) {
	some, err := f.next(n)
	list := make([]fs.DirEntry, len(some))
	for i, e := range some {
		list[i] = e
	}
	return list, err
}

// Readdirnames is ReadDir for names.
func (f *file) Readdirnames(n int) ([]string, error) {
	some, err := f.next(n)
	list := make([]string, len(some))
	for i, e := range some {
		list[i] = e.name
	}
	return list, err
}

// Readdir is ReadDir with an Lstat of each entry. As with os.File, an entry that is gone by then is left out, and any
// other error of an Lstat ends the list.
func (f *file) Readdir(n int) ([]fs.FileInfo, error) {
	list := []fs.FileInfo{}
	for {
		want := n
		if n > 0 {
			want = n - len(list)
		}
		some, err := f.next(want)
		for _, e := range some {
			i, infoErr := e.Info()
			if errors.Is(infoErr, fs.ErrNotExist) {
				continue
			}
			if infoErr != nil {
				return list, infoErr
			}
			list = append(list, i)
		}
		if errors.Is(err, io.EOF) && len(list) > 0 {
			err = nil
		} else if n > 0 && err == nil && len(some) > 0 && len(list) < n {
			continue
		}
		return list, err
	}
}

// next takes n entries of the pass, all for n <= 0.
func (f *file) next(n int) ([]dirEntry, error) {
	if err := f.begin(); err != nil {
		return nil, pathError(OpList, f.name, err)
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	p := f.pass
	if p == nil {
		return nil, pathError(OpList, f.name, syscall.EINVAL) // Seek by another goroutine
	}
	if n > 0 && n <= len(p.left) {
		some := p.left[:n]
		p.left = p.left[n:]
		return some, nil
	}
	some := p.left
	p.left = nil
	switch {
	case p.err != nil:
		return some, pathError(OpList, f.name, p.err)
	case n > 0 && len(some) == 0:
		return nil, io.EOF
	}
	return some, nil
}

// begin starts a pass unless one is under way.
func (f *file) begin() error {
	var under bool
	err := f.locked(func() error {
		under = f.pass != nil
		if !under && !f.node.mode.IsDir() {
			return syscall.ENOTDIR
		}
		return nil
	})
	if err != nil || under {
		return err
	}
	fault := f.fs.enter(OpList, f.name)
	p := &pass{}
	if err := f.locked(func() error { return f.read(p, fault.was) }); err != nil {
		return err
	}
	shown := p.left[:0]
	for _, e := range p.left {
		if !f.fs.hidden(f.name + "/" + e.name) {
			shown = append(shown, e)
		}
	}
	p.left = shown
	if fault.Err != nil {
		p.left = p.left[:min(max(fault.After, 0), len(p.left))]
		if !errors.Is(fault.Err, io.EOF) {
			p.err = fault.Err
		}
	}
	return f.locked(func() error {
		f.pass = p
		return nil
	})
}

// hidden lets the OpEntry fault of a path happen and says whether there was one.
func (f *FS) hidden(name string) bool {
	have := f.claim(point{clean(name), OpEntry})
	if have == nil {
		return false
	}
	f.happen(context.Background(), have)
	return true
}

// read copies the directory, or what was in it. A removed one is ENOENT, as on Linux.
func (f *file) read(p *pass, was *past) error {
	list, stale := was.listOf(f.node, f.name)
	switch {
	case stale:
		p.left = list
	case !f.node.linked:
		return syscall.ENOENT
	default:
		p.left = f.fs.entries(f.name, f.node)
	}
	return nil
}

// entries lists a directory. The filesystem is locked.
func (f *FS) entries(name string, dir *node) (list []dirEntry) {
	for _, below := range f.sorted(dir) {
		typ := dir.kids[below].node.mode.Type()
		if f.cfg.Entries == UntypedEntries {
			typ = fs.ModeIrregular
		}
		list = append(list, dirEntry{fs: f, dir: name, name: below, typ: typ})
	}
	return list
}
