package main

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func openDir(dir string) (string, func(), error) {
	name := dir
	if name == "" {
		name = "."
	}
	f, address, err := handle(name, unix.O_DIRECTORY)
	if err != nil {
		return "", nil, err
	}
	if f == nil {
		return plainDir(dir)
	}
	return address + "/", func() { _ = f.Close() }, nil
}

func hold(path string, follow bool) (*held, error) {
	flags := unix.O_NOFOLLOW
	if follow {
		flags = 0
	}
	f, address, err := handle(path, flags)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return plainHold(path, follow)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &held{info, address, func() { _ = f.Close() }}, nil
}

// handle opens a path for nothing but to be named by the address. It is nil where there is no such thing, or no /proc to name it by.
func handle(path string, flags int) (*os.File, string, error) {
	f, err := os.OpenFile(path, unix.O_PATH|flags, 0)
	for _, unknown := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENXIO} {
		if errors.Is(err, unknown) {
			return nil, "", nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	address := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if _, err := os.Lstat(address); err != nil {
		_ = f.Close()
		return nil, "", nil
	}
	return f, address, nil
}

// moveNew renames a file unless there is one of the new name.
func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	return err
}
