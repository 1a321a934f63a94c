//go:build unix

package cni

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

func mknod(path string, mode fs.FileMode) error {
	kind := uint32(unix.S_IFIFO)
	if mode&fs.ModeSocket != 0 {
		kind = unix.S_IFSOCK
	}
	return unix.Mknod(path, kind|0o644, 0)
}
