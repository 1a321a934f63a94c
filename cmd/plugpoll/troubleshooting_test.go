package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting keeps docs/troubleshooting.md and the causes together: each has one heading, and a test that brings it about.
func TestTroubleshooting(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	document := read("../../docs/troubleshooting.md")
	tests := read("why_test.go") + read("whycni_test.go") + read("overlay_linux_test.go")
	constants := regexp.MustCompile(`(?m)^\t(\w+) +cause = "([a-z-]+)"$`).FindAllStringSubmatch(read("cause.go"), -1)
	if len(constants) < 30 {
		t.Fatalf("only %d causes were found", len(constants))
	}
	for _, c := range constants {
		if n := strings.Count(document, "\n### `"+c[2]+"`"); n != 1 {
			t.Errorf("docs/troubleshooting.md has %d headings for `%s`", n, c[2])
		}
		if !regexp.MustCompile(`(\{|cause: )` + c[1] + `,|, ` + c[1] + `,`).MatchString(tests) {
			t.Errorf("no test brings %s about", c[1])
		}
		document = strings.ReplaceAll(document, "\n### `"+c[2]+"`", "")
	}
	if rest := regexp.MustCompile("(?m)^### .*").FindString(document); rest != "" {
		t.Errorf("a heading is no cause: %s", rest)
	}
}

// TestREADMEWhy keeps what the README shows of why what it says: of the same plugin, but for the times.
func TestREADMEWhy(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "    $ plugpoll why gpu.example.com\n")
	shown, _, found := strings.Cut(shown, "\n\n")
	if !found {
		t.Fatal("README.md does not show plugpoll why gpu.example.com")
	}
	for _, s := range scenes {
		if s.cause != badVersion || !strings.Contains(strings.Join(s.says, ""), "DRAPlugin") {
			continue
		}
		n, asked := s.play(t)
		got := n.why(asked).folded
		plain := func(text string) string {
			text = strings.ReplaceAll(strings.ReplaceAll(text, n.dir, "/run/plugins"), "demo.example.com", "gpu.example.com")
			text = strings.ReplaceAll(text, "/run/plugins/"+filepath.Base(asked), "/run/plugins/gpu.sock")
			text = regexp.MustCompile(`\d+ tr(y has|ies have)`).ReplaceAllString(text, "N tries have")
			text = regexp.MustCompile(`[0-9.]+ s\b`).ReplaceAllString(text, "N s")
			return strings.Join(strings.Fields(text), " ")
		}
		if plain(shown) != plain(got) {
			t.Errorf("the README shows\n%s\nwhy says\n%s", plain(shown), plain(got))
		}
		return
	}
	t.Error("no scene is like the README's")
}
