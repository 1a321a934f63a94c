package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

const (
	// ruleTime bounds the check of one rule: it is long, because only what hangs needs it.
	ruleTime = time.Minute
	// hangGrace is how long a check may take to notice that its time is over.
	hangGrace = time.Second
	// maxSeen bounds the text of an error that a subject returned.
	maxSeen = 2048
)

// Rule is one duty of a subject. FS, Plugin, Handler and Registrar return those of theirs, in the order in which they are best checked.
type Rule struct {
	// ID is that of the promise in docs/contract.md which the rule is the other side of, as R16, or one of the suite's own: FS1, P1, H1. Where a suite has several
	// of one promise a word tells them apart, as R9-others. It stays as it is.
	ID string
	// Sentence says what must hold.
	Sentence string
	// Fix says what the subject's author can do if it does not.
	Fix string
	// Skip is why the rule is not checked; empty: it is. The subject has said that it lacks the rule, or has not what the check needs.
	Skip string

	needs []string // rules without which this one tells nothing
	check func(ctx context.Context) error
	see   func(ctx context.Context) (string, error) // in place of check: it also says what was seen where the rule holds
	apart bool                                      // it may be checked while others are, and gains from it, since it mostly waits
}

// Check returns nil if the subject keeps the rule, or the rule is skipped, a *Broken if it does not, and ctx's error if that ends before this is known. Any other
// error says why the check itself could not be made, as on a full disk. A subject that panics, or takes longer than a minute, breaks the rule; a call of it that
// does not return is left behind.
func (r Rule) Check(ctx context.Context) error { return r.result(ctx).Err }

// result is what comes of the rule by itself.
func (r Rule) result(ctx context.Context) Result {
	if r.Skip != "" {
		return Result{Rule: r, Skipped: r.Skip}
	}
	limited, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	seen, done := "", make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = panicked(v)
			}
			done <- err
		}()
		if r.see == nil {
			err = r.check(limited)
			return
		}
		seen, err = r.see(limited)
	}()
	err := await(limited, done)
	if err == nil {
		return Result{Rule: r, Seen: seen}
	}
	if ctx.Err() != nil {
		return Result{Rule: r, Err: ctx.Err()}
	}
	if limited.Err() != nil && errors.Is(err, limited.Err()) {
		err = fmt.Errorf("it was not over after %v: %w", ruleTime, err)
	}
	if lack, ok := errors.AsType[lacking](err); ok {
		return Result{Rule: r, Skipped: string(lack)}
	}
	if ours, ok := errors.AsType[fault](err); ok {
		return Result{Rule: r, Err: ours}
	}
	return Result{Rule: r, Err: &Broken{Rule: r, Seen: err}}
}

// lacking is why a rule turned out not to be checkable here: what the system refuses is known only once it was asked.
type lacking string

func (l lacking) Error() string { return string(l) }

// fault is an error of what a check does itself, which is none of the subject's.
type fault struct{ error }

func (f fault) Error() string { return "the check could not be made: " + f.error.Error() }

func (f fault) Unwrap() error { return f.error }

var (
	errGoexit = errors.New("it ended its goroutine (runtime.Goexit) and did not return")
	errHangs  = errors.New("a call did not return, and runs on")
)

// panicked is the error of a panic that is being recovered from, and where in the code it was.
func panicked(v any) error {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for began, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		began = began || f.Function == "runtime.gopanic"
		if began && f.File != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Errorf("panic: %v (%s:%d)", v, filepath.Base(f.File), f.Line)
		}
	}
	return fmt.Errorf("panic: %v", v)
}

// await returns what comes of done; after the end of ctx it waits for hangGrace.
func await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(hangGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
		return errHangs
	}
}

// Broken is a rule that a subject does not keep.
type Broken struct {
	Rule Rule
	// Seen is what was seen instead.
	Seen error
}

// Error says what was seen, and which sentence it breaks. It is one line without control characters.
func (b *Broken) Error() string {
	return fmt.Sprintf("%s: %s. That breaks: %s", b.Rule.ID, b.Text(), b.Rule.Sentence)
}

// Text is what was seen, in one line without control characters.
func (b *Broken) Text() string { return scanner.Clean(b.Seen.Error(), maxSeen) }

// Unwrap returns Seen.
func (b *Broken) Unwrap() error { return b.Seen }

// Result is what came of one rule.
type Result struct {
	Rule Rule
	// Err is nil if the rule holds, or was skipped; else as from Rule.Check.
	Err error
	// Seen is what was seen of a rule that holds, as how long something took. Most rules say nothing.
	Seen string
	// Skipped is why the rule was not checked: its Skip, or the rule that it builds on and that does not hold. Empty: it was checked.
	Skipped string
}

// without marks the rules that a subject says it lacks.
func without(rules []Rule, lacks []string) []Rule {
	for i, r := range rules {
		if slices.Contains(lacks, r.ID) {
			rules[i].Skip = "the subject says that it lacks this"
		}
	}
	return rules
}
