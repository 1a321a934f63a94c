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

// magicOf returns the magic number of the filesystem f is on, if the system says it.
func magicOf(f *os.File) (magic uint32, ok bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	var st unix.Statfs_t
	failed := conn.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &st) })
	return uint32(st.Type), failed == nil && err == nil
}

// keepsKeys reports whether f is on a filesystem whose directory keys can be trusted. It is asked at each read and not remembered by device:
// the number of a filesystem that was unmounted goes to the next one mounted.
func keepsKeys(f *os.File) bool {
	magic, ok := magicOf(f)
	return ok && localFilesystem(magic)
}
