//go:build !linux

package scanner

import "os"

func osLinks(any) uint64 { return 0 }

// magicOf: the numbers of filesystem.go are those of Linux.
func magicOf(*os.File) (magic uint32, ok bool) { return 0, false }

// keepsKeys: nowhere but on Linux was it measured that a directory's key moves with every change, so everywhere else each poll reads. Windows
// has neither inode nor change time in a FileInfo anyway. On darwin APFS should do (nanoseconds), HFS+ (1 s), SMB and NFS are another matter.
func keepsKeys(*os.File) bool { return false }
