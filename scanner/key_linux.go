package scanner

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func osLinks(sys any) uint64 {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // Nlink has other types on other architectures
	}
	return 0
}

// osKey is what keyOf makes of os.Lstat for a directory, and its mode; ok says that it could be made. What os.Lstat
// makes of the answer is a tenth of the time of a poll of a large tree.
func osKey(path string) (k key, mode fs.FileMode, ok bool) {
	var st unix.Stat_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Lstat(path, &st)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return key{}, 0, false
	}
	mode = fs.ModeDir | fs.FileMode(st.Mode&0o777)
	for _, special := range [...]struct {
		bit  uint32
		mode fs.FileMode
	}{{unix.S_ISVTX, fs.ModeSticky}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISUID, fs.ModeSetuid}} {
		if st.Mode&special.bit != 0 {
			mode |= special.mode
		}
	}
	stamp := Stamp{Device: uint64(st.Dev), Inode: st.Ino, ModTime: st.Mtim.Nano(), ChangeTime: st.Ctim.Nano(), Type: fs.ModeDir} //nolint:unconvert // as osLinks
	return key{stamp, st.Size, uint64(st.Nlink)}, mode, true                                                                     //nolint:unconvert // as osLinks
}

// statfsOf returns the question which filesystem f is on, nil if it cannot be asked. It is to be asked once, has a descriptor of its own, and so may take
// longer than f is open. magic is the filesystem's number, if the system says it.
func statfsOf(f *os.File) func() (magic uint32, told bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	fd := -1
	failed := conn.Control(func(open uintptr) { fd, err = unix.FcntlInt(open, unix.F_DUPFD_CLOEXEC, 0) })
	if failed != nil || err != nil {
		return nil
	}
	return func() (magic uint32, told bool) {
		defer func() { _ = unix.Close(fd) }()
		var st unix.Statfs_t
		err := unix.Fstatfs(fd, &st)
		return uint32(st.Type), err == nil
	}
}
