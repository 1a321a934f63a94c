//go:build unix

package scanner

import "syscall"

// The flags with which directories of the operating system are opened. That a name is a directory was seen a moment before: in its place there may be
// a FIFO now, whose open does not return, a device, or a link that leads out of the tree (D2, D5).
const (
	openDirectory = syscall.O_DIRECTORY | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	openNoLink    = syscall.O_NOFOLLOW
)
