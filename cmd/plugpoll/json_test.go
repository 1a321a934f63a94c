package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are texts that a terminal would obey if they came to it as they are.
var hostile = []string{
	"x\u009b31mred", "\u0085\u0090\u009d\u009f", "\x1b[31m\x00\x7f", "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", "\u2028\u2029\ufeff\u00a0\u00ad",
	"\U000e0001\U0010ffff\ue000", `\` + "\u009b", `\\` + "\u202e\"", "<&>", "ü 漢 😀 \ufffd", "", "a\r\n\tb",
}

// TestPrintJSON: what is printed is printable text and a newline, and means the same (D10).
func TestPrintJSON(t *testing.T) {
	for _, text := range hostile {
		want := map[string]string{"key " + text: text}
		var out bytes.Buffer
		if err := printJSON(&out, want); err != nil {
			t.Fatal(err)
		}
		checkPrintable(t, out.String())
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 1 || got["key "+text] != text {
			t.Errorf("%q decodes to %q (%v), want %q", out.String(), got, err, want)
		}
	}
	for value, want := range map[any]string{
		"x\u009b31m":         `"x\u009b31m"`,
		"\U000e0001":         `"\udb40\udc01"`,
		"<ü😀>":               `"<ü😀>"`,
		json.Number("1"):     `1`,
		"\xff":               `"\ufffd"`,
		rawJSON("\"\xff!\""): "\"\\ufffd!\"",
	} {
		var out bytes.Buffer
		if err := printJSON(&out, value); err != nil || out.String() != want+"\n" {
			t.Errorf("%q is printed as %q (%v), want %q", value, out.String(), err, want)
		}
	}
	if err := printJSON(&bytes.Buffer{}, func() {}); err == nil {
		t.Error("a function is printed")
	}
}

// rawJSON marshals as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func checkPrintable(t *testing.T, line string) {
	t.Helper()
	body, ok := strings.CutSuffix(line, "\n")
	if !ok || !utf8.ValidString(body) || strings.ContainsFunc(body, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Errorf("%q is not a line of printable text", line)
	}
}

// TestLogIsPrintable: neither form of the log hands a terminal what a file name says (D10).
func TestLogIsPrintable(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		log, queue := newLogger(f, "info", format)
		for _, text := range hostile {
			log.Info("hello", "path", shown(text))
		}
		queue.close(patience)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")
		lines[len(lines)-1] += "\n"
		if len(lines) != len(hostile) {
			t.Errorf("%s: %d lines, want %d:\n%s", format, len(lines), len(hostile), content)
			continue
		}
		for i, line := range lines {
			checkPrintable(t, line)
			if format == "json" {
				var got struct{ Path string }
				if err := json.Unmarshal([]byte(line), &got); err != nil || got.Path != hostile[i] {
					t.Errorf("%q has the path %q (%v), want %q", line, got.Path, err, hostile[i])
				}
			}
		}
	}
}
