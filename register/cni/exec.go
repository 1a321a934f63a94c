package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/scanner"
)

const (
	// maxAnswer bounds what a plugin may write to its standard output, in bytes; one that writes more is ended.
	maxAnswer = 64 << 10
	// maxComplaint bounds what is kept of its standard error; the rest is read and dropped.
	maxComplaint = 4 << 10
	// holdDelay is how long a pipe is waited for that a process outside the plugin's group holds open.
	holdDelay = 200 * time.Millisecond
	// busyDelay is between two tries of a binary that is being written.
	busyDelay = 20 * time.Millisecond
)

// errAnswer says that a plugin wrote more than maxAnswer.
var errAnswer = fmt.Errorf("it writes more than %d bytes", maxAnswer)

// runner runs one network's plugins for libcni: bounded in time by the context, in output, and in processes by their group.
type runner struct {
	version.PluginDecoder
	network, cniVersion string
}

// FindInPath returns the path of a plugin's binary, or a *Missing.
func (r *runner) FindInPath(plugin string, dirs []string) (string, error) {
	path, m := find(afero.NewOsFs(), dirs, plugin)
	if m != nil {
		m.Networks = []string{r.network}
		return "", m
	}
	return path, nil
}

// ExecPlugin runs a plugin and returns what it wrote. Its errors are *StatusError.
func (r *runner) ExecPlugin(ctx context.Context, path string, stdin []byte, env []string) ([]byte, error) {
	fail := func(code uint, text string, err error) ([]byte, error) {
		return nil, &StatusError{Network: r.network, Plugin: filepath.Base(path), Path: path, Code: code, Text: text, Err: err}
	}
	out, complaint, err := run(ctx, path, stdin, env)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, errAnswer):
		return fail(0, errAnswer.Error(), err)
	case errors.Is(err, syscall.ETXTBSY):
		return fail(0, "its binary is being written", err)
	case ctx.Err() != nil:
		return fail(0, lateText(context.Cause(ctx)), context.Cause(ctx))
	case errors.Is(err, fs.ErrNotExist):
		return fail(0, "it cannot be run: "+scanner.Quote(path)+" is there, but not the interpreter or loader that it names", err)
	case !isExit(err):
		return fail(0, "it cannot be run: "+scanner.Clean(cause(err), maxText), err)
	}
	code, text, err := readFailure(out, complaint, err)
	if code != types.ErrPluginNotAvailable && code != types.ErrLimitedConnectivity {
		if older := olderText(path, r.cniVersion, text, r.supported(ctx, path)); older != "" {
			text = older
		}
	}
	return fail(code, text, err)
}

// readFailure reads what a plugin wrote that failed. Its error is the cause.
func readFailure(out, complaint []byte, exit error) (code uint, text string, err error) {
	failed := "it fails (" + exit.Error() + ")"
	complaint = bytes.TrimSpace(complaint)
	var said types.Error
	switch {
	case len(bytes.TrimSpace(out)) == 0 && len(complaint) == 0:
		return 0, failed + " and says nothing", exit
	case len(bytes.TrimSpace(out)) == 0:
		return 0, failed + ": " + scanner.Clean(string(complaint), maxText), exit
	case json.Unmarshal(out, &said) != nil:
		return 0, failed + " and answers what is not CNI: " + scanner.Clean(strings.TrimSpace(string(out)), maxText), exit
	}
	return said.Code, statusText(&said), &said
}

// supported asks a plugin for the versions that it supports. None: it does not say.
func (r *runner) supported(ctx context.Context, path string) []string {
	// Plugins of the first versions want to see something in each.
	args := invoke.Args{Command: "VERSION", NetNS: "none", IfName: "none", Path: filepath.Dir(path)}
	out, _, err := run(ctx, path, []byte(`{"cniVersion":"`+version.Current()+`"}`), args.AsEnv())
	if err != nil {
		return nil
	}
	info, err := r.Decode(out)
	if err != nil {
		return nil
	}
	return info.SupportedVersions()
}

func isExit(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// run runs a program in a process group of its own, all of which is gone when it returns.
func run(ctx context.Context, path string, stdin []byte, env []string) (out, complaint []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout := &bounded{max: maxAnswer, full: func() { cancel(errAnswer) }}
	stderr := &bounded{max: maxComplaint, full: func() {}}
	touch(path)
	cmd, err := start(ctx, func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, path)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, bytes.NewReader(stdin), stdout, stderr
		cmd.WaitDelay = holdDelay
		ownGroup(cmd)
		return cmd
	})
	if err != nil {
		return nil, nil, err
	}
	endGroup(cmd)
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and somebody else holds its pipes
	}
	if cause := context.Cause(ctx); errors.Is(cause, errAnswer) {
		err = cause
	}
	return stdout.bytes(), stderr.bytes(), err
}

// start starts a program. One that is being written is tried again until ctx ends.
func start(ctx context.Context, command func() *exec.Cmd) (*exec.Cmd, error) {
	for {
		cmd := command()
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) {
			return cmd, err
		}
		wait := time.NewTimer(busyDelay)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, err
		case <-wait.C:
		}
		if ctx.Err() != nil {
			return nil, err // exec would only say so
		}
	}
}

// bounded keeps the first bytes that are written to it, and takes all.
type bounded struct {
	max  int
	full func() // called when there are more

	mu   sync.Mutex // a pipe that is held open is read on after the program has ended
	kept []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := min(len(p), b.max-len(b.kept))
	b.kept = append(b.kept, p[:room]...)
	if room < len(p) {
		b.full()
	}
	return len(p), nil
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}
