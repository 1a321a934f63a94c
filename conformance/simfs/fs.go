package simfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// FS is a simulated filesystem and the plugins behind its sockets. Make it with New and end it with Close. It may be
// used from several goroutines at once.
//
// Errors are those of package os: *os.LinkError from Rename and SymlinkIfPossible, *net.OpError from Bind and Dial,
// *fs.PathError from all else, around a syscall.Errno that works with errors.Is(err, fs.ErrNotExist) and the like.
type FS struct {
	cfg    Config
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex // never held while a fault happens
	root    *node
	seq     uint64
	devices uint64
	pools   map[uint64]*inodes
	servers map[*Server]struct{} // nil: closed

	faultMu sync.Mutex
	faults  map[point][]*fault
	calls   map[point]int
}

var (
	_ afero.Fs        = (*FS)(nil)
	_ afero.Symlinker = (*FS)(nil)
)

// New makes a filesystem with an empty root directory. In a testing/synctest bubble, call it inside the bubble.
func New(cfg Config) *FS {
	f := &FS{
		cfg:     cfg,
		closed:  make(chan struct{}),
		devices: 1,
		pools:   map[uint64]*inodes{},
		servers: map[*Server]struct{}{},
		faults:  map[point][]*fault{},
		calls:   map[point]int{},
	}
	f.root = f.newNode(f.devices, fs.ModeDir|0o755)
	f.root.parent = f.root
	f.root.linked = true
	return f
}

// Close crashes every plugin, ends the calls that hang in a fault, and returns when their goroutines are gone. Files
// can still be used; Bind and Dial no longer work. It may be called more than once.
func (f *FS) Close() {
	f.once.Do(func() { close(f.closed) })
	f.mu.Lock()
	servers := f.servers
	f.servers = nil
	f.mu.Unlock()
	for s := range servers {
		s.Crash()
	}
}

// Stable is Config.Stable: it declares that a directory whose stamps and identity are unchanged has an unchanged
// listing, once the stamps are older than the granularity.
func (f *FS) Stable() bool { return f.cfg.Stable }

// Name is "simfs".
func (f *FS) Name() string { return "simfs" }

func pathError(op Op, name string, err error) error {
	return &fs.PathError{Op: string(op), Path: name, Err: err}
}

// do runs one operation on a path under the lock, after its fault.
func (f *FS) do(op Op, name string, work func() error) error {
	err := f.enter(op, name).Err
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		err = work()
	}
	if err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// Stat describes what a path leads to, links followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.look(OpStat, name, true) }

// LstatIfPossible describes the entry itself, links not followed. The bool is always true.
func (f *FS) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	i, err := f.lstat(name)
	return i, true, err
}

func (f *FS) lstat(name string) (fs.FileInfo, error) { return f.look(OpLstat, name, false) }

func (f *FS) look(op Op, name string, follow bool) (fs.FileInfo, error) {
	met := f.enter(op, name)
	a := seen{err: met.Err}
	switch {
	case met.Err != nil:
	case met.was != nil && follow:
		a = met.was.stat
	case met.was != nil:
		a = met.was.lstat
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		a = f.at(name, follow)
	}
	i, err := a.as(name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return i, nil
}

// ReadlinkIfPossible returns the target of a link as it was given. Not a link: EINVAL.
func (f *FS) ReadlinkIfPossible(name string) (target string, err error) {
	err = f.do(OpReadlink, name, func() error {
		n, err := f.find(name, false)
		if err == nil && n.mode.Type() != fs.ModeSymlink {
			err = syscall.EINVAL
		}
		if err == nil {
			target = n.target
		}
		return err
	})
	return target, err
}

// Mkdir makes a directory. There is no umask.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.do(OpMkdir, name, func() error {
		return f.make(name, fs.ModeDir|perm&^fs.ModeType)
	})
}

// MkdirAll makes a directory and the parents it lacks.
func (f *FS) MkdirAll(name string, perm fs.FileMode) error {
	if i, err := f.Stat(name); err == nil {
		if i.IsDir() {
			return nil
		}
		return pathError(OpMkdir, name, syscall.ENOTDIR)
	}
	if parent := path.Dir(path.Clean(name)); parent != "/" && parent != "." {
		if err := f.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	err := f.Mkdir(name, perm)
	if errors.Is(err, fs.ErrExist) {
		// Someone else may have made it meanwhile.
		if i, statErr := f.Stat(name); statErr == nil && i.IsDir() {
			return nil
		}
	}
	return err
}

// Mknod makes an entry of the type that mode says: a regular file, a socket with nobody behind it, a FIFO, a device, or
// an irregular entry. A directory or a link: EINVAL.
func (f *FS) Mknod(name string, mode fs.FileMode) error {
	return f.do(OpMknod, name, func() error {
		if mode&(fs.ModeDir|fs.ModeSymlink) != 0 {
			return syscall.EINVAL
		}
		return f.make(name, mode)
	})
}

func (f *FS) make(name string, mode fs.FileMode) error {
	at, err := f.vacant(name)
	if err == nil {
		f.attach(at.dir, at.name, f.newNode(at.dir.device, mode))
	}
	return err
}

// SymlinkIfPossible makes a link at newname. The target oldname may be absolute or relative to the link's directory, and
// need not exist; an empty one is ENOENT.
func (f *FS) SymlinkIfPossible(oldname, newname string) error {
	err := f.enter(OpSymlink, newname).Err
	if err == nil && oldname == "" {
		err = syscall.ENOENT
	}
	if err == nil {
		err = f.symlink(oldname, newname)
	}
	if err != nil {
		return &os.LinkError{Op: string(OpSymlink), Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (f *FS) symlink(target, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.vacant(name)
	if err != nil {
		return err
	}
	n := f.newNode(at.dir.device, fs.ModeSymlink|0o777)
	n.target = target
	f.attach(at.dir, at.name, n)
	return nil
}

// Chmod changes permissions, links followed. It moves the change time only. Permissions are shown, never enforced.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.change(OpChmod, name, func(n *node) {
		n.mode = n.mode.Type() | mode&^fs.ModeType
		n.ctime = f.cfg.now()
	})
}

// Chown changes the owner, links followed; -1 leaves one as it is. It moves the change time only.
func (f *FS) Chown(name string, uid, gid int) error {
	return f.change(OpChown, name, func(n *node) {
		if uid != -1 {
			n.uid = uid
		}
		if gid != -1 {
			n.gid = gid
		}
		n.ctime = f.cfg.now()
	})
}

// Chtimes sets the modification time, links followed, and moves the change time to now. A zero mtime leaves it as it is.
// Access times are not kept.
func (f *FS) Chtimes(name string, _, mtime time.Time) error {
	return f.change(OpChtimes, name, func(n *node) {
		if !mtime.IsZero() {
			n.mtime = f.cfg.cut(mtime)
		}
		n.ctime = f.cfg.now()
	})
}

func (f *FS) change(op Op, name string, apply func(*node)) error {
	return f.do(op, name, func() error {
		n, err := f.find(name, true)
		if err == nil {
			apply(n)
		}
		return err
	})
}
