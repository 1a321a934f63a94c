package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
)

const (
	// acceptTimeout is how long a socket that is there already may take to accept; one that takes longer is in use.
	acceptTimeout = time.Second
	// listenPause is the time between two refusals that prove a socket dead: it also refuses between the bind and the listen of its process.
	listenPause = 50 * time.Millisecond
)

// Names that are used while the directory is locked, for as long as it takes to rename. A crash leaves one at worst, which nobody looks at (D3) and the
// next one who needs it removes.
const (
	asideName = ".plugpoll.old"
	nextName  = ".plugpoll.new"
)

// refusedOnWindows is WSAECONNREFUSED.
const refusedOnWindows = syscall.Errno(10061)

// boundSocket is a listener and the file it made.
type boundSocket struct {
	*net.UnixListener
	place *place
	info  fs.FileInfo
}

// bind listens at path if nothing that lives is there: a socket that refuses was left behind and is replaced, everything else is an error.
//
// Of several processes that find the same one left behind, one replaces it and the others find that one's socket (X4): what is done between the proof
// that a socket is dead and the listen of the next one is done under a lock of the directory, which ends with the process that holds it.
func bind(ctx context.Context, path string) (*boundSocket, error) {
	p, err := openPlace(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", scanner.Quote(path), err)
	}
	b, err := p.bind(ctx)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("%s: %w", scanner.Quote(path), err)
	}
	return b, nil
}

func (p *place) bind(ctx context.Context) (*boundSocket, error) {
	if p.name == "" || p.name == "." || p.name == ".." {
		return nil, errDirectory
	}
	unlock, unlocked := p.lock(ctx, lockPatience)
	if unlocked == nil {
		defer unlock()
	}
	if err := p.vacate(ctx, unlocked); err != nil {
		return nil, err
	}
	l, err := p.listen(ctx, unlocked)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(p.at(p.name))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("removed as soon as it was bound: %w", bare(err)), l.Close())
	}
	return &boundSocket{l, p, info}, nil
}

var (
	errDirectory = errors.New("is a directory, name a socket in it")
	errJustBound = errors.New("in use: another process has just bound it")
)

// vacate removes the socket of a process that is no more. unlocked is why the directory could not be locked; then nothing is removed.
func (p *place) vacate(ctx context.Context, unlocked error) error {
	h, err := hold(p.at(p.name), false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return bare(err)
	}
	defer h.close()
	switch {
	case h.info.IsDir():
		return errDirectory
	case h.info.Mode().Type() != fs.ModeSocket:
		return errors.New("exists and is not a socket")
	}
	if err := proveDead(ctx, h); err != nil {
		return err
	}
	if unlocked != nil {
		return fmt.Errorf("was left behind, but cannot be replaced safely, remove it yourself: lock the directory: %w", bare(unlocked))
	}
	return p.displace(ctx, h.info)
}

// proveDead returns nil if nobody listens at the socket any more.
func proveDead(ctx context.Context, h *held) error {
	for try := 1; ; try++ {
		conn, err := (&net.Dialer{Timeout: acceptTimeout}).DialContext(ctx, "unix", h.address)
		switch {
		case err == nil:
			_ = conn.Close()
			if try > 1 {
				return errJustBound
			}
			return errors.New("in use: another process accepts connections there")
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case !refused(err):
			return fmt.Errorf("exists and may be in use: %w", bare(err))
		case try > 1:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(listenPause):
		}
	}
}

func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, refusedOnWindows)
}

// displace removes the dead socket that info is of, and nothing else: a program that knows no lock may have bound another one meanwhile. So it is
// first moved aside, as one cannot say to a filesystem which file to unlink, and looked at there.
func (p *place) displace(ctx context.Context, dead fs.FileInfo) error {
	if runtime.GOOS == "windows" { // which may not rename a socket: not known
		if !p.holds(p.name, dead) {
			return errJustBound
		}
		return bare(os.Remove(p.at(p.name)))
	}
	if err := p.sweep(ctx, asideName); err != nil {
		return err
	}
	err := os.Rename(p.at(p.name), p.at(asideName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return bare(err)
	case p.holds(asideName, dead):
		return bare(os.Remove(p.at(asideName)))
	}
	if err := moveNew(p.at(asideName), p.at(p.name)); err != nil {
		return fmt.Errorf("%w, and its socket is now called %s: %w", errJustBound, asideName, bare(err))
	}
	return errJustBound
}

// sweep removes what a crash has left under one of our own names, while we have the lock. A socket that lives would be another program's.
func (p *place) sweep(ctx context.Context, name string) error {
	h, err := hold(p.at(name), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer h.close()
		if err = proveDead(ctx, h); err == nil {
			err = os.Remove(p.at(name))
		}
	}
	if err != nil {
		return fmt.Errorf("%s is in the way: %w", name, bare(err))
	}
	return nil
}

// listen binds the name, or, if that does not fit into an address, a short one that is renamed once it listens.
func (p *place) listen(ctx context.Context, unlocked error) (*net.UnixListener, error) {
	name := p.name
	address, err := register.SocketAddress(p.at(name), runtime.GOOS)
	if err != nil {
		name = nextName
		var shorter error
		if address, shorter = register.SocketAddress(p.at(name), runtime.GOOS); shorter != nil {
			return nil, err
		}
		if unlocked != nil {
			return nil, fmt.Errorf("%w; a longer one takes a lock of the directory: %w", err, bare(unlocked))
		}
		if err := p.sweep(ctx, name); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errJustBound
	}
	if err != nil {
		return nil, bare(err)
	}
	// net would unlink whatever is there at the end.
	l.SetUnlinkOnClose(false)
	if name == p.name {
		return l, nil
	}
	if err := moveNew(p.at(name), p.at(p.name)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = errJustBound
		}
		return nil, errors.Join(bare(err), bare(os.Remove(p.at(name))), l.Close())
	}
	return l, nil
}

// remove deletes the socket's file unless it is another's by now. It must be called while the listener is open: that keeps the filesystem from giving the
// file's number to another one, and all who take the lock from replacing it. Here it is not moved aside first: those who watch the directory are to see
// what they see of any plugin that ends.
func (b *boundSocket) remove() error {
	if !b.place.holds(b.place.name, b.info) {
		return nil
	}
	if err := os.Remove(b.place.at(b.place.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", scanner.Quote(b.place.path), bare(err))
	}
	return nil
}

// Close ends listening. The file stays.
func (b *boundSocket) Close() error {
	b.place.close()
	return b.UnixListener.Close()
}

// bare takes the path, which is not quoted there, out of an error of os or net.
func bare(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
