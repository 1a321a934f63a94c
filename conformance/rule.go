package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// Rule is one duty of a subject. FS, Plugin and Handler return those of theirs, in the order in which they are best checked.
type Rule struct {
	// ID is that of the promise in docs/contract.md which the rule is the other side of, as R16, or one of the suite's own: FS1, P1, H1. It stays as it is.
	ID string
	// Sentence says what must hold.
	Sentence string
	// Fix says what the subject's author can do if it does not.
	Fix string
	// Skip is why the rule is not checked; empty: it is. The subject has said that it lacks the rule, or has not what the check needs.
	Skip string

	needs []string // rules without which this one tells nothing
	check func(ctx context.Context) error
}

// Check returns nil if the subject keeps the rule, or the rule is skipped, a *Broken if it does not, and ctx's error if that ends before this is known. A
// subject that panics, or takes longer than a minute, breaks the rule; a call of it that does not return is left behind.
func (r Rule) Check(ctx context.Context) error {
	if r.Skip != "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
			done <- err
		}()
		err = r.check(limited)
	}()
	err := await(limited, done)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &Broken{Rule: r, Seen: err}
}

var (
	errGoexit = errors.New("it ended its goroutine (runtime.Goexit) and did not return")
	errHangs  = errors.New("a call did not return, and runs on")
)

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
	// Skipped is why the rule was not checked: its Skip, or the rule that it builds on and that does not hold. Empty: it was checked.
	Skipped string
}

// Check checks rules one after the other. One that builds on a broken rule is skipped, since it would only say the same again; Rule.Check by itself does not know
// of others. It ends early if ctx does, with that error in the last Result.
func Check(ctx context.Context, rules []Rule) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		broken := map[string]bool{}
		for _, r := range rules {
			res := checkOne(ctx, r, broken)
			if !yield(res) || ctx.Err() != nil {
				return
			}
		}
	}
}

func checkOne(ctx context.Context, r Rule, broken map[string]bool) Result {
	if r.Skip != "" {
		return Result{Rule: r, Skipped: r.Skip}
	}
	for _, id := range r.needs {
		if broken[id] {
			broken[r.ID] = true // what builds on this one tells nothing either
			return Result{Rule: r, Skipped: id + " does not hold"}
		}
	}
	err := r.Check(ctx)
	broken[r.ID] = err != nil
	return Result{Rule: r, Err: err}
}

// tester is the part of *testing.T that Test needs: this package is linked by the command, and testing must not be.
type tester[T any] interface {
	Helper()
	Context() context.Context
	Run(name string, f func(T)) bool
	Errorf(format string, args ...any)
	Skip(args ...any)
}

// Test runs each rule as a subtest named by its id, which fails with what was seen, the sentence that this breaks, and what to do. t is a *testing.T or *testing.B. Inside a
// testing/synctest bubble, where there are no subtests, use Check.
func Test[T tester[T]](t T, rules []Rule) {
	t.Helper()
	broken := map[string]bool{}
	for _, r := range rules {
		t.Run(r.ID, func(t T) {
			t.Helper()
			switch res := checkOne(t.Context(), r, broken); {
			case res.Skipped != "":
				t.Skip(res.Skipped)
			case res.Err != nil:
				t.Errorf("%v\n%s", res.Err, r.Fix)
			}
		})
	}
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
