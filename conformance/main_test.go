package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/plugpoll/plugpoll/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ruleOf is the rule that a subject breaks: what follows a slash tells apart those that break the same one.
func ruleOf(breaker string) string {
	id, _, _ := strings.Cut(breaker, "/")
	return id
}

// bites runs a suite on a subject that breaks one rule on purpose, and wants that rule broken and no other; empty: none.
func bites(t *testing.T, rules []conformance.Rule, want string) {
	t.Helper()
	for res := range conformance.Check(t.Context(), rules) {
		broken, ok := errors.AsType[*conformance.Broken](res.Err)
		switch id := res.Rule.ID; {
		case res.Err != nil && !ok:
			t.Errorf("%s: %v, which is no *Broken", id, res.Err)
		case res.Err != nil && id != want:
			t.Errorf("a subject that breaks %q breaks %s too: %v", want, id, res.Err)
		case res.Err == nil && id == want:
			t.Errorf("a subject that breaks %s on purpose keeps it (skipped: %q)", id, res.Skipped)
		case res.Err != nil:
			t.Log(broken)
		case want == "" && res.Skipped != "":
			t.Errorf("%s is skipped: %s", id, res.Skipped)
		}
	}
}

// complete wants a subject that breaks each of the rules, and rules with all their texts.
func complete(t *testing.T, rules []conformance.Rule, breakers []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.ID] {
			t.Errorf("two rules have the id %s", r.ID)
		}
		seen[r.ID] = true
		if r.Sentence == "" || r.Fix == "" {
			t.Errorf("%s has no sentence, or does not say what to do", r.ID)
		}
		if !slices.ContainsFunc(breakers, func(b string) bool { return ruleOf(b) == r.ID }) {
			t.Errorf("no subject breaks %s on purpose", r.ID)
		}
	}
}
