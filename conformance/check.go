package conformance

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// atOnce is how many rules are checked at the same time, of those that may be.
const atOnce = 8

// Check checks rules, and gives their results in order. One that builds on a broken rule is skipped, since it would only say the same again; Rule.Check by itself
// does not know of others. Rules of a Registrar are checked several at a time, all others one after the other. It ends early if ctx does, with that error in the
// last Result.
func Check(ctx context.Context, rules []Rule) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		ahead, cancel := context.WithCancel(ctx)
		var beside sync.WaitGroup
		defer beside.Wait()
		defer cancel()
		v := newVerdicts(rules)
		results := make([]chan Result, len(rules))
		for i, r := range rules {
			results[i] = make(chan Result, 1)
			if r.apart {
				beside.Go(func() { results[i] <- v.result(ahead, r) })
			}
		}
		for i, r := range rules {
			if !r.apart {
				results[i] <- v.result(ctx, r)
			}
			if !yield(<-results[i]) || ctx.Err() != nil {
				return
			}
		}
	}
}

// verdicts are what is known of the rules that are being checked together.
type verdicts struct {
	places chan struct{}
	known  map[string]*verdict
}

// verdict is of one rule. broken may be read once done is closed.
type verdict struct {
	done   chan struct{}
	once   sync.Once
	broken bool
}

func (v *verdict) give(broken bool) {
	v.once.Do(func() {
		v.broken = broken
		close(v.done)
	})
}

func newVerdicts(rules []Rule) *verdicts {
	v := &verdicts{places: make(chan struct{}, atOnce), known: map[string]*verdict{}}
	for _, r := range rules {
		v.known[r.ID] = &verdict{done: make(chan struct{})}
	}
	return v
}

// result waits for what the rule builds on, which comes before it, and checks it.
func (v *verdicts) result(ctx context.Context, r Rule) (res Result) {
	broken := true // what builds on one that was not checked tells nothing either
	defer func() { v.known[r.ID].give(broken) }()
	if r.Skip != "" {
		broken = false
		return Result{Rule: r, Skipped: r.Skip}
	}
	for _, id := range r.needs {
		if on := v.known[id]; on != nil {
			<-on.done
			if on.broken {
				return Result{Rule: r, Skipped: id + " does not hold"}
			}
		}
	}
	v.places <- struct{}{}
	defer func() { <-v.places }()
	if ctx.Err() != nil {
		return Result{Rule: r, Err: ctx.Err()}
	}
	res = r.result(ctx)
	broken = res.Err != nil
	return res
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
// testing/synctest bubble, where there are no subtests, use Check. All subtests have ended when it returns.
func Test[T tester[T]](t T, rules []Rule) {
	t.Helper()
	v := newVerdicts(rules)
	_, parallel := any(t).(interface{ Parallel() }) // a *testing.T, whose Run may be called at the same time; that of a *testing.B may not
	var beside sync.WaitGroup
	defer beside.Wait()
	for _, r := range rules {
		test := func() {
			defer v.known[r.ID].give(false) // it may have been left out by the flag -run
			t.Run(r.ID, func(t T) {
				t.Helper()
				res := v.result(t.Context(), r)
				switch _, broken := errors.AsType[*Broken](res.Err); {
				case res.Skipped != "":
					t.Skip(res.Skipped)
				case broken:
					t.Errorf("%v\n%s", res.Err, r.Fix)
				case res.Err != nil:
					t.Errorf("%v", res.Err)
				}
			})
		}
		if r.apart && parallel {
			beside.Go(test)
			continue
		}
		test()
	}
}
