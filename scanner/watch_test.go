package scanner

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// TestWatch changes the filesystem from the loop's body, or later from a timer, and says what the loop sees next and when. The clock is the
// bubble's: only pauses take time.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(w.bind("a"))
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		after := func(d time.Duration, do func()) { time.AfterFunc(d, do) }
		fault := func(err error) func() {
			return func() {
				w.sim.ClearFaults()
				w.sim.Inject(w.root, simfs.OpList, simfs.Fault{Err: err})
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		steps := []struct {
			want string // since the step before: what the loop sees
			then func()
		}{
			{"0s added a", func() { w.must(w.bind("b")) }},
			// U6: every 20 ms for a second after a change …
			{"20ms added b", func() { after(990*time.Millisecond, func() { w.must(w.bind("c")) }) }},
			{"1s added c", func() { after(1010*time.Millisecond, func() { w.must(w.fs.Remove(w.path("a"))) }) }},
			// … then every 200 ms, so that nobody hears of the 190 ms in between.
			{"1.2s removed a", fault(syscall.EIO)},
			{"20ms, error list /w/root: input/output error", func() { after(time.Minute, fault(syscall.ESTALE)) }},
			{"1m0.18s, error list /w/root: stale file handle", func() { after(time.Minute-time.Millisecond, w.sim.ClearFaults) }},
			{"1m0s,", func() { w.must(w.fs.Mkdir(w.path("d"), 0o755)); w.must(w.bind("d/a")) }},
			{"200ms added d/a", cancel},
		}
		last := time.Now()
		n := 0
		for d, err := range s.Watch(ctx) {
			got := time.Since(last).String()
			for _, c := range d.Changes {
				got += fmt.Sprintf(" %v %s", c.Kind, c.Entry.Path[len(w.root)+1:])
			}
			if len(d.Changes) == 0 {
				got += ","
			}
			if err != nil {
				got += " error " + err.Error()
			}
			if n == len(steps) {
				t.Fatalf("one more: %s", got)
			}
			if got != steps[n].want {
				t.Errorf("step %d: %s, want %s", n, got, steps[n].want)
			}
			last = time.Now()
			steps[n].then()
			n++
		}
		if n != len(steps) {
			t.Errorf("it ended after %d steps", n)
		}
		if d := time.Since(last); d != 0 {
			t.Errorf("it went on for %v after its context", d)
		}
	})
}

// U6: nothing happens, and the loop stays quiet; how often it looks is Pace's.
func TestWatchIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Interval: 500 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		var seen []*Snapshot
		for d, err := range s.Watch(ctx) {
			if err != nil || len(d.Changes) != 0 {
				t.Errorf("%v, %v", d.Changes, err)
			}
			seen = append(seen, d.Snapshot)
		}
		if len(seen) != 1 || seen[0] == nil {
			t.Errorf("it yielded %v", seen)
		}
		if n := w.sim.Calls(w.root, simfs.OpList); n != 20 {
			t.Errorf("%d scans in 9.9 s", n)
		}
	})
}

// A root that is not there is the first thing to hear of, and so is its appearance (D8).
func TestWatchMissingRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(w.fs.Remove(w.root))
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		var got []string
		for d, err := range s.Watch(t.Context()) {
			got = append(got, fmt.Sprint(d.Snapshot != nil, err))
			if len(got) == 2 {
				break
			}
			w.must(w.fs.Mkdir(w.root, 0o755))
		}
		if want := []string{"true stat /w/root: no such file or directory", "true <nil>"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Watch may be called again; each loop starts from an empty world (D1).
func TestWatchTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(w.sim.Mknod(w.path("a"), fs.ModeSocket))
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		deltas := s.Watch(t.Context())
		for range 2 {
			for d, err := range deltas {
				if err != nil || len(d.Changes) != 1 {
					t.Errorf("the first changes are %v, %v", d.Changes, err)
				}
				break
			}
		}
	})
}
