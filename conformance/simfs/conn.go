package simfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// pipeSize is the number of bytes under way in each direction.
const pipeSize = 4 << 10

// link is one connection with both its ends.
type link struct {
	client, server net.Conn
	silent         bool // never handed to gRPC
}

// pair makes the two ends of a connection.
func pair() (client, server net.Conn, err error) {
	l := bufconn.Listen(pipeSize)
	defer func() { _ = l.Close() }()
	var wg sync.WaitGroup
	var dialErr error
	wg.Go(func() { client, dialErr = l.Dial() })
	server, err = l.Accept()
	wg.Wait()
	return client, server, errors.Join(err, dialErr)
}

// end is one end of a link, with the errors of package net instead of those of bufconn.
type end struct {
	net.Conn
	addr   *net.UnixAddr
	forget func() // tells the server that the connection is over; may be called again

	mu     sync.Mutex
	closed bool
}

func (e *end) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	return n, e.wrap("read", err)
}

func (e *end) Write(p []byte) (int, error) {
	n, err := e.Conn.Write(p)
	return n, e.wrap("write", err)
}

func (e *end) Close() error {
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	if again {
		return e.wrap("close", io.ErrClosedPipe)
	}
	err := e.Conn.Close()
	e.forget()
	return e.wrap("close", err)
}

func (e *end) LocalAddr() net.Addr  { return e.addr }
func (e *end) RemoteAddr() net.Addr { return e.addr }

func (e *end) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	var timeout net.Error
	switch {
	case closed:
		err = net.ErrClosed
	case errors.Is(err, io.ErrClosedPipe):
		err = os.NewSyscallError(op, syscall.EPIPE)
	case errors.As(err, &timeout) && timeout.Timeout():
		err = os.ErrDeadlineExceeded
	}
	return &net.OpError{Op: op, Net: "unix", Addr: e.addr, Err: err}
}

// clientEnd is what Dial returns.
type clientEnd struct {
	*end
	uid, pid int
	start    uint64
}

// Peer tells whose socket this is, as SO_PEERCRED would: Plugin.UID, PID and Start at the time of the Dial.
func (c clientEnd) Peer() (uid, pid int, start uint64) { return c.uid, c.pid, c.start }

// Dial connects to the plugin behind a socket, links followed. The inode that is at the path now decides, not who bound
// it once. The connection has a method Peer() (uid, pid int, start uint64) that returns what the Plugin says.
//
// Errors are *net.OpError around: ECONNREFUSED when nobody listens there or it is no socket, ENOENT when nothing is
// there, the context's error when it ended, net.ErrClosed after FS.Close. Any number of connections may wait to be
// accepted: inject EAGAIN with OpDial to have a full backlog.
func (f *FS) Dial(ctx context.Context, name string) (net.Conn, error) {
	err := ctx.Err()
	if err == nil {
		err = f.enterContext(ctx, OpDial, name).Err
	}
	var c net.Conn
	if err == nil {
		c, err = f.dial(name)
	}
	if err != nil {
		return nil, netError("dial", OpDial, name, err)
	}
	return c, nil
}

func (f *FS) dial(name string) (net.Conn, error) {
	f.mu.Lock()
	n, err := f.find(name, true)
	var s *Server
	if err == nil {
		s = n.server
	}
	closed := f.servers == nil
	f.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case closed:
		return nil, net.ErrClosed
	case n.mode.Type() != fs.ModeSocket || s == nil:
		return nil, syscall.ECONNREFUSED
	}
	return s.connect(name)
}

func netError(verb string, call Op, name string, err error) error {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(string(call), err)
	}
	return &net.OpError{Op: verb, Net: "unix", Addr: &net.UnixAddr{Name: name, Net: "unix"}, Err: err}
}

// accepts is the listener that a plugin's gRPC server accepts from. Any number of connections may wait in it.
type accepts struct {
	addr *net.UnixAddr

	mu      sync.Mutex
	more    sync.Cond
	waiting []net.Conn
	closed  bool
}

var _ net.Listener = (*accepts)(nil)

func listen(name string) *accepts {
	a := &accepts{addr: &net.UnixAddr{Name: name, Net: "unix"}}
	a.more.L = &a.mu
	return a
}

func (a *accepts) push(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, c)
	a.more.Signal()
}

func (a *accepts) Accept() (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) == 0 && !a.closed {
		a.more.Wait()
	}
	if a.closed {
		return nil, net.ErrClosed
	}
	c := a.waiting[0]
	a.waiting = a.waiting[1:]
	return c, nil
}

// Close closes what nobody accepted, as the kernel does.
func (a *accepts) Close() error {
	a.mu.Lock()
	a.closed = true
	over := a.waiting
	a.waiting = nil
	a.more.Broadcast()
	a.mu.Unlock()
	for _, c := range over {
		_ = c.Close()
	}
	return nil
}

func (a *accepts) Addr() net.Addr { return a.addr }
