package simfs

import (
	"io/fs"
	"path"
	"time"
)

// info is a copy of what an inode was when it was looked at.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	sys   any
}

var _ fs.FileInfo = info{}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.mtime }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return i.sys }
func (i info) String() string     { return fs.FormatFileInfo(i) }

// identity is what info.Sys returns.
type identity struct {
	device, inode uint64
	ctime         time.Time
	uid, gid      int
}

// Identity tells what the filesystem knows of the file beside mode, size and modification time.
func (i identity) Identity() (device, inode uint64, changeTime time.Time) {
	return i.device, i.inode, i.ctime
}

// Owner tells who owns the file: root until Chown.
func (i identity) Owner() (uid, gid int) { return i.uid, i.gid }

func (f *FS) info(name string, n *node) info {
	i := info{name: path.Base(name), size: n.size(), mode: n.mode, mtime: n.mtime}
	sys := identity{device: n.device, inode: n.inode, ctime: n.ctime, uid: n.uid, gid: n.gid}
	switch f.cfg.Detail {
	case NoDetail:
		return i
	case NoChangeTime:
		sys.ctime = time.Time{}
	}
	i.sys = sys
	return i
}

// dirEntry is a name in a listing and the type it had then.
type dirEntry struct {
	fs   *FS
	dir  string
	name string
	typ  fs.FileMode
}

var _ fs.DirEntry = dirEntry{}

func (d dirEntry) Name() string      { return d.name }
func (d dirEntry) IsDir() bool       { return d.typ.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.typ }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

// Info looks at the path now, as os does on Unix: the entry may be gone or be something else.
func (d dirEntry) Info() (fs.FileInfo, error) { return d.fs.lstat(d.dir + "/" + d.name) }
