package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"sigs.k8s.io/yaml"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/state"
)

// quiet guards the log of a test.
var quiet sync.Mutex

// obeyed is what a terminal would obey, or what turns text around.
var obeyed = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

// TestHostileNames has plugins whose names and words are meant to harm whoever reads them: in each place they are inert (X2, X3, D10).
func TestHostileNames(t *testing.T) {
	const evil = "<img src=x>\x1b[31m\u202e\u009b2J\r\n\"; rm -rf $(x) `y` %s' &amp;"
	var log bytes.Buffer
	n := newInside(t, register.Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace, Mutex: &quiet})}, nil)
	dead := n.dead(evil + ".sock")
	bytesName := n.dead("b\xff\xfe.sock")
	loud, _ := n.plugin("loud.sock", pluginOptions{typ: "T" + strings.NewReplacer("\x1b", "", "\u009b", "", "\r", "", "\n", "").Replace(evil), name: "a\u202eb<i>", versions: []string{"\u2066v"}})
	n.phase(dead, state.Backoff)
	n.phase(bytesName, state.Backoff)
	n.phase(loud, state.Rejected)

	v, content, err := n.asker.view(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, form := range []string{"text", "wide", "json", "yaml"} {
		var b bytes.Buffer
		if err := printStatus(&b, form, v, bytes.Clone(content)); err != nil {
			t.Fatal(err)
		}
		outputs["status "+form] = b.String()
	}
	for _, s := range v.Sockets {
		var b bytes.Buffer
		findings := explain(v, nil, rawPath(s.Path, s.PathBase64), diskFacts{t.Context()})
		for _, inJSON := range []bool{false, true} {
			if err := printFindings(&b, findings, inJSON); err != nil {
				t.Fatal(err)
			}
		}
		outputs["why "+s.Path] = b.String()
	}
	for _, path := range []string{"/v1/view", "/v1/sockets", "/v1/plugins", "/v1/roots", "/metrics", "/", "/%1b%5B31m%E2%80%AE"} {
		_, outputs[path] = n.get(path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var watched, watchedJSON bytes.Buffer
	_ = n.asker.watch(ctx, func(line []byte) error {
		_, _ = printableJSON{&watchedJSON}.Write(append(bytes.Clone(line), '\n'))
		if err := showEvent(&watched, line); err != nil || strings.Contains(watched.String(), "failing") {
			return context.Canceled
		}
		return nil
	})
	outputs["watch"], outputs["watch json"] = watched.String(), watchedJSON.String()
	quiet.Lock()
	outputs["log"] = log.String()
	quiet.Unlock()

	for name, text := range outputs {
		if text == "" {
			t.Errorf("%s is empty", name)
		}
		if at := obeyed.FindStringIndex(text); at != nil || !utf8.ValidString(text) {
			t.Errorf("%s has %q in it: %q", name, obeyed.FindString(text), text)
		}
	}
	for _, name := range []string{"/v1/view", "/v1/sockets"} {
		if strings.ContainsAny(outputs[name], "<>") {
			t.Errorf("%s has what HTML would obey", name)
		}
	}
	if m := outputs["/metrics"]; strings.Contains(m, "img") || strings.Contains(m, n.dir) || strings.Contains(m, "loud") {
		t.Error("a metric has a text of a plugin, or a path")
	}
	// What was escaped is still what it was.
	var fromYAML, fromJSON any
	if yaml.Unmarshal([]byte(outputs["status yaml"]), &fromYAML) != nil || json.Unmarshal(content, &fromJSON) != nil {
		t.Fatal("the YAML or JSON is none")
	}
	a, _ := json.Marshal(fromYAML)
	b, _ := json.Marshal(fromJSON)
	if !bytes.Equal(a, b) {
		t.Errorf("the YAML says\n%s\nthe JSON\n%s", a, b)
	}
	for line := range strings.Lines(outputs["log"]) {
		if !regexp.MustCompile(`^\S+ \[(TRACE|DEBUG|INFO|WARN|ERROR)\] `).MatchString(line) {
			t.Errorf("a forged line: %s", line)
		}
	}
}

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"/a/b.sock": "/a/b.sock", "a b": "'a b'", "$(x)`y`": "'$(x)`y`'", "it's": `'it'\''s'`, "": "''", "a\nb": `$'a\x0ab'`, "\xff'\\": `$'\xff\x27\x5c'`,
		"é": "'é'", "-rf": "-rf", "~/x": "'~/x'", "a\u202eb": `$'a\xe2\x80\xaeb'`, "*": "'*'", "#a": "'#a'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestShellWordInShell has a real shell read them.
func TestShellWordInShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for _, text := range []string{"/a/b.sock", "a b", "$(echo x)`echo y`", "it's", "'", "a\nb\n", "\xff\xfe'\\", "\u202e", "*", "~", "!x", "\"", ";#&|<>(){}[]?", "\\x41", "%s"} {
		out, err := exec.CommandContext(t.Context(), bash, "-c", "printf '%s' "+shellWord(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q comes out as %q, %v", text, out, err)
		}
	}
}

func TestCommandFor(t *testing.T) {
	for _, test := range []struct{ goos, words, argument, want string }{
		{"linux", "rm", "/a b", "`rm '/a b'`"},
		{"windows", "rm", `C:\a.sock`, "`del C:\\a.sock`"},
		{"windows", "rm", `C:\a & b.sock`, "`del \"C:\\a & b.sock\"`"},
		{"windows", "namei -l", `C:\a`, "`icacls C:\\a`"},
		{"windows", "plugpoll scan", `C:\a b`, "`plugpoll scan \"C:\\a b\"`"},
	} {
		if got := strings.ReplaceAll(commandFor(test.goos, test.words, test.argument), noBreak, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.goos, got, test.want)
		}
	}
}

func TestFold(t *testing.T) {
	got := fold("one two "+glue("a b c d")+" three", 8)
	if got != "one two\na b c d\nthree" {
		t.Errorf("%q", got)
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0.0 s", 300 * time.Millisecond: "0.3 s", 59 * time.Second: "59 s", 3 * time.Minute: "3 min", 5 * time.Hour: "5 h", 72 * time.Hour: "3 days", -1: "0.0 s"} {
		if got := spanText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
