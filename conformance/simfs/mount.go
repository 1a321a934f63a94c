package simfs

import (
	"io/fs"
	"syscall"
)

// Mount puts an empty tree with a device number of its own over a directory and hides what is in it. Mounting over a
// mount stacks. The stamps of the hidden directory do not move.
func (f *FS) Mount(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(name, true)
	if err == nil && !n.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("mount", name, err)
	}
	f.devices++
	n.cover = f.newNode(f.devices, fs.ModeDir|0o755)
	n.cover.linked = true
	if n.cover.parent = n.parent; n == n.parent {
		n.cover.parent = n.cover
	}
	return nil
}

// Unmount takes the tree mounted last over a directory away, with all that is in it, and shows again what it hid. Open
// files and plugins of that tree live on, unreachable by any path. Nothing mounted there: EINVAL.
func (f *FS) Unmount(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.walk(name, true)
	if err == nil && at.node == nil {
		err = syscall.ENOENT
	}
	under := f.root
	if err == nil && at.dir != nil {
		under = at.dir.kids[at.name].node
	}
	if err == nil && (under.cover == nil || under.top() != at.node) {
		err = syscall.EINVAL
	}
	if err != nil {
		return pathError("unmount", name, err)
	}
	for under.cover.cover != nil {
		under = under.cover
	}
	under.cover = nil
	return nil
}
