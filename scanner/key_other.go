//go:build !linux

package scanner

import "os"

func osLinks(any) uint64 { return 0 }

// statfsOf: the numbers of filesystem.go are those of Linux, and nowhere else was it measured that a directory's key moves with every change, so
// everywhere else each poll reads. Windows has neither inode nor change time in a FileInfo anyway. On darwin APFS should do (nanoseconds), HFS+ (1 s),
// SMB and NFS are another matter.
func statfsOf(*os.File) func() (magic uint32, told bool) { return nil }
