//go:build linux

package cni

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CN2: where stamps have whole seconds, a rewrite of the same size in the same second leaves the size, both times and the inode as they were. It is seen.
func TestEqualStamps(t *testing.T) {
	t.Parallel()
	base := mounted(t, "truncate -s 16M disk; mkfs.ext2 -q -F -I 128 disk; mount -o loop disk dir")
	file := filepath.Join(base, "dir", "10-a.conflist")
	write := func(network string) unix.Stat_t {
		var stat unix.Stat_t
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(list(network))
			_ = f.Close()
		}
		if err == nil {
			err = unix.Stat(file, &stat)
		}
		if err != nil {
			t.Fatal(err)
		}
		stat.Atim = unix.Timespec{}
		return stat
	}
	write("a")
	r := startAt(t, filepath.Dir(file))
	r.waitsFor(Ready, "a")
	for deadline := time.Now().Add(30 * time.Second); ; {
		before := write("b")
		r.waitsFor(Ready, "b")
		after := write("c")
		r.waitsFor(Ready, "c")
		if before == after {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no two writes fell into one second, with a poll between them")
		}
	}
}
