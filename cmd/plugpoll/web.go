package main

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/net/netutil"

	"github.com/plugpoll/plugpoll/scanner"
)

// What a client may cost.
const (
	maxConns     = 512
	maxHeaders   = 8 << 10
	sendBuffer   = 64 << 10
	headerTime   = 5 * time.Second
	requestTime  = 10 * time.Second
	answerTime   = 30 * time.Second
	idleTime     = 60 * time.Second
	shutdownTime = time.Second
)

// web is the listeners of a daemon and who serves them.
type web struct {
	log      hclog.Logger
	servers  []*http.Server
	sockets  []*boundSocket
	serving  sync.WaitGroup
	unfollow func() // ends the subscription to events, if Run has not
}

// open listens at a, and serves h there until close. The error says where.
func (w *web) open(ctx context.Context, a address, h http.Handler) (net.Addr, error) {
	l, err := w.listen(ctx, a)
	if err != nil {
		return nil, err
	}
	w.serve(l, a, h)
	return l.Addr(), nil
}

func (w *web) serve(l net.Listener, a address, h http.Handler) {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaders, ErrorLog: stdlog.New(complaints{w.log}, "", 0),
	}
	w.servers = append(w.servers, s)
	w.serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.log.Error("nothing is served any more", "address", shown(a.String()), "error", shown(err.Error()))
		}
	})
}

func (w *web) listen(ctx context.Context, a address) (net.Listener, error) {
	if a.network == "unix" {
		b, err := bind(ctx, a.at)
		if err != nil {
			return nil, err
		}
		w.sockets = append(w.sockets, b)
		return limited(b), nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, a.network, a.at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another process listens there", a)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", a, bare(err))
	}
	return limited(l), nil
}

// limited bounds how many connections there are, and what the kernel holds for each that does not read.
func limited(l net.Listener) net.Listener { return netutil.LimitListener(smallBuffers{l}, maxConns) }

type smallBuffers struct{ net.Listener }

// Accept is the listener's.
func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if c, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = c.SetWriteBuffer(sendBuffer)
	}
	return c, err
}

// close lets those go who are being answered, and ends the rest.
func (w *web) close() {
	for _, b := range w.sockets {
		if err := b.remove(); err != nil {
			w.log.Warn("remove", "error", shown(err.Error()))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	for _, s := range w.servers {
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}
	w.unfollow()
	w.serving.Wait()
}

// complaints takes what net/http has to say, which may hold what a client sent.
type complaints struct{ log hclog.Logger }

// Write takes one line.
func (c complaints) Write(text []byte) (int, error) {
	line := scanner.Clean(strings.TrimSpace(string(text)), maxComplaint)
	if strings.Contains(line, "panic") {
		c.log.Error("http", "message", shown(line))
	} else {
		c.log.Debug("http", "message", shown(line))
	}
	return len(text), nil
}
