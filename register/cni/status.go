package cni

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/plugpoll/plugpoll/scanner"
)

// StatusError is a plugin's answer to STATUS that says it is not ready, or why there is no answer (CN12).
type StatusError struct {
	Network string
	// Plugin is its type, Path its binary.
	Plugin, Path string
	// Code is CNI's. 0: the plugin gave none.
	Code uint
	// Text is one line without control characters, of bounded length.
	Text string
	// Err is the cause, as a context's that ended.
	Err error
}

// Error returns one line.
func (e *StatusError) Error() string {
	return fmt.Sprintf("STATUS of plugin %s of network %s: %s", shown(e.Plugin), shown(e.Network), e.Text)
}

// Unwrap returns Err.
func (e *StatusError) Unwrap() error { return e.Err }

// errStuck is returned when a process cannot be ended, or a filesystem call does not return: a goroutine waits for it, and ends with it.
var errStuck = errors.New("it does not end")

// stuckAfter is how long askStatus waits, after its context ended, for what it has ended.
const stuckAfter = 800 * time.Millisecond

// askStatus runs the STATUS verb of the networks of cniVersion 1.1.0 and later, one plugin after the other, and returns the first error: nil says
// that all are ready. It holds no lock and returns within a second after ctx ends (CN12). No process of a plugin's process group is left.
//
// A plugin that does not know STATUS is not ready, as for every caller of libcni: its binary is for an older CNI, and refuses an ADD of this
// cniVersion as well. One that is asked only for an older cniVersion is not run at all.
func askStatus(ctx context.Context, dirs []string, networks []network) error {
	return within(ctx, func() error { return askAll(ctx, dirs, networks) })
}

// within returns what ask does, or errStuck if it goes on for stuckAfter after ctx ended.
func within(ctx context.Context, ask func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- ask() }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	stuck := time.NewTimer(stuckAfter)
	defer stuck.Stop()
	select {
	case err := <-answer:
		return err
	case <-stuck.C:
		return fmt.Errorf("STATUS: %w: %w", context.Cause(ctx), errStuck)
	}
}

func askAll(ctx context.Context, dirs []string, networks []network) error {
	for _, n := range networks {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("STATUS of network %s was not asked: %w", shown(n.name), context.Cause(ctx))
		}
		// libcni may be given the same directories by several: it does not write to them.
		err := libcni.NewCNIConfig(dirs, &runner{network: n.name}).GetStatusNetworkList(ctx, n.list)
		if err != nil {
			return err
		}
	}
	return nil
}

// statusText is the text of what a plugin says in the form of CNI.
func statusText(e *types.Error, path string) string {
	text := e.Msg
	if e.Details != "" {
		text += "; " + e.Details
	}
	text = scanner.Clean(text, maxText)
	unknown := e.Code == types.ErrInvalidEnvironmentVariables && strings.Contains(e.Msg, "unknown CNI_COMMAND")
	if unknown || e.Code == types.ErrIncompatibleCNIVersion {
		return fmt.Sprintf("%s is made for a CNI older than the configuration's cniVersion (%s); install a newer one, or lower the cniVersion below %s",
			scanner.Quote(path), text, version.Current())
	}
	if text == "" {
		text = "it fails and does not say why"
	}
	if e.Code != 0 {
		text = fmt.Sprintf("%s (code %d)", text, e.Code)
	}
	return text
}
