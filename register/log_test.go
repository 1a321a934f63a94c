package register

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"

	"github.com/plugpoll/plugpoll/conformance/simfs"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

var update = flag.Bool("update", false, "write what happens into testdata instead of comparing")

// X1: what a root's scanner has to say is in the Manager's log, unless the root has one of its own.
func TestScannersLog(t *testing.T) {
	for own, want := range map[hclog.Logger]int{nil: 1, hclog.NewNullLogger(): 0} {
		bubble(t, Config{Roots: []scanner.Config{{Root: root, Logger: own}}}, func(w *world) {
			w.must(w.node.Chmod(root, 0o777))
			w.run()
			w.pass(time.Minute)
			lines := w.log.lines("[WARN]")
			if len(lines) != want || want > 0 && (!strings.Contains(lines[0], "scanner: anybody may write") || !strings.Contains(lines[0], "path="+root)) {
				w.Errorf("the log has %q", lines)
			}
		})
	}
}

// O1: one line when a socket starts failing, one for each changed cause, one an hour; never one for each try.
func TestLinesFollowChanges(t *testing.T) {
	bubble(t, slow, func(w *world) {
		p := w.bind("a.sock", simfs.Plugin{RefuseDials: -1})
		w.run()
		for range 118 {
			w.pass(30 * time.Second)
			w.must(w.m.Retry(at("a.sock")))
		}
		w.pass(0)
		if tries := w.socket("a.sock").Tries; tries < 100 {
			w.Errorf("%d tries", tries)
		}
		count := func(warned, info int) {
			w.Helper()
			if a, b := w.log.lines("[WARN]"), w.log.lines("[INFO]"); len(a) != warned || len(b) != info {
				w.Errorf("at %v there are %d warnings, want %d, and %d infos, want %d:\n%s\n%s", w.now(), len(a), warned, len(b), info, strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
		}
		count(1, 0)
		w.pass(4 * time.Minute)
		count(2, 0)
		p.Change(simfs.Plugin{GetInfo: simfs.Call{Code: codes.Internal}})
		w.pass(30 * time.Minute)
		count(3, 0)
		p.Change(simfs.Plugin{Type: testType, Name: "a"})
		w.pass(3 * time.Minute)
		count(3, 1)
		w.remove("a.sock")
		w.pass(time.Minute)
		count(3, 2)
	})
}

// The first Info about a socket is "registered", the first Warn "failing".
func TestFirstLines(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		w.bind("a.sock", simfs.Plugin{})
		w.bind("b.sock", simfs.Plugin{RefuseDials: 2})
		w.run()
		w.pass(100 * time.Millisecond)
		info, warned := w.log.lines("[INFO]"), w.log.lines("[WARN]")
		if len(info) != 1 || !strings.HasPrefix(info[0], "manager: registered: path=/plugins/a.sock ") {
			w.Errorf("infos are %q", info)
		}
		if len(warned) != 1 || !strings.HasPrefix(warned[0], "manager: failing, will try again: path=/plugins/b.sock ") {
			w.Errorf("warnings are %q", warned)
		}
	})
}

const forger = "x%s%d.sock\n[ERROR] register: forged: path=y \x1b[31m\xff"

// D10, X3: a name cannot forge a line, in text or JSON, and is no format, whether it is a file's, a plugin's, or in an error.
func TestForgedLines(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		name := "text"
		if asJSON {
			name = "JSON"
		}
		t.Run(name, func(t *testing.T) {
			out := &output{}
			cfg := Config{Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: out, JSONFormat: asJSON})}
			bubble(t, cfg, func(w *world) {
				w.must(w.node.Mkdir(at("d\n[ERROR] forged"), 0o755))
				w.node.Inject(at("d\n[ERROR] forged"), simfs.OpOpen, simfs.Fault{Err: errors.New("disk\n[ERROR] forged")})
				w.bind(forger, simfs.Plugin{Name: "n%s%d", Endpoint: "/e%s%d"})
				w.bind("a.sock", simfs.Plugin{Name: "n%s%d\n[ERROR] forged", Endpoint: "/e\n[ERROR] forged"})
				w.bind("b.sock", simfs.Plugin{Type: "T\n[ERROR] forged"})
				w.bind("c.sock", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Internal}})
				w.bind("e.sock", simfs.Plugin{Endpoint: "tcp:\n[ERROR] forged"})
				w.h.on("Register", func(context.Context, state.Registration) error {
					w.h.last(state.Report{Message: "well\n[ERROR] forged", Health: "ill\n[ERROR] forged"})
					return nil
				})
				w.h.fails("Deregister", errors.New("no%s%d\n[ERROR] forged"))
				w.run()
				w.pass(time.Second)
				w.remove(forger)
				w.pass(time.Second)
			})
			text := out.String()
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\r") {
				t.Error("control characters are in the log")
			}
			lines := 0
			for line := range strings.Lines(text) {
				lines++
				if asJSON {
					if e := map[string]any{}; json.Unmarshal([]byte(line), &e) != nil || e["@level"] == "error" {
						t.Errorf("a line is %s", line)
					}
				} else if len(line) < 30 || line[:2] != "20" || strings.Contains(line[:40], "ERROR") {
					t.Errorf("a line is %s", line)
				}
			}
			if lines < 10 || !strings.Contains(text, "forged") || strings.Contains(text, "MISSING") || strings.Count(text, "%s%d") < 10 {
				t.Errorf("the log is\n%s", text)
			}
		})
	}
}

// What a person sees of the lives of some plugins, in testdata/life.log. One thing happens at a time, so that the order of the lines is fixed.
// After a change: go test ./register -run TestLife -update
func TestLife(t *testing.T) {
	bubble(t, Config{}, func(w *world) {
		story := func(line string, d time.Duration) {
			_, _ = w.log.Write([]byte("\n# " + line + "\n"))
			w.pass(d)
		}
		w.run()
		w.bind("disk.sock", simfs.Plugin{Name: "disk.example.com", Endpoint: "/run/disk.sock", Versions: []string{"1.0.0"}})
		story("A plugin comes.", 2*time.Second)

		w.bind("/new.sock", simfs.Plugin{Name: "disk.example.com", Endpoint: "/run/disk.sock", Versions: []string{"1.1.0", "1.0.0"}})
		w.must(w.node.Rename("/new.sock", at("disk.sock")))
		story("It is replaced by a newer one.", 2*time.Second)

		w.must(w.node.Remove(at("disk.sock")))
		w.bind("disk.sock", simfs.Plugin{Name: "disk.example.com", GetInfo: simfs.Call{Delay: time.Hour}})
		story("That is replaced by one that does not answer,", 15*time.Second)
		w.remove("disk.sock")
		story("which leaves.", 2*time.Second)

		w.bind("late.sock", simfs.Plugin{Name: "late.example.com", RefuseDials: 3})
		story("A plugin is not ready yet; then it is.", 10*time.Second)

		w.bind("odd.sock", simfs.Plugin{Type: "OddPlugin", Name: "odd.example.com"})
		story("One has a type that nobody knows.", 2*time.Second)
		w.handler("OddPlugin")
		story("Now somebody does.", 2*time.Second)

		w.h.fails("Validate", errors.New("the driver's database is locked"))
		w.bind("bad.sock", simfs.Plugin{})
		story("One is refused by its handler, again and again,", time.Minute)
		w.h.fails("Validate", Permanent(errors.New(`the name "bad" is not a domain name`)))
		w.must(w.m.Retry(at("bad.sock")))
		story("then for good.", time.Minute)
		w.h.on("Validate", nil)

		w.bind("docker.sock", simfs.Plugin{GetInfo: simfs.Call{Code: codes.Unimplemented}})
		story("One is no plugin.", 2*time.Second)

		w.bind("deaf one.sock", simfs.Plugin{Name: "deaf", Notify: simfs.Call{Code: codes.Unavailable, Times: 1}})
		story("One cannot be told at once.", 2*time.Second)

		mend := w.node.Inject(root, simfs.OpOpen, simfs.Fault{Err: errors.New("input/output error")})
		story("The directory cannot be read for a while.", time.Minute)
		mend()
		story("It can again.", time.Minute)

		w.h.last(state.Report{Health: state.HealthDown, Message: "its own socket does not answer"})
		story("A handler reports something.", time.Second)

		w.h.fails("Deregister", errors.New("a volume is still mounted"))
		w.remove("late.sock")
		story("A plugin leaves, and its handler does not like it.", time.Second)

		got := regexp.MustCompile(`next_try=\S+`).ReplaceAllString(w.log.String(), "next_try=TIME") // it is local time
		if *update {
			w.must(os.MkdirAll("testdata", 0o755))
			w.must(os.WriteFile("testdata/life.log", []byte(got), 0o644))
		}
		want, err := os.ReadFile("testdata/life.log")
		w.must(err)
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			w.Errorf("the log is another (-want +got):\n%s", diff)
		}
	})
}

// Every kind of event that is printed has its message.
func TestMessages(t *testing.T) {
	for _, k := range []state.EventKind{
		state.EventFound, state.EventReplaced, state.EventGone, state.EventRegistered, state.EventAcknowledged, state.EventNotAcknowledged, state.EventFailing,
		state.EventRejected, state.EventIgnored, state.EventDeregistered, state.EventReport, state.EventRootFailing, state.EventRootRecovered, state.EventSynced,
	} {
		if messages[k] == "" {
			t.Errorf("%s has no message", k)
		}
	}
}

func TestShown(t *testing.T) {
	for text, want := range map[string]any{
		"plain": "plain", "two words": hclog.Quote("two words"), "a\nb": hclog.Quote("a\nb"), "": hclog.Quote(""), "a=b": "a=b", `"`: hclog.Quote(`"`),
	} {
		if got := shown(text); got != want {
			t.Errorf("shown(%q) is %#v", text, got)
		}
	}
}
