//go:build unix

package scanner

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// opensUnblocked says that osOpen does.
const opensUnblocked = true

// osSource is a descriptor. An os.File and its FileInfo are six objects for each file and poll.
type osSource int

// osOpen opens a file of the operating system without waiting for whoever has the other end of a FIFO, and without taking a terminal for ours.
func osOpen(path string) (source, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return osSource(fd), nil
		case !errors.Is(err, unix.EINTR):
			return nil, err
		}
	}
}

func (f osSource) stat() (typ fs.FileMode, size int64, err error) {
	var st unix.Stat_t
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstat(int(f), &st)
	}
	return unixType(uint32(st.Mode)), st.Size, err //nolint:unconvert // Mode has other types on other systems
}

func (f osSource) Read(p []byte) (n int, err error) {
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(int(f), p)
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (f osSource) Close() error { return unix.Close(int(f)) }

func unixType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}
