package simfs

import (
	"io/fs"
	"time"
)

// node is an inode. All its fields are guarded by FS.mu.
type node struct {
	mode         fs.FileMode // type and permissions
	device       uint64
	inode        uint64
	uid, gid     int
	mtime, ctime time.Time

	data   []byte           // of a regular file
	target string           // of a link
	server *Server          // behind a socket; nil when nobody ever listened
	kids   map[string]entry // of a directory
	parent *node            // of a directory; the root's is itself
	cover  *node            // root of the tree mounted over this directory

	linked bool // a directory names it
	pins   int  // open files, and a listener
}

// entry is a name in a directory.
type entry struct {
	node *node
	seq  uint64 // when the name was made
}

// inodes hands out the inode numbers of one device.
type inodes struct {
	last uint64
	free []uint64
}

const (
	rootInode = 2    // as on ext4
	dirSize   = 4096 // never changes, so that nobody leans on it
)

// top is what a path through n arrives at: the tree mounted over it, if any.
func (n *node) top() *node {
	for n.cover != nil {
		n = n.cover
	}
	return n
}

func (n *node) size() int64 {
	switch n.mode.Type() {
	case fs.ModeDir:
		return dirSize
	case fs.ModeSymlink:
		return int64(len(n.target))
	}
	return int64(len(n.data))
}

// newNode makes an inode that no directory names yet.
func (f *FS) newNode(device uint64, mode fs.FileMode) *node {
	now := f.cfg.now()
	n := &node{mode: mode, device: device, mtime: now, ctime: now}
	if mode.IsDir() {
		n.kids = map[string]entry{}
	}
	pool := f.pools[device]
	if pool == nil {
		pool = &inodes{last: rootInode - 1}
		f.pools[device] = pool
	}
	if last := len(pool.free) - 1; last >= 0 {
		n.inode, pool.free = pool.free[last], pool.free[:last]
		return n
	}
	pool.last++
	n.inode = pool.last
	return n
}

// attach names n in dir and stamps the directory.
func (f *FS) attach(dir *node, name string, n *node) {
	f.seq++
	dir.kids[name] = entry{node: n, seq: f.seq}
	n.linked = true
	if n.mode.IsDir() {
		n.parent = dir
	}
	f.touch(dir)
}

// detach removes a name from dir, stamps both sides and lets the inode go when nothing holds it.
func (f *FS) detach(dir *node, name string) {
	n := dir.kids[name].node
	delete(dir.kids, name)
	n.linked = false
	n.ctime = f.cfg.now()
	f.touch(dir)
	f.drop(n)
}

// touch stamps a change of content.
func (f *FS) touch(n *node) {
	n.mtime = f.cfg.now()
	n.ctime = n.mtime
}

func (f *FS) unpin(n *node) {
	n.pins--
	f.drop(n)
}

// drop frees the inode number once no name, no open file and no listener holds it.
func (f *FS) drop(n *node) {
	if !n.linked && n.pins == 0 && f.cfg.ReuseInodes {
		pool := f.pools[n.device]
		pool.free = append(pool.free, n.inode)
	}
}
