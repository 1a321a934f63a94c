package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// The tests of U4. A bubble does not end before all its goroutines have, so each of them shows as well that nothing is left once the calls that
// hung have returned (S3).

// hang has a call never return, until it is let go.
func (w *world) hang(name string, op simfs.Op) (release func()) {
	return w.sim.Inject(w.path(name), op, simfs.Fault{Hang: true})
}

// hangWorld is the same for all: sockets a, d/b, d/l (a link), e/c.
func hangWorld(t *testing.T, cfg simfs.Config) *world {
	w := simWorld(t, cfg)
	w.wait(time.Millisecond)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.fs.Mkdir(w.path("e"), 0o755))
	w.must(w.fs.Mkdir(w.path("../out"), 0o755))
	w.must(w.bind("../out/s"))
	w.must(w.bind("a"))
	w.must(w.bind("d/b"))
	w.must(w.link("../../out/s", "d/l"))
	w.must(w.bind("e/c"))
	return w
}

// look scans, and says how long it took, what is there (in brackets: stale), and what went wrong.
func (w *world) look(s *Scanner, last *Snapshot) (*Snapshot, string) {
	began := time.Now()
	next, err := s.Scan(w.t.Context(), last)
	text := fmt.Sprint(time.Since(began), ":")
	for e := range next.All() {
		name := strings.TrimPrefix(e.Path, w.root+"/")
		if e.Stale != nil {
			name = "[" + name + "]"
		}
		text += " " + name
	}
	if err != nil {
		text += "; " + strings.ReplaceAll(strings.ReplaceAll(err.Error(), w.root+"/", ""), "\n", "; ")
	}
	return next, text
}

func stuckText(s *Scanner) string {
	var list []string
	for _, c := range s.Stuck() {
		list = append(list, c.String())
	}
	return strings.ReplaceAll(strings.Join(list, ", "), "/w/root/", "")
}

// Each call that a scan makes hangs once: when everything is new, and when everything is known and may be skipped. The rest goes on, what is
// known stays, no second call is made on the path, and it heals with the first scan after the call has returned.
func TestHang(t *testing.T) {
	const all = "0s: a d/b d/l e/c"
	for _, test := range []struct {
		name         string
		op           simfs.Op
		first, known string // "": it is not called then
		stuck        string
	}{
		{"a", simfs.OpLstat, "5s: d/b d/l e/c; lstat a: no answer for 5s", "5s: [a] d/b d/l e/c; lstat a: no answer for 5s", "lstat a"},
		{"d/b", simfs.OpLstat, "5s: a d/l e/c; lstat d/b: no answer for 5s", "5s: a [d/b] d/l e/c; lstat d/b: no answer for 5s", "lstat d/b"},
		{"d/l", simfs.OpLstat, "5s: a d/b e/c; lstat d/l: no answer for 5s", "5s: a d/b [d/l] e/c; lstat d/l: no answer for 5s", "lstat d/l"},
		{"d/l", simfs.OpStat, "5s: a d/b e/c; stat d/l: no answer for 5s", "5s: a d/b [d/l] e/c; stat d/l: no answer for 5s", "stat d/l"},
		{"d", simfs.OpLstat, "5s: a e/c; lstat d: no answer for 5s", "5s: a [d/b] [d/l] e/c; lstat d: no answer for 5s", "lstat d"},
		{"d", simfs.OpOpen, "5s: a e/c; list d: no answer for 5s", "5s: a [d/b] [d/l] e/c; list d: no answer for 5s", "list d"},
		{"d", simfs.OpList, "5s: a e/c; list d: no answer for 5s", "5s: a [d/b] [d/l] e/c; list d: no answer for 5s", "list d"},
		{"", simfs.OpStat, "5s:; stat /w/root: no answer for 5s", "5s: [a] [d/b] [d/l] [e/c]; stat /w/root: no answer for 5s", "stat /w/root"},
		{"", simfs.OpOpen, "5s:; list /w/root: no answer for 5s", "5s: [a] [d/b] [d/l] [e/c]; list /w/root: no answer for 5s", "list /w/root"},
		{"", simfs.OpList, "5s:; list /w/root: no answer for 5s", "5s: [a] [d/b] [d/l] [e/c]; list /w/root: no answer for 5s", "list /w/root"},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s, known %v", test.op, test.name, known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := hangWorld(t, simfs.Config{Stable: true})
					s := newScanner(t, Config{FS: w.fs, Root: w.root})
					var last *Snapshot
					want := test.first
					if known {
						want = test.known
						for range 3 {
							last = scanOK(t, s, last)
							w.wait(time.Second)
						}
						if !isSkipped(test.name, test.op) {
							w.wait(FullEvery)
						}
					}
					before := w.sim.Calls(w.path(test.name), test.op)
					release := w.hang(test.name, test.op)
					last, got := w.look(s, last)
					if got != want || stuckText(s) != test.stuck {
						t.Errorf("it hangs: %s, want %s; stuck is %s", got, want, stuckText(s))
					}
					for range 3 {
						w.wait(time.Minute)
						next, again := w.look(s, last)
						if again != strings.Replace(want, "5s:", "0s:", 1) || next != last || stuckText(s) != test.stuck {
							t.Errorf("it still hangs: %s; stuck is %s", again, stuckText(s))
						}
					}
					if n := w.sim.Calls(w.path(test.name), test.op) - before; n != 1 {
						t.Errorf("%d calls were made", n)
					}
					release()
					synctest.Wait()
					if _, got = w.look(s, last); got != all || stuckText(s) != "" {
						t.Errorf("it has returned: %s; stuck is %s", got, stuckText(s))
					}
				})
			})
		}
	}
}

// isSkipped: a settled tree is looked at by these calls alone.
func isSkipped(name string, op simfs.Op) bool {
	return name == "d/l" || name == "d" && op == simfs.OpLstat || name == "" && op == simfs.OpStat
}

// Beside a directory that hangs, changes are found as ever.
func TestHangElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		release := w.hang("d", simfs.OpOpen)
		last, _ = w.look(s, last)
		w.must(w.bind("e/new"))
		w.must(w.fs.Remove(w.path("a")))
		w.must(w.fs.Remove(w.path("d/b")))
		last, got := w.look(s, last)
		if want := "0s: [d/b] [d/l] e/c e/new; list d: no answer for 5s"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		release()
		synctest.Wait()
		if _, got = w.look(s, last); got != "0s: d/l e/c e/new" {
			t.Error(got)
		}
	})
}

// The question whether something is gone may hang too (U2).
func TestHangInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		w.must(w.fs.Remove(w.path("a")))
		release := w.hang("a", simfs.OpLstat)
		last, got := w.look(s, last)
		if want := "5s: [a] d/b d/l e/c; lstat a: no answer for 5s"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		release()
		synctest.Wait()
		if _, got = w.look(s, last); got != "0s: d/b d/l e/c" {
			t.Error(got)
		}
	})
}

// D9: though a call hangs, each entry is told of once.
func TestHangEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		defer w.hang("d/b", simfs.OpLstat)()
		var told []string
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Each: func(path string, _ Verdict) { told = append(told, strings.TrimPrefix(path, w.root+"/")) }})
		if _, got := w.look(s, nil); got != "5s: a d/l e/c; lstat d/b: no answer for 5s" {
			t.Error(got)
		}
		if want := []string{"a", "d", "e", "d/b", "d/l", "e/c"}; !slices.Equal(told, want) {
			t.Errorf("told of %q, want %q", told, want)
		}
	})
}

// Many calls hang: a root has no more than maxStuck of them, then nothing more is tried until one returns.
func TestHangMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		const dirs = 20
		var release []func()
		for i := range dirs {
			dir := fmt.Sprintf("d%02d", i)
			w.must(w.fs.Mkdir(w.path(dir), 0o755))
			w.must(w.bind(dir + "/s"))
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root, CallTimeout: time.Second})
		last := scanOK(t, s, nil)
		for i := range dirs {
			release = append(release, w.hang(fmt.Sprintf("d%02d", i), simfs.OpOpen))
		}
		opened := func() (n int) {
			for i := range dirs {
				n += w.sim.Calls(w.path(fmt.Sprintf("d%02d", i)), simfs.OpOpen)
			}
			return n - dirs
		}
		last, got := w.look(s, last)
		if !strings.HasPrefix(got, "2.75s: [d00/s]") || !strings.Contains(got, "8 calls do not return") || opened() != maxStuck || len(s.Stuck()) != maxStuck {
			t.Errorf("%s; %d opened", got, opened())
		}
		stats := w.sim.Calls(w.root, simfs.OpStat)
		for range 5 {
			last, got = w.look(s, last)
		}
		if !strings.HasPrefix(got, "0s: [d00/s]") || opened() != maxStuck || w.sim.Calls(w.root, simfs.OpStat) != stats {
			t.Errorf("%s; %d opened", got, opened())
		}
		release[0]()
		synctest.Wait()
		last, got = w.look(s, last)
		if !strings.HasPrefix(got, "1s: d00/s [d01/s]") || opened() != maxStuck+2 || len(s.Stuck()) != maxStuck {
			t.Errorf("one has returned: %s; %d opened", got, opened())
		}
		w.sim.ClearFaults()
		synctest.Wait()
		next, err := s.Scan(t.Context(), last)
		if err != nil || next.Len() != dirs || len(s.Stuck()) != 0 {
			t.Errorf("all have returned: %v, found %d", err, next.Len())
		}
		for e := range next.All() {
			if e.Stale != nil {
				t.Errorf("%s is stale", e.Path)
			}
		}
	})
}

// A scan ends with its context, whatever hangs (S1). The call that it leaves behind is not made a second time: the next scan waits for it as if
// it had made it itself.
func TestHangEnds(t *testing.T) {
	for _, test := range []struct {
		timeout, release time.Duration // release: after the second scan has begun
		want             string
	}{
		{0, time.Second, "1s: a d/b d/l e/c"},
		{0, time.Hour, "3s: a e/c; list d: no answer for 5s"},
		{-1, time.Hour, "1h0m0s: a d/b d/l e/c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := hangWorld(t, simfs.Config{})
			s := newScanner(t, Config{FS: w.fs, Root: w.root, CallTimeout: test.timeout})
			release := w.hang("d", simfs.OpList)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			began := time.Now()
			if _, err := s.Scan(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
				t.Fatalf("%v after %v", err, time.Since(began))
			}
			if got := stuckText(s); got != "list d" {
				t.Errorf("stuck is %s", got)
			}
			short, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			s.Wait(short) // returns
			time.AfterFunc(test.release, release)
			_, got := w.look(s, nil)
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if s.Wait(t.Context()); len(s.Stuck()) != 0 {
				t.Error("Wait did not wait")
			}
			if n := w.sim.Calls(w.path("d"), simfs.OpList); n > 2 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// Slow is not stuck: the time is each call's own, not the scan's.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		for _, name := range []string{"a", "d/b", "d/l", "e/c"} {
			w.sim.Inject(w.path(name), simfs.OpLstat, simfs.Fault{Hook: func() { w.wait(4900 * time.Millisecond) }})
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Each: func(string, Verdict) { w.wait(time.Minute) }})
		next, err := s.Scan(t.Context(), nil)
		if want := []string{w.path("a"), w.path("d/b"), w.path("d/l"), w.path("e/c")}; err != nil || !slices.Equal(paths(next), want) {
			t.Errorf("%q, %v", paths(next), err)
		}
	})
}

// Making the root hangs (D8).
func TestHangCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(w.fs.Remove(w.root))
		s := newScanner(t, Config{FS: w.fs, Root: w.root, MissingRoot: CreateRoot})
		release := w.hang("", simfs.OpMkdir)
		last, got := w.look(s, nil)
		if got != "5s:; create /w/root: no answer for 5s" {
			t.Error(got)
		}
		release()
		synctest.Wait()
		if _, got = w.look(s, last); got != "0s:" {
			t.Error(got)
		}
	})
}
