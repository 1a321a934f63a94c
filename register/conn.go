package register

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
)

// connection is gRPC's with what it was dialled as: gRPC learns of that when it comes to use it, and whoever closes before must leave nothing behind (S3).
type connection struct {
	*grpc.ClientConn
	raw *plain
}

// Close takes the connection away from gRPC before it ends gRPC's part, which would wait up to 5 s for a peer that does not read (S1).
func (c *connection) Close() error {
	_ = c.raw.Close()
	return c.ClientConn.Close()
}

// plain makes the errors of a connection those of its calls: gRPC takes them into its texts, and net's have the path in them, unquoted (D10). It
// remembers how it ended, which gRPC does not tell.
type plain struct {
	net.Conn
	ended atomic.Pointer[error]
}

func (p *plain) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	return n, p.note(err)
}

func (p *plain) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	return n, p.note(err)
}

func (p *plain) note(err error) error {
	if err = bare(err); err != nil {
		p.ended.CompareAndSwap(nil, &err)
	}
	return err
}

// end says in plain words how the connection ended; empty: it has not.
func (p *plain) end() string {
	err := p.ended.Load()
	switch {
	case err == nil:
		return ""
	case errors.Is(*err, io.EOF), errors.Is(*err, syscall.ECONNRESET), errors.Is(*err, syscall.EPIPE):
		return "the plugin closed the connection"
	}
	return "the connection ended: " + (*err).Error()
}

// once returns a dialer for gRPC that gives conn away at its first call and fails afterwards: a dead socket costs one connect for each try,
// and a server that closes at once cannot cause a storm of dials (R17).
func once(conn *plain) func(context.Context, string) (net.Conn, error) {
	given := make(chan *plain, 1)
	given <- conn
	return func(context.Context, string) (net.Conn, error) {
		select {
		case c := <-given:
			return c, nil
		default:
			return nil, errors.New(cmp.Or(conn.end(), "the connection has ended"))
		}
	}
}
