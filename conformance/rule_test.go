package conformance

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A subject may do what it likes: the suite goes on, and says what it did.
func TestRuleCheck(t *testing.T) {
	stuck := make(chan struct{})
	for name, test := range map[string]struct {
		check func(context.Context) error
		want  string // of the *Broken; empty: none
	}{
		"holds":  {func(context.Context) error { return nil }, ""},
		"broken": {func(context.Context) error { return errors.New("it is\nred") }, `X: it is\nred. That breaks: It is green.`},
		"panics": {func(context.Context) error { panic("oops") }, "X: panic: oops (rule_test.go:22). That breaks: It is green."},
		"ends": {func(context.Context) error {
			runtime.Goexit()
			return nil
		}, "X: it ended its goroutine (runtime.Goexit) and did not return. That breaks"},
		"obeys": {func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "X: it was not over after 1m0s: context deadline exceeded. That breaks"},
		"hangs": {func(context.Context) error {
			<-stuck
			return nil
		}, "X: a call did not return, and runs on. That breaks"},
		"skipped": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck = make(chan struct{})
				defer close(stuck)
				r := Rule{ID: "X", Sentence: "It is green.", check: test.check}
				if test.check == nil {
					r.Skip = "why not"
				}
				err := r.Check(t.Context())
				if test.want == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				broken, ok := errors.AsType[*Broken](err)
				if !ok || !strings.HasPrefix(broken.Error(), test.want) {
					t.Errorf("got %v, want %s", err, test.want)
				}
			})
		})
	}
}

// What is stopped is neither broken nor holds.
func TestCheckEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waits := Rule{ID: "A", check: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		n := 0
		for res := range Check(ctx, []Rule{waits, waits}) {
			n++
			if _, broken := errors.AsType[*Broken](res.Err); broken || !errors.Is(res.Err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's error", res.Err)
			}
		}
		if n != 1 {
			t.Errorf("%d results, want 1", n)
		}
	})
}

// A rule that builds on a broken one is not checked, nor one that builds on that.
func TestCheckSkipsWhatBuildsOnBroken(t *testing.T) {
	holds := func(context.Context) error { return nil }
	rules := []Rule{
		{ID: "A", check: func(context.Context) error { return errors.New("red") }},
		{ID: "B", check: holds, needs: []string{"A"}},
		{ID: "C", check: holds, needs: []string{"B"}},
		{ID: "D", check: holds},
	}
	want := map[string]string{"A": "", "B": "A does not hold", "C": "B does not hold", "D": ""}
	for res := range Check(t.Context(), rules) {
		if res.Skipped != want[res.Rule.ID] || (res.Err != nil) != (res.Rule.ID == "A") {
			t.Errorf("%s: skipped %q, error %v", res.Rule.ID, res.Skipped, res.Err)
		}
	}
}
