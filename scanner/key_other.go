//go:build !linux

package scanner

import (
	"io/fs"
	"os"
)

func osLinks(any) uint64 { return 0 }

func osKey(path string) (k key, mode fs.FileMode, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return key{}, 0, false
	}
	return keyOf(info), info.Mode(), true
}

// statfsOf: the numbers of filesystem.go are those of Linux, and nowhere else was it measured that a directory's key moves with every change, so
// everywhere else each poll reads. Windows has neither inode nor change time in a FileInfo anyway. On darwin APFS should do (nanoseconds), HFS+ (1 s),
// SMB and NFS are another matter.
func statfsOf(*os.File) func() (magic uint32, told bool) { return nil }
