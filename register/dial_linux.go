package register

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/scanner"
)

// addressOf opens the socket itself and returns an address that leads to just that one, however long its path and whatever its name, until done is called (R15).
// Where there is no /proc, or no such handle is to be had, the address is the path's.
func addressOf(e scanner.Entry, uids []int) (address string, done func(), err error) {
	fd, err := openSocket(e)
	switch {
	case isAny(err, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENXIO):
		return plainAddress(e.Path, uids) // the filesystem, or what plays the kernel here, knows no O_PATH
	case isAny(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP):
		return "", nil, fmt.Errorf("%w: %w", errStale, err)
	case err != nil:
		return "", nil, err
	}
	done = func() { _ = unix.Close(fd) }
	err = checkHandle(fd, e, uids)
	if err == nil {
		err = allowedLink(e.Path, uids)
	}
	if err != nil {
		done()
		return "", nil, err
	}
	address = "/proc/self/fd/" + strconv.Itoa(fd)
	if _, err := os.Lstat(address); err != nil {
		done()
		return plainAddress(e.Path, uids)
	}
	return address, done, nil
}

// openSocket opens it for nothing but to be named. Only what was scanned as a link, or what the filesystem could not classify, may be one.
func openSocket(e scanner.Entry) (fd int, err error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if e.ID.Link == (scanner.Stamp{}) && !e.Maybe {
		flags |= unix.O_NOFOLLOW
	}
	for {
		fd, err = unix.Open(e.Path, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// checkHandle compares what was opened with what was scanned, as far as that is known, but not the stamps: plugins chmod their socket after they bind it (I6).
func checkHandle(fd int, e scanner.Entry, uids []int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	device, inode, isSocket := uint64(st.Dev), st.Ino, st.Mode&unix.S_IFMT == unix.S_IFSOCK //nolint:unconvert // Dev has other types on other architectures
	id := e.ID.Stamp
	switch {
	case id.Device != 0 && id.Device != device, id.Inode != 0 && id.Inode != inode:
		return errStale
	case !isSocket && !e.Maybe && id.Type == fs.ModeSocket:
		return errStale
	case !isSocket:
		return fmt.Errorf("it is not a socket: %w", syscall.ENOTSOCK)
	}
	return allowedOwner(int(st.Uid), uids)
}

func isAny(err error, errnos ...error) bool {
	for _, e := range errnos {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
