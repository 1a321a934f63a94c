package scanner

import (
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
