package scanner

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what happens into testdata/*.txt instead of comparing")

// TestScripts runs testdata/*.txt, one story each: a new test is a new file, written without its output and completed by
//
//	go test ./scanner -run TestScripts -update
//
// A line is an operation, a question, or, indented, what the question above it answers. Names are relative to the root, in Go's quotes if
// need be. The first lines may be
//
//	on WORLD…                the worlds (world_test.go) to run on, all if missing; each also settles between the scans
//	config KEY VALUE…        depth, entries, goos, grace; missing create; files .EXT,.EXT…
//
// Operations are those of world.op. The questions:
//
//	scan      what changed (+ added, ~ replaced, - removed), what is stale (? path, since which scan: why), errors (!)
//	          "same": Scan returned the Snapshot it was given
//	ignored   Snapshot.Ignored
//	verdicts  what Config.Each was told by the last scan
//	entries   all of the Snapshot
//	restart   a new Scanner with the first lines' Config, and what follows, and no Snapshot
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts:", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		on := slices.Sorted(maps.Keys(worlds))
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) > 0 && words[0] == "on" {
				on = words[1:]
			}
		}
		for i, name := range on {
			for _, settles := range []bool{false, true} {
				title := strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + name
				if settles {
					title += "/settled"
				}
				t.Run(title, func(t *testing.T) {
					inWorld(t, name, settles, func(w *world) {
						got := (&run{world: w}).script(string(text))
						if *update && i == 0 && !settles {
							w.must(os.WriteFile(file, []byte(got), 0o644))
						} else if got != string(text) && !*update {
							t.Errorf("%s says (-), and this happened (+):\n%s", file, lineDiff(string(text), got))
						}
					})
				})
			}
		}
	}
}

// run is one script in one world.
type run struct {
	*world
	config   []string
	scanner  *Scanner
	last     *Snapshot
	times    [][2]time.Time // of each scan
	verdicts []string
}

func (r *run) script(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") {
			continue
		}
		out.WriteString(line)
		words := fields(r.t, strings.TrimSuffix(line, "\n"))
		if len(words) == 0 || words[0] == "on" {
			continue
		}
		for _, answer := range r.line(words) {
			out.WriteString("  " + r.short(answer) + "\n")
		}
	}
	return out.String()
}

func (r *run) line(words []string) []string {
	switch words[0] {
	case "config":
		r.config = append(r.config, words[1:]...)
	case "restart":
		r.scanner, r.last = nil, nil
	case "scan":
		return r.scan()
	case "ignored":
		return r.ignored()
	case "verdicts":
		return r.verdicts
	case "entries":
		var list []string
		for e := range r.last.All() {
			list = append(list, entryText(e))
		}
		return list
	default:
		r.wait(r.tick)
		if slices.Contains([]string{"fault", "during", "clear", "chmod", "chtimes"}, words[0]) {
			r.overdue()
		}
		if err := r.op(words); err != nil {
			r.t.Fatalf("%s: %v", strings.Join(words, " "), err)
		}
	}
	return nil
}

func (r *run) newScanner() *Scanner {
	c := Config{FS: r.fs, Root: r.root, Each: func(path string, v Verdict) { r.verdicts = append(r.verdicts, verdictText(path, v)) }}
	goos := "linux"
	for i := 0; i+1 < len(r.config); i += 2 {
		n, _ := strconv.Atoi(r.config[i+1])
		switch r.config[i] {
		case "depth":
			c.MaxDepth = n
		case "entries":
			c.MaxEntries = n
		case "missing":
			c.MissingRoot = CreateRoot
		case "files":
			c.Select = Files(strings.Split(r.config[i+1], ",")...)
		case "grace":
			c.RootGrace, _ = time.ParseDuration(r.config[i+1])
		case "goos":
			goos = r.config[i+1]
		default:
			r.t.Fatal("unknown config ", r.config[i])
		}
	}
	s, err := New(c)
	r.must(err)
	s.goos = goos
	return s
}

func (r *run) scan() []string {
	if r.scanner == nil {
		r.scanner = r.newScanner()
	}
	r.verdicts = nil
	r.wait(r.tick)
	before := time.Now()
	next, err := r.scanner.Scan(r.t.Context(), r.last)
	r.times = append(r.times, [2]time.Time{before, time.Now()})
	var out []string
	for _, c := range Diff(r.last, next) {
		sign := map[Kind]string{Added: "+", Replaced: "~", Removed: "-"}[c.Kind]
		out = append(out, sign+" "+entryText(c.Entry))
	}
	if next == r.last {
		out = append(out, "same")
	}
	for e := range next.All() {
		if e.Stale != nil {
			out = append(out, fmt.Sprintf("? %s since scan %d: %v", Quote(e.Path), r.scanAt(e.Stale.Since), e.Stale.Err))
		}
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			out = append(out, "! "+line)
		}
	}
	r.last = next
	r.rest()
	return out
}

// overdue has the next scan read everything, as it does when FullEvery is over: nothing that a directory's key shows is about to happen.
func (r *run) overdue() {
	if r.scanner == nil {
		return
	}
	for i := range r.scanner.memory.dirs {
		r.scanner.memory.dirs[i].fullRead = time.Time{}
	}
}

// rest lets the filesystem settle, so that the next scan skips what it can. What is found meanwhile is not part of the story, and then the next
// scan remembers nothing.
func (r *run) rest() {
	if r.settle == 0 {
		return
	}
	told := slices.Clone(r.verdicts)
	r.wait(r.settle)
	_, _ = r.scanner.Scan(r.t.Context(), r.last)
	r.verdicts = told
}

func (r *run) scanAt(since time.Time) int {
	return 1 + slices.IndexFunc(r.times, func(t [2]time.Time) bool { return !since.Before(t[0]) && !since.After(t[1]) })
}

func (r *run) ignored() []string {
	var out []string
	for _, g := range r.last.Ignored() {
		line := fmt.Sprintf("%s: %d %s:", Quote(g.Dir), g.Count, g.Reason)
		for _, name := range g.Examples {
			line += " " + Quote(name)
		}
		if g.Detail != "" {
			line += " (" + g.Detail + ")"
		}
		out = append(out, line)
	}
	return out
}

func entryText(e Entry) string {
	switch {
	case e.Maybe:
		return Quote(e.Path) + " maybe"
	case e.File != nil && e.File.Problem != "":
		return Quote(e.Path) + " " + string(e.File.Problem) + ": " + e.File.Detail
	case e.File != nil:
		return Quote(e.Path) + " " + strconv.Quote(e.File.Content)
	}
	return Quote(e.Path)
}

func verdictText(path string, v Verdict) string {
	outcome := map[Outcome]string{IsSocket: "socket", MaybeSocket: "maybe", IsDirectory: "directory", IsIgnored: "ignored", IsUnreadable: "unreadable", IsFile: "file"}[v.Outcome]
	text := fmt.Sprintf("%s (%s): %s", Quote(path), v.Type, outcome)
	if v.Reason != "" {
		text += ", " + string(v.Reason)
	}
	if v.Err != nil {
		text += ", " + v.Err.Error()
	}
	return text
}

// short takes out of a text what is not the same everywhere.
func (r *run) short(text string) string {
	text = strings.ReplaceAll(text, r.root+string(filepath.Separator), "")
	for name, err := range errnos {
		text = strings.ReplaceAll(text, ": "+err.Error(), ": "+name) // the texts differ from system to system
	}
	return strings.ReplaceAll(text, r.root, ".")
}

// fields splits a line at blanks; a word may be in Go's quotes, and a comment ends it.
func fields(t testing.TB, line string) (words []string) {
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" || line[0] == '#' {
			return words
		}
		word, err := strconv.QuotedPrefix(line)
		if err != nil {
			word, _, _ = strings.Cut(line, " ")
		}
		line = line[len(word):]
		if unquoted, err := strconv.Unquote(word); err == nil && word[0] == '"' {
			word = unquoted
		} else if word[0] == '"' {
			t.Fatal(errors.New("bad quotes: " + word))
		}
		words = append(words, word)
	}
}

func lineDiff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out strings.Builder
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			fmt.Fprintln(&out, " ", a[0])
			a, b = a[1:], b[1:]
		case len(a) > 0 && !slices.Contains(b, a[0]):
			fmt.Fprintln(&out, "-", a[0])
			a = a[1:]
		case len(b) > 0:
			fmt.Fprintln(&out, "+", b[0])
			b = b[1:]
		default:
			fmt.Fprintln(&out, "-", a[0])
			a = a[1:]
		}
	}
	return out.String()
}
