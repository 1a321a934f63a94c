package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
)

// keepAway is a usageError if a live kubelet serves one of the roots (X4): two that register the same plugins take them from each other.
func keepAway(ctx context.Context, roots []scanner.Config, log hclog.Logger) error {
	var errs []error
	for _, r := range roots {
		socket, err := kubeletOf(ctx, r.Root, connect)
		switch {
		case socket != "":
			errs = append(errs, fmt.Errorf("--dir %s: a kubelet serves it, %s answers: give --observe to look on, or --exclusive to register its plugins all the same",
				scanner.Quote(r.Root), scanner.Quote(socket)))
		case err != nil:
			log.Warn("cannot tell whether a kubelet serves the directory, starting all the same", "path", shown(r.Root), "error", shown(err.Error()))
		}
	}
	return usage(errs...)
}

// kubeletSockets are where a kubelet that serves dir listens: one for device plugins has its socket among them, and one for plugins_registry in the
// directory beside it; one for all of them, as /var/lib/kubelet, has both below it. If dir is a link, there is one beside the link and one beside what it leads to.
func kubeletSockets(dir string) []string {
	sep := string(filepath.Separator)
	inside := strings.TrimRight(dir, sep) + sep
	beside := filepath.Join("device-plugins", "kubelet.sock")
	return []string{
		inside + "kubelet.sock",
		inside + beside,
		filepath.Join(filepath.Dir(filepath.Clean(dir)), beside),
		inside + ".." + sep + beside,
	}
}

// kubeletOf returns the socket at which a live kubelet that serves dir listens. Else an error says why one cannot be ruled out.
func kubeletOf(ctx context.Context, dir string, connect func(context.Context, string) error) (socket string, unsure error) {
	for _, path := range kubeletSockets(dir) {
		live, err := answers(ctx, path, connect)
		if live {
			return path, nil
		}
		if err != nil {
			unsure = errors.Join(unsure, fmt.Errorf("%s: %w", scanner.Quote(path), bare(err)))
		}
	}
	return "", unsure
}

// answers reports whether somebody listens at path. Who takes longer than acceptTimeout to accept does; a filesystem that takes so long tells nothing.
func answers(ctx context.Context, path string, connect func(context.Context, string) error) (live bool, unsure error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	type result struct {
		*held
		error
	}
	found := make(chan result, 1)
	go func() { // a call of the filesystem cannot be given up otherwise
		h, err := hold(path, true)
		found <- result{h, err}
	}()
	var r result
	select {
	case r = <-found:
	case <-ctx.Done():
		return false, fmt.Errorf("looking at it takes longer than %v", acceptTimeout)
	}
	err := r.error
	if err == nil {
		defer r.close()
		if r.info.Mode().Type() != fs.ModeSocket {
			return false, nil
		}
		err = connect(ctx, r.address)
	}
	switch {
	case err == nil, isTimeout(err), errors.Is(err, syscall.EAGAIN): // EAGAIN: its backlog is full
		return true, nil
	case refused(err), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	}
	return false, err
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func connect(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
