package register

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// This file keeps what a handler's code may do in our goroutines from harming more than its own plugin (R9).

const (
	maxStack  = 8 << 10  // bytes of a stack in the log
	maxDetail = 64 << 10 // bytes of a Report's Detail as JSON
)

var errGoexit = errors.New("it ended its goroutine (runtime.Goexit) and did not return")

// result is how a call of a handler ended. It holds a text and not the handler's error: to ask that for its text is a call of the handler's code too.
type result struct {
	err     error
	failure state.Failure
}

// guarded calls f, and give with the result however f ends: it returned, it panicked, or it ended the goroutine.
func guarded(f func() error, panicked func(stack []byte), give func(result)) {
	r := result{err: errGoexit}
	defer func() {
		if value := recover(); value != nil {
			r = result{err: panicError(value)}
			panicked(debug.Stack())
		}
		give(r)
	}()
	err := f()
	if err == nil {
		r.err = nil
		return
	}
	r = result{errors.New(scanner.Clean(err.Error(), maxErrorText)), failureOf(err)}
}

// panicError is the first line of what a panic says. fmt survives values whose methods panic.
func panicError(value any) error {
	text, _, _ := strings.Cut(fmt.Sprint(value), "\n")
	return errors.New("panic: " + scanner.Clean(text, maxErrorText))
}

// printPanic writes the stack of a handler's panic, for its author. It is Debug because it may come at each try (O1); the error is in the line of its failure.
func (l *loop) printPanic(verb, path string, stack []byte) {
	l.log.Debug("handler panicked", "verb", verb, "path", shown(path), "stack", hclog.Quote(scanner.Clean(string(stack), maxStack)))
}

// presentable makes the Detail of a report the JSON that it marshals to now: whoever made it may go on changing it. One that does not marshal, or is too
// large, is taken out: it would take the whole View with it.
func presentable(r state.Report) state.Report {
	if r.Detail == nil {
		return r
	}
	text, err := marshal(r.Detail)
	switch {
	case err != nil:
		r.Message = strings.TrimPrefix(r.Message+"; its detail cannot be shown: "+err.Error(), "; ")
	case len(text) > maxDetail:
		r.Message = strings.TrimPrefix(fmt.Sprintf("%s; its detail cannot be shown: %d bytes, more than %d", r.Message, len(text), maxDetail), "; ")
	default:
		r.Detail = text
		return r
	}
	r.Detail = nil
	return r
}

func marshal(detail any) (text json.RawMessage, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicError(value)
		}
	}()
	text, err = json.Marshal(detail)
	if err != nil {
		err = errors.New(scanner.Clean(err.Error(), maxErrorText))
	}
	return text, err
}
