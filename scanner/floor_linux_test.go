package scanner

import (
	"testing"

	"golang.org/x/sys/unix"
)

func statAll(t testing.TB, list []string) {
	var st unix.Stat_t
	for _, path := range list {
		if err := unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
}
