package register

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/plugpoll/plugpoll/state"
)

// connection is gRPC's with what it was dialled as: gRPC learns of that when it comes to use it, and whoever closes before must leave nothing behind (S3).
type connection struct {
	rpc
	raw  *plain
	peer *state.Peer // nil: unknown
}

// rpc is the part of a *grpc.ClientConn that is used.
type rpc interface {
	grpc.ClientConnInterface
	Close() error
}

// Close takes the connection away from gRPC before it ends gRPC's part, which would wait up to 5 s for a peer that does not read (S1).
func (c *connection) Close() error {
	_ = c.raw.shut()
	return c.rpc.Close()
}

// plain makes the errors of a connection those of its calls: gRPC takes them into its texts, and net's have the path in them, unquoted (D10). It
// remembers how it ended, which gRPC does not tell (L1): an error of Read before anything else means that the other side is gone; gRPC's own Close before
// that, that the other side has said GOAWAY, or has broken HTTP/2. What Write says decides nothing: gRPC lets the reader find out.
type plain struct {
	net.Conn
	release func() // gives the descriptor back
	inflow  inflow // of Read, which gRPC calls from one goroutine

	mu     sync.Mutex
	err    error             // the first one
	over   bool              // ended by itself
	goAway bool              // and so
	ours   bool              // closed by us, before it ended or after
	closed bool              // the connection below is
	tell   func(goAway bool) // called once when it ends by itself; nil: nobody wants to know yet
}

func (p *plain) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if err == nil && !p.inflow.take(n, time.Now()) {
		n, err = 0, errFlood
	}
	if err = p.note(err); err != nil {
		p.end(false)
	}
	return n, err
}

// What a plugin may send: the largest answer at once, and some small talk of the protocol for ever. One that sends PINGs without end would keep a processor
// busy for nothing (X3).
const (
	mostAtOnce  = maxAnswer + 4*maxHeaders
	mostASecond = 16 << 10
)

var errFlood = errors.New("the plugin sends far more than it is asked for")

// inflow is what may still come in. The zero value begins with mostAtOnce.
type inflow struct {
	used int // of mostAtOnce
	at   time.Time
}

func (f *inflow) take(n int, now time.Time) bool {
	if passed := now.Sub(f.at); passed < time.Hour {
		f.used = max(0, f.used-int(passed.Seconds()*mostASecond))
	} else {
		f.used = 0
	}
	f.at = now
	f.used += n
	return f.used <= mostAtOnce
}

func (p *plain) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	return n, p.note(err)
}

// Close is gRPC's.
func (p *plain) Close() error {
	p.end(true)
	return p.close()
}

// shut is our own Close: after it nobody is told anything.
func (p *plain) shut() error {
	p.mu.Lock()
	p.ours = true
	p.mu.Unlock()
	return p.close()
}

// close closes the connection below. We do it, and then gRPC does: the first call counts.
func (p *plain) close() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return nil
	}
	err := p.Conn.Close()
	p.release()
	return err
}

func (p *plain) note(err error) error {
	if err = bare(err); err != nil {
		p.mu.Lock()
		if p.err == nil {
			p.err = err
		}
		p.mu.Unlock()
	}
	return err
}

// end takes note that the connection ended, before gRPC, which is about to fail the calls that wait for it, learns of that.
func (p *plain) end(goAway bool) {
	p.mu.Lock()
	if p.over || p.ours {
		p.mu.Unlock()
		return
	}
	p.over, p.goAway = true, goAway
	tell := p.tell
	p.mu.Unlock()
	if tell != nil {
		tell(goAway)
	}
}

// watch has tell called when the connection ends by itself. If it has ended, watch says so instead. tell may come before watch returns.
func (p *plain) watch(tell func(goAway bool)) (over, goAway bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = tell
	return p.over && !p.ours, p.goAway
}

// ending says in plain words how the connection ended; empty: it has not.
func (p *plain) ending() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err == nil && p.over && p.goAway:
		return "the plugin closed the connection"
	case p.err == nil:
		return ""
	case errors.Is(p.err, io.EOF), errors.Is(p.err, syscall.ECONNRESET), errors.Is(p.err, syscall.EPIPE):
		return "the plugin closed the connection"
	}
	return "the connection ended: " + p.err.Error()
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
			return nil, errors.New(cmp.Or(conn.ending(), "the connection has ended"))
		}
	}
}
