package register

import (
	"context"
	"errors"
	"net"

	"google.golang.org/grpc"
)

// connection is gRPC's with what it was dialled as: gRPC learns of that when it comes to use it, and whoever closes before must leave nothing behind (S3).
type connection struct {
	*grpc.ClientConn
	raw net.Conn
}

func (c *connection) Close() error {
	err := c.ClientConn.Close()
	_ = c.raw.Close() // as a rule it is closed by now
	return err
}

// plain makes the errors of a connection those of its calls: gRPC takes them into its texts, and net's have the path in them, unquoted (D10).
type plain struct{ net.Conn }

func (p plain) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	return n, bare(err)
}

func (p plain) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	return n, bare(err)
}

// once returns a dialer for gRPC that gives conn away at its first call and fails afterwards: a dead socket costs one connect for each try,
// and a server that closes at once cannot cause a storm of dials (R17).
func once(conn net.Conn) func(context.Context, string) (net.Conn, error) {
	given := make(chan net.Conn, 1)
	given <- conn
	return func(context.Context, string) (net.Conn, error) {
		select {
		case c := <-given:
			return c, nil
		default:
			return nil, errors.New("the connection has ended")
		}
	}
}
