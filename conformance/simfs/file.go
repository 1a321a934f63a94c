package simfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/afero"
)

// file is an open file without ReadDir, for Config.Entries NoEntries. Its changing fields are guarded by FS.mu.
type file struct {
	fs     *FS
	node   *node
	name   string // as given to Open
	flag   int
	off    int64
	closed bool
	pass   *pass
}

// typedFile is an open file that implements fs.ReadDirFile.
type typedFile struct{ *file }

var (
	_ afero.File     = (*file)(nil)
	_ afero.File     = typedFile{}
	_ fs.ReadDirFile = typedFile{}
)

var errAppend = errors.New("WriteAt on a file opened with O_APPEND")

const access = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

// Open opens a file or directory for reading. A socket, FIFO, device or irregular entry is ENXIO.
func (f *FS) Open(name string) (afero.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// Create makes a file with permissions 0666 or empties the one that is there, and opens it.
func (f *FS) Create(name string) (afero.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// OpenFile opens a file with the flags of package os. A directory opened for writing is EISDIR; for other types see Open.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (opened afero.File, err error) {
	err = f.do(OpOpen, name, func() error {
		n, err := f.openNode(name, flag, perm)
		if err != nil {
			return err
		}
		n.pins++
		plain := &file{fs: f, node: n, name: name, flag: flag}
		opened = typedFile{plain}
		if f.cfg.Entries == NoEntries {
			opened = plain
		}
		return nil
	})
	return opened, err
}

func (f *FS) openNode(name string, flag int, perm fs.FileMode) (*node, error) {
	create := flag&os.O_CREATE != 0
	exclusive := create && flag&os.O_EXCL != 0
	at, err := f.walk(name, !exclusive)
	switch {
	case err != nil:
		return nil, err
	case at.node == nil && !create:
		return nil, syscall.ENOENT
	case at.node == nil:
		n := f.newNode(at.dir.device, perm&^fs.ModeType)
		f.attach(at.dir, at.name, n)
		return n, nil
	case exclusive:
		return nil, syscall.EEXIST
	case at.node.mode.IsDir():
		if flag&(access|os.O_CREATE|os.O_TRUNC) != os.O_RDONLY {
			return nil, syscall.EISDIR
		}
	case !at.node.mode.IsRegular():
		return nil, syscall.ENXIO
	case flag&os.O_TRUNC != 0:
		at.node.data = nil
		f.touch(at.node)
	}
	return at.node, nil
}

// do runs one operation on the open file under the lock, after its fault.
func (f *file) do(op Op, work func() error) error {
	return f.met(op, func(*past) error { return work() })
}

// met is do for work that may be stale.
func (f *file) met(op Op, work func(*past) error) error {
	met := f.fs.enter(op, f.name)
	err := met.Err
	if err == nil {
		err = f.locked(func() error { return work(met.was) })
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return pathError(op, f.name, err)
	}
	return err
}

func (f *file) locked(work func() error) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	return work()
}

// ready checks that the file is content and was opened for it.
func (f *file) ready(refused int) error {
	switch {
	case f.node.mode.IsDir():
		return syscall.EISDIR
	case f.flag&access == refused:
		return syscall.EBADF
	}
	return nil
}

func (f *file) Name() string { return f.name }

func (f *file) Close() error {
	err := f.locked(func() error {
		f.closed = true
		f.fs.unpin(f.node)
		return nil
	})
	if err != nil {
		return pathError("close", f.name, err)
	}
	return nil
}

func (f *file) Stat() (i fs.FileInfo, err error) {
	err = f.met(OpStat, func(was *past) error {
		a, stale := was.statOf(f.node)
		if !stale {
			a.info = f.fs.info(f.name, f.node)
		}
		i, err = a.as(f.name)
		return err
	})
	return i, err
}

func (f *file) Sync() error {
	if err := f.locked(func() error { return nil }); err != nil {
		return pathError("sync", f.name, err)
	}
	return nil
}

func (f *file) Read(p []byte) (n int, err error) {
	err = f.do(OpRead, func() error {
		n, err = f.readAt(p, f.off)
		f.off += int64(n)
		if n > 0 || len(p) == 0 {
			return nil // as os: the end is told by the next call
		}
		return err
	})
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do(OpRead, func() error {
		n, err = f.readAt(p, off)
		return err
	})
	return n, err
}

func (f *file) readAt(p []byte, off int64) (int, error) {
	if err := f.ready(os.O_WRONLY); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	if off >= int64(len(f.node.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(p []byte) (n int, err error) {
	err = f.do(OpWrite, func() error {
		if f.flag&os.O_APPEND != 0 {
			f.off = int64(len(f.node.data))
		}
		n, err = f.writeAt(p, f.off)
		f.off += int64(n)
		return err
	})
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.do(OpWrite, func() error {
		if f.flag&os.O_APPEND != 0 {
			return errAppend
		}
		n, err = f.writeAt(p, off)
		return err
	})
	return n, err
}

func (f *file) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

func (f *file) writeAt(p []byte, off int64) (int, error) {
	if err := f.ready(os.O_RDONLY); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	if len(p) == 0 {
		return 0, nil
	}
	if end := off + int64(len(p)); end > int64(len(f.node.data)) {
		f.resize(end)
	}
	f.fs.touch(f.node)
	return copy(f.node.data[off:], p), nil
}

func (f *file) Truncate(size int64) error {
	return f.do(OpWrite, func() error {
		if err := f.ready(os.O_RDONLY); err != nil {
			return err
		}
		if size < 0 {
			return syscall.EINVAL
		}
		f.resize(size)
		f.fs.touch(f.node)
		return nil
	})
}

// resize sets the length of the content; what is added is zeros.
func (f *file) resize(size int64) {
	have := f.node.data
	if size <= int64(len(have)) {
		f.node.data = have[:size:size]
		return
	}
	f.node.data = append(have, make([]byte, size-int64(len(have)))...)
}

// Seek moves the place of the next Read or Write. In a directory it starts the listing anew, whatever the offset.
func (f *file) Seek(offset int64, whence int) (at int64, err error) {
	err = f.locked(func() error {
		f.pass = nil
		switch whence {
		case io.SeekStart:
		case io.SeekCurrent:
			offset += f.off
		case io.SeekEnd:
			offset += f.node.size()
		default:
			return syscall.EINVAL
		}
		if offset < 0 {
			return syscall.EINVAL
		}
		f.off, at = offset, offset
		return nil
	})
	if err != nil {
		return 0, pathError("seek", f.name, err)
	}
	return at, nil
}
