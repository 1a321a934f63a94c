package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

const (
	// askTimeout is how long a daemon may take for a whole answer.
	askTimeout = 15 * time.Second
	// maxAnswer bounds what is read of one; a View of 100,000 sockets is below it.
	maxAnswer = 256 << 20
)

// asker asks a running daemon.
type asker struct {
	address address
	client  *http.Client
	timeout time.Duration
	flag    string // of run, that gives a daemon what is asked for
}

// addAddress gives cmd the flag that says which daemon to ask.
func addAddress(cmd *cobra.Command) *string {
	flag := cmd.Flags().String("address", defaultListen, "`address` of the daemon, as its --listen: HOST:PORT or unix:/PATH")
	complete(cmd, "address", defaultListen)
	return flag
}

func newAsker(flag string) (*asker, error) {
	a, err := parseAddress("--address", flag)
	if err != nil {
		return nil, err
	}
	if a.isZero() {
		return nil, usagef("--address is empty: name where the daemon listens (%s or unix:/PATH)", defaultListen)
	}
	var d net.Dialer
	return &asker{address: a, timeout: askTimeout, flag: "--dir", client: &http.Client{
		Transport: &http.Transport{
			DialContext:           func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, a.network, a.at) },
			ResponseHeaderTimeout: askTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// open asks for path. The answer is a daemon's, and must be closed.
func (a *asker) open(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return nil, a.unreached(err)
	}
	if answer.StatusCode == http.StatusOK && answer.Header.Get("Content-Security-Policy") == policy {
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }()
	said := struct{ Error string }{}
	if json.NewDecoder(io.LimitReader(answer.Body, maxComplaint)).Decode(&said) == nil && said.Error != "" {
		err := fmt.Errorf("the daemon at %s does not answer this: %s", a.address, scanner.Clean(said.Error, maxComplaint))
		if answer.StatusCode == http.StatusNotFound && answer.Header.Get("Content-Security-Policy") == policy {
			err = notThereError{err}
		}
		return nil, err
	}
	return nil, fmt.Errorf("what answers at %s is not plugpoll (HTTP %d): name the daemon's address with --address", a.address, answer.StatusCode)
}

// notThereError says that a daemon has nothing at a path: it is older than this plugpoll.
type notThereError struct{ error }

// unreached says what to do when nobody answers.
func (a *asker) unreached(err error) error {
	advice := "start one (plugpoll run " + a.flag + " DIR), or say with --address where it listens"
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err
		if sys, ok := errors.AsType[syscall.Errno](op.Err); ok {
			cause = sys
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, fs.ErrPermission):
		advice = "become the user that the daemon runs as, or root"
	case isTimeout(err):
		return fmt.Errorf("the daemon at %s does not answer within %s: see its log, and whether the machine is overloaded", a.address, a.timeout)
	}
	return fmt.Errorf("no daemon answers at %s (%s): %s", a.address, scanner.Clean(cause.Error(), maxComplaint), advice)
}

// raw is the whole answer to path, which is a JSON object of our version.
func (a *asker) raw(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	answer, err := a.open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil {
		return nil, a.unreached(err)
	}
	head := struct{ Version string }{}
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, fmt.Errorf("the daemon at %s gave half an answer: ask again (%s)", a.address, scanner.Clean(err.Error(), maxComplaint))
	}
	if head.Version != state.APIVersion {
		return nil, fmt.Errorf("the daemon at %s speaks version %s, this plugpoll %s: use the daemon's own", a.address, scanner.Quote(scanner.Clean(head.Version, 32)), state.APIVersion)
	}
	return []byte(strings.TrimSpace(string(content))), nil
}

// view is the daemon's View, and the JSON that it came as.
func (a *asker) view(ctx context.Context) (state.View, []byte, error) {
	content, err := a.raw(ctx, "/v1/view")
	if err != nil {
		return state.View{}, nil, err
	}
	var v state.View
	if err := json.Unmarshal(content, &v); err != nil {
		return state.View{}, nil, fmt.Errorf("the daemon at %s: %w", a.address, err)
	}
	return v, content, nil
}
