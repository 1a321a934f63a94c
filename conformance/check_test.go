package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// apartRule is one that takes a second.
func apartRule(id string, needs ...string) Rule {
	return Rule{ID: id, apart: true, needs: needs, see: func(ctx context.Context) (string, error) { return "a second", pause(ctx, time.Second) }}
}

// Rules that may be checked beside others are, but after what they build on; the results come in order.
func TestCheckApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []Rule{apartRule("A")}
		for _, id := range []string{"B", "C", "D", "E", "F"} {
			rules = append(rules, apartRule(id, "A"))
		}
		began := time.Now()
		var ids []string
		for res := range Check(t.Context(), rules) {
			if res.Err != nil || res.Skipped != "" || res.Seen != "a second" {
				t.Errorf("%+v", res)
			}
			ids = append(ids, res.Rule.ID)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v, want one second for the first and one for the others", took)
		}
		if want := []string{"A", "B", "C", "D", "E", "F"}; !slices.Equal(ids, want) {
			t.Errorf("the order was %v", ids)
		}
	})
}

// Not more than atOnce are.
func TestCheckApartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		r := Rule{apart: true, check: func(ctx context.Context) error {
			defer now.Add(-1)
			most.Store(max(most.Load(), now.Add(1)))
			return pause(ctx, time.Second)
		}}
		var rules []Rule
		for i := range 3 * atOnce {
			r.ID = string(rune('A' + i))
			rules = append(rules, r)
		}
		for range Check(t.Context(), rules) {
		}
		if most.Load() != atOnce {
			t.Errorf("%d at once, want %d", most.Load(), atOnce)
		}
	})
}

// A broken rule has those skipped that build on it; whoever stops to listen has all others ended.
func TestCheckApartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := Rule{ID: "A", apart: true, check: func(context.Context) error { return errors.New("red") }}
		for res := range Check(t.Context(), []Rule{broken, apartRule("B", "A"), apartRule("C", "B")}) {
			if (res.Err != nil) != (res.Rule.ID == "A") || (res.Skipped != "") != (res.Rule.ID != "A") {
				t.Errorf("%+v", res)
			}
		}
		began := time.Now()
		for range Check(t.Context(), []Rule{{ID: "A", apart: true, check: func(context.Context) error { return nil }}, apartRule("B"), apartRule("C")}) {
			break
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it went on for %v", took)
		}
	})
}

// What turns out to be lacking is skipped, and what is the check's own fault breaks no rule.
func TestCheckLackAndFault(t *testing.T) {
	full := errors.New("the disk is full")
	lacks := Rule{ID: "A", check: func(context.Context) error { return lacking("there is no mount") }}
	fails := Rule{ID: "B", check: func(context.Context) error { return fault{full} }}
	var results []Result
	for res := range Check(t.Context(), []Rule{lacks, fails}) {
		results = append(results, res)
	}
	if results[0].Err != nil || results[0].Skipped != "there is no mount" {
		t.Errorf("%+v", results[0])
	}
	if _, broken := errors.AsType[*Broken](results[1].Err); broken || !errors.Is(results[1].Err, full) {
		t.Errorf("%+v", results[1])
	}
}

// With the flag -run a rule may be left out that others build on.
func TestTestWithoutNeeded(t *testing.T) {
	a, b := apartRule("A"), Rule{ID: "B", needs: []string{"A"}, check: func(context.Context) error { return nil }}
	v := newVerdicts([]Rule{a, b})
	v.known["A"].give(false) // as Test does when its subtest was not run
	if res := v.result(t.Context(), b); res.Err != nil || res.Skipped != "" {
		t.Errorf("%+v", res)
	}
}

// Test runs rules at once, and has ended them all when it returns.
func TestTestApart(t *testing.T) {
	var inside, ended atomic.Int64
	both := make(chan struct{})
	meets := Rule{apart: true, check: func(ctx context.Context) error {
		defer ended.Add(1)
		if inside.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	a, b := meets, meets
	a.ID, b.ID = "A", "B"
	Test(t, []Rule{a, b})
	if ended.Load() != 2 {
		t.Errorf("%d have ended when Test returns, want 2", ended.Load())
	}
}

// noted is a test that keeps what it is told.
type noted struct{ errs []string }

func (n *noted) Helper()                           {}
func (n *noted) Context() context.Context          { return context.Background() }
func (n *noted) Run(_ string, f func(*noted)) bool { f(n); return true }
func (n *noted) Errorf(format string, args ...any) {
	n.errs = append(n.errs, fmt.Sprintf(format, args...))
}
func (n *noted) Skip(...any) {}

// What to do is said of a broken rule, and not where the check itself could not be made.
func TestTestSaysWhatToDo(t *testing.T) {
	var n noted
	Test(&n, []Rule{
		{ID: "A", Sentence: "It is green.", Fix: "Paint it.", check: func(context.Context) error { return errors.New("red") }},
		{ID: "B", Sentence: "It is green.", Fix: "Paint it.", check: func(context.Context) error { return fault{errors.New("no light")} }},
	})
	if want := []string{"A: red. That breaks: It is green.\nPaint it.", "the check could not be made: no light"}; !slices.Equal(n.errs, want) {
		t.Errorf("%q, want %q", n.errs, want)
	}
}
