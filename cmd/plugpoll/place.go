package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

// lockPatience is how long to wait for the lock of a directory. Who holds it needs little more than acceptTimeout.
const lockPatience = 5 * time.Second

// lockPause is the time between two tries to have it.
const lockPause = 5 * time.Millisecond

var errLocked = errors.New("another process has kept it locked")

// place is a name in a directory. Where the system can do that the directory is held open, so that its path may have any length and everything happens in
// one directory, whatever becomes of the path (R15).
type place struct {
	path  string // as given, for messages
	dir   string // what leads to the directory, up to the name
	name  string
	close func()
}

// openPlace fails if there is no such directory. The name may stand for anything or nothing.
func openPlace(path string) (*place, error) {
	given, name := filepath.Split(path)
	dir, done, err := openDir(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the directory %s does not exist", scanner.Quote(filepath.Dir(path)))
	case errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%s is not a directory", scanner.Quote(filepath.Dir(path)))
	case err != nil:
		return nil, fmt.Errorf("the directory %s: %w", scanner.Quote(filepath.Dir(path)), bare(err))
	}
	return &place{path, dir, name, done}, nil
}

// at is the path of a name in the directory, for the system.
func (p *place) at(name string) string { return p.dir + name }

// holds reports whether the name is the file that info is of.
func (p *place) holds(name string, info fs.FileInfo) bool {
	now, err := os.Lstat(p.at(name))
	return err == nil && os.SameFile(now, info)
}

// lock keeps out all others who take it, until unlock is called. It waits for them that long.
func (p *place) lock(ctx context.Context, patience time.Duration) (unlock func(), err error) {
	for deadline := time.Now().Add(patience); ; {
		unlock, err := p.tryLock()
		switch {
		case unlock != nil || err != nil:
			return unlock, err
		case time.Now().After(deadline):
			return nil, errLocked
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// held is a file, and an address that leads to just that one, where the system can do that, until it is closed.
type held struct {
	info    fs.FileInfo
	address string
	close   func()
}

// plainDir is a directory by its path, "" for the current one.
func plainDir(dir string) (string, func(), error) {
	name := dir
	if name == "" {
		name = "."
	}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	return dir, func() {}, err
}

// plainHold is a file by its path.
func plainHold(path string, follow bool) (*held, error) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	address, err := register.SocketAddress(path, runtime.GOOS)
	return &held{info, address, func() {}}, err
}

// linkNew gives a file another name, which must not be there yet, in two steps.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
