package plugpoll_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestREADME keeps the README's program and commands what they are elsewhere: the tested Example of package register, and targets of the Makefile.
func TestREADME(t *testing.T) {
	readme, example, makefile := read(t, "README.md"), read(t, "register/example_test.go"), read(t, "Makefile")
	_, body, found := strings.Cut(example, "func Example() {\n")
	body, _, closed := strings.Cut(body, "\t// Output:")
	if !found || !closed {
		t.Fatal("register/example_test.go has no Example with an Output")
	}
	if n := strings.Count(strings.ReplaceAll(body, "\n\n", "\n"), "\n"); n > 15 {
		t.Errorf("the Example has %d lines, more than 15", n)
	}
	if body = regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, ""); !strings.Contains(readme, "```go\n"+body+"```") {
		t.Errorf("the README's program is not the Example of package register:\n%s", body)
	}
	for _, command := range regexp.MustCompile(`(?m)^    make (\w+)`).FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(makefile, "\n"+command[1]+":") {
			t.Errorf("the README says make %s, which the Makefile does not have", command[1])
		}
	}
}

// TestCNIDocument keeps the program of docs/cni.md what it is elsewhere: the tested Example of package cni.
func TestCNIDocument(t *testing.T) {
	document, example := read(t, "docs/cni.md"), read(t, "register/cni/example_test.go")
	_, body, found := strings.Cut(example, "func Example() {\n")
	body, _, closed := strings.Cut(body, "\t// Output:")
	if !found || !closed {
		t.Fatal("register/cni/example_test.go has no Example with an Output")
	}
	if n := strings.Count(strings.ReplaceAll(body, "\n\n", "\n"), "\n"); n > 15 {
		t.Errorf("the Example has %d lines, more than 15", n)
	}
	if body = regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, ""); !strings.Contains(document, "```go\n"+body+"```") {
		t.Errorf("the program of docs/cni.md is not the Example of package cni:\n%s", body)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
