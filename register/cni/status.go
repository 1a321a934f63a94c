package cni

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// askStatus runs the STATUS verb of the networks of cniVersion 1.1.0 and later, one plugin after the other, and returns the first error: nil says
// that all are ready. It holds no lock and returns when ctx ends (CN12), unless a process cannot be ended or a filesystem does not answer: the caller is not to wait for it.
// No process of a plugin's process group is left.
//
// A plugin that does not know STATUS is not ready, as for every caller of libcni. STATUS came with cniVersion 1.1.0, and a plugin that is older than
// that refuses an ADD of this version as well: its VERSION is asked, and the error says so. Those of a network of an older cniVersion are not run.
func askStatus(ctx context.Context, dirs []string, networks []network) error {
	for _, n := range networks {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("STATUS of network %s was not asked: %w", shown(n.name), context.Cause(ctx))
		}
		// libcni may be given the same directories by several: it does not write to them.
		err := libcni.NewCNIConfig(dirs, &runner{network: n.name, cniVersion: n.cniVersion}).GetStatusNetworkList(ctx, n.list)
		if err != nil {
			return err
		}
	}
	return nil
}

// lateError is the cause of an asking's end that has had its time.
type lateError struct{ timeout time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("no answer within %v, the time of all plugins together", e.timeout)
}

func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// lateText is the text of a plugin that was ended before it had answered.
func lateText(cause error) string {
	if late, ok := errors.AsType[*lateError](cause); ok {
		return fmt.Sprintf("it did not answer within %v, the time of all plugins together", late.timeout)
	}
	return "it did not answer in time"
}

// statusText is the text of what a plugin says in the form of CNI.
func statusText(e *types.Error) string {
	text := e.Msg
	if e.Details != "" {
		text += "; " + e.Details
	}
	text = scanner.Clean(text, maxText)
	if text == "" {
		text = "it fails and does not say why"
	}
	if e.Code != 0 {
		text = fmt.Sprintf("%s (code %d)", text, e.Code)
	}
	return text
}

// olderText is the text of a plugin that is made for an older CNI than it is asked in, by the versions that it says it supports; empty if it is not.
// What such a plugin answers to STATUS depends on its age, and not on STATUS: "missing containerID", "unknown CNI_COMMAND: STATUS".
func olderText(path, asked, answer string, supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, asked) {
		return ""
	}
	newest := ""
	for _, v := range version.All.SupportedVersions() {
		if slices.Contains(supported, v) {
			newest = v
		}
	}
	fix := "install a newer one"
	text := scanner.Quote(path) + " does not support cniVersion " + asked
	if newest != "" {
		text += ", only up to " + newest
		fix += ", or set the network's cniVersion to " + newest
	}
	return text + ", and has no good answer to STATUS: " + answer + "; " + fix
}
