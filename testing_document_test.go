package plugpoll_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/register/record"
)

// TestTestingDocument keeps the programs of docs/testing.md what they are elsewhere: tests and Examples that are run.
func TestTestingDocument(t *testing.T) {
	document, tested := read(t, "docs/testing.md"), read(t, "conformance/testing_test.go")+read(t, "register/cni/example_test.go")
	programs := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(document, -1)
	if len(programs) != 7 {
		t.Errorf("docs/testing.md has %d programs, want one for each of seven readers", len(programs))
	}
	for _, p := range programs {
		if !strings.Contains(tested, strings.TrimSuffix(p[1], "}\n")) {
			t.Errorf("a program of docs/testing.md is none of conformance/testing_test.go and register/cni/example_test.go:\n%s", p[1])
		}
		if n := strings.Count(p[1], "\n"); n >= 25 {
			t.Errorf("a program has %d lines, want less than 25:\n%s", n, p[1])
		}
	}
	commands := regexp.MustCompile(`(?m)^    plugpoll (\w+)`).FindAllStringSubmatch(document, -1)
	if len(commands) == 0 {
		t.Error("docs/testing.md has no command")
	}
	for _, c := range commands {
		if !strings.Contains(read(t, "cmd/plugpoll/testdata/script/check.txtar"), "exec plugpoll "+c[1]+" ") {
			t.Errorf("no script runs plugpoll %s", c[1])
		}
	}
}

// TestTestingDocumentRules keeps its tables what the suites are.
func TestTestingDocumentRules(t *testing.T) {
	var want []string
	for _, r := range slices.Concat(
		conformance.Plugin(conformance.PluginSubject{}),
		conformance.FS(conformance.FSSubject{}),
		conformance.Handler(conformance.HandlerSubject{Handler: record.Handler{}}),
		conformance.Registrar(conformance.RegistrarSubject{}),
	) {
		want = append(want, "| "+r.ID+" | "+r.Sentence+" |")
	}
	got := regexp.MustCompile(`(?m)^\| [A-Z]+\d+(?:-[a-z]+)? \| .* \|$`).FindAllString(read(t, "docs/testing.md"), -1)
	if !slices.Equal(got, want) {
		t.Errorf("docs/testing.md has other rules than the suites:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
