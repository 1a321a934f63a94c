package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// acceptTimeout is how long a socket that is there already may take to accept; one that takes longer is in use.
const acceptTimeout = time.Second

// refusedOnWindows is WSAECONNREFUSED.
const refusedOnWindows = syscall.Errno(10061)

// boundSocket is a listener and the file it made.
type boundSocket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

// bind listens at path if nothing that lives is there: a socket that refuses was left behind and is replaced, everything else is an error.
func bind(ctx context.Context, path string) (*boundSocket, error) {
	address, err := register.SocketAddress(path, runtime.GOOS)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scanner.Quote(path), err)
	}
	if err := vacate(ctx, address); err != nil {
		return nil, fmt.Errorf("%s: %w", scanner.Quote(path), err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scanner.Quote(path), bindError(address, err))
	}
	// net would unlink whatever is there at the end.
	l.SetUnlinkOnClose(false)
	info, err := os.Lstat(address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: removed as soon as it was bound: %w", scanner.Quote(path), bare(err)), l.Close())
	}
	return &boundSocket{l, address, info}, nil
}

// vacate removes the socket of a process that is no more.
func vacate(ctx context.Context, address string) error {
	info, err := os.Lstat(address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return bare(err)
	case info.IsDir():
		return errors.New("is a directory, name a socket in it")
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("exists and is not a socket")
	}
	conn, err := (&net.Dialer{Timeout: acceptTimeout}).DialContext(ctx, "unix", address)
	switch {
	case err == nil:
		_ = conn.Close()
		return errors.New("in use: another process accepts connections there")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, refusedOnWindows):
		return fmt.Errorf("exists and may be in use: %w", bare(err))
	}
	if !same(address, info) {
		return errors.New("in use: another process has just bound it")
	}
	return bare(os.Remove(address))
}

// remove deletes the socket's file unless it is another's by now. It must be called while the listener is open: that keeps the
// filesystem from giving the file's number to another one.
func (b *boundSocket) remove() error {
	if !same(b.path, b.info) {
		return nil
	}
	if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", scanner.Quote(b.path), bare(err))
	}
	return nil
}

func same(path string, info fs.FileInfo) bool {
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, info)
}

func bindError(address string, err error) error {
	dir := filepath.Dir(address)
	if info, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("the directory %s does not exist", scanner.Quote(dir))
	} else if statErr == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", scanner.Quote(dir))
	}
	return bare(err)
}

// bare takes the path, which is not quoted there, out of an error of os or net.
func bare(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
