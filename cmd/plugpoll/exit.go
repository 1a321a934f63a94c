package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/register/cni"
	"github.com/plugpoll/plugpoll/scanner"
)

// The exit codes. They are in the help of the root command and stay as they are.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitStuck    = 3
	exitNeeds    = 4
	exitNotReady = 5
)

// maxComplaint bounds a line on stderr: errors may carry what other processes said.
const maxComplaint = 4096

// usageError is a mistake in the command line, found before anything has started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef is a usageError from a format.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// usage joins what is wrong with a command line, nil if nothing is.
func usage(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}

// saidError is one that was complained of already.
type saidError struct{ error }

func (e saidError) Unwrap() error { return e.error }

func said(err error) error {
	if err == nil {
		return nil
	}
	return saidError{err}
}

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if isStuck(err) {
		return exitStuck
	}
	if a, ok := errors.AsType[attentionError](err); ok {
		return a.code()
	}
	return exitFailed
}

// isStuck reports whether something did not end when it was stopped.
func isStuck(err error) bool {
	_, plugins := errors.AsType[*register.StuckError](err)
	_, network := errors.AsType[*cni.StuckError](err)
	return plugins || network
}

// complain prints each error once, one line each.
func complain(w io.Writer, err error) {
	if _, ok := errors.AsType[saidError](err); ok {
		return
	}
	if needsAttention(err) {
		return // what was printed says more
	}
	for _, e := range flatten(err) {
		text := e.Error()
		for _, own := range []string{"register: ", "cni: ", "scanner: "} {
			text = strings.TrimPrefix(text, own)
		}
		_, _ = fmt.Fprintf(w, "plugpoll: %s\n", scanner.Clean(text, maxComplaint))
	}
}

// flatten takes joined errors apart, at the outermost layers only: what is wrapped in a sentence belongs to it.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if u, ok := err.(usageError); ok { //nolint:errorlint // the outermost layer is meant
		return flatten(u.error)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
