package register

import (
	"errors"
	"fmt"
	"strings"

	"github.com/plugpoll/plugpoll/scanner"
)

// ErrUnknownPath is returned by Retry for a path at which there is no socket.
var ErrUnknownPath = errors.New("no such socket is known")

// errNoConnection is the failure of a call over a connection that has been closed.
var errNoConnection = errors.New("the connection is closed")

// Error is a failed action on one socket.
type Error struct {
	// Verb is what was tried: "retry".
	Verb string
	Path string
	Err  error
}

// Error returns verb, quoted path and cause.
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Verb, scanner.Quote(e.Path), e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent marks an error of a handler as one that waiting does not mend: the socket is rejected, and tried again when it changes, on Retry, or after ten
// minutes (R13). Permanent(nil) is nil. The text is the error's own.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// StuckError is returned by Run when something did not end in time after its context had (S1). What it lists still runs.
type StuckError struct {
	// Calls says, one each, what is stuck and where.
	Calls []string
}

// Error lists the calls.
func (e *StuckError) Error() string {
	return fmt.Sprintf("register: stopped, but what follows did not end: %s", strings.Join(e.Calls, "; "))
}
