package scanner

import (
	"testing"

	"golang.org/x/sys/unix"
)

// statAll is the least that tells whether directories have changed.
func statAll(t testing.TB, list []string) {
	var st unix.Stat_t
	for _, path := range list {
		if err := unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
}

// listAll is the least that tells what is in directories. It does not even look at the names.
func listAll(t testing.TB, list []string, buffer []byte) {
	for _, path := range list {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n > 0; {
			if n, err = unix.Getdents(fd, buffer); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
}

// onTmpfs reports whether a directory is in memory.
func onTmpfs(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// readAll is the least that tells what is in files.
func readAll(t testing.TB, list []string, buffer []byte) {
	var st unix.Stat_t
	for _, path := range list {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(fd, buffer); err != nil {
			t.Fatal(err)
		}
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
}
