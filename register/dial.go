package register

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// Dialer connects to the socket that a scan found. It is called once for each try and must obey ctx. One that has not returned 100 ms after ctx has ended is
// given up: its path is not dialled again until it has, and what it then returns is closed (R10).
type Dialer func(ctx context.Context, e scanner.Entry) (net.Conn, error)

// busyPause is the time between two connects to a listener whose backlog is full (R10).
const busyPause = 100 * time.Millisecond

// errStale is the failure of a dial that found something else at the path than the scan before it: it is looked at again (R15).
var errStale = errors.New("it is not the socket that was seen there any more")

// dialUnix is the Dialer of the operating system's filesystem.
func dialUnix(ctx context.Context, e scanner.Entry) (net.Conn, error) { return unixDialer(nil)(ctx, e) }

// unixDialer is dialUnix for sockets of certain owners; uids empty: of any.
func unixDialer(uids []int) Dialer {
	return func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
		address, done, err := addressOf(e, uids)
		if err != nil {
			return nil, err
		}
		defer done()
		return connect(ctx, address)
	}
}

// connect waits while the listener's backlog is full (R10).
func connect(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", address)
	if !errors.Is(err, syscall.EAGAIN) {
		return conn, bare(err)
	}
	for errors.Is(err, syscall.EAGAIN) {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(busyPause):
			conn, err = d.DialContext(ctx, "unix", address)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("busy: the listener's backlog was full (%w)", bare(err))
	}
	return conn, nil
}

// plainAddress is the address by path, with the limits of one, once the owner was checked as of now.
func plainAddress(path string, uids []int) (address string, done func(), err error) {
	if address, err = SocketAddress(path, runtime.GOOS); err == nil {
		err = checkOwner(path, uids)
	}
	return address, func() {}, err
}

// SocketAddress returns what package net takes as the address of the unix socket at path: a leading @ would mean an abstract name, and a path that does
// not fit into an address (more than 107 bytes, on darwin 103) gives no more than "invalid argument"; here it is an error that says so, and is Permanent.
// It takes the operating system, as in runtime.GOOS, as data.
func SocketAddress(path, goos string) (string, error) {
	limit := 107
	if goos == "darwin" {
		limit = 103
	}
	if strings.HasPrefix(path, "@") {
		path = "./" + path
	}
	if len(path) > limit {
		return "", Permanent(fmt.Errorf("path too long for a socket address (%d > %d bytes): use a shorter directory", len(path), limit))
	}
	return path, nil
}

// bare takes the path, which every message names already and which is not quoted there, out of an error of net.
func bare(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
