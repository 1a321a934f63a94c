package main

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/state"
)

// pipes is a listener whose connections are in memory: nothing is buffered, so a client that does not read is noticed at once.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestSlowClients has clients that are slow with each part of a request, and some that do not read. Each is hung up on in its time.
func TestSlowClients(t *testing.T) {
	for name, test := range map[string]struct {
		say   string
		dribs time.Duration // between its bytes
		event bool          // there are events
		limit time.Duration
	}{
		"says nothing":         {"", 0, false, headerTime},
		"half a header":        {"GET / HTTP/1.1\r\nHost: local", 0, false, headerTime},
		"a byte a second":      {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100), time.Second, false, headerTime},
		"reads no answer":      {"GET /v1/view HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, false, answerTime},
		"reads no first event": {"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, false, readerPatience},
		"reads none of them":   {"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, true, readerPatience},
		"sends no body":        {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", 0, false, answerTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(fixed{state.View{Version: "v1", Types: []string{strings.Repeat("x", 1<<20)}}}, 0, nil)
				w := &web{log: hclog.NewNullLogger(), unfollow: func() {}}
				l := pipes{make(chan net.Conn), make(chan struct{})}
				w.serve(l, address{network: "unix"}, s.status(address{network: "unix"}))
				ours, theirs := net.Pipe()
				l.conns <- theirs
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					for i := range test.say {
						if _, err := io.WriteString(ours, test.say[i:i+1]); err != nil || ctx.Err() != nil {
							return
						}
						time.Sleep(test.dribs)
					}
				}()
				if test.event {
					s.feed.add(feedEvent{time: time.Now().Add(time.Hour), line: []byte("{}\n")})
				}
				time.Sleep(test.limit + time.Second)
				synctest.Wait()
				// What is left in the pipe is one piece of an answer, and then the end.
				_ = ours.SetReadDeadline(time.Now().Add(time.Second))
				if n, err := io.Copy(io.Discard, ours); err != nil {
					t.Errorf("after %v it is still connected: %d bytes, %v", time.Since(began), n, err)
				}
				cancel()
				_ = ours.Close()
				w.close()
			})
		})
	}
}
