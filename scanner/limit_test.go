package scanner

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// U4: how long a call may take.
func TestLimit(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, test := range []struct {
		name      string
		timeout   time.Duration
		troubled  bool
		took, ago time.Duration // took 0: nothing is known
		want      time.Duration
	}{
		{"the first", 5 * s, false, 0, 0, 5 * s},
		{"after one was given up", 5 * s, true, 0, 0, briefTimeout},
		{"all calls are brief", 100 * ms, true, 0, 0, 100 * ms},
		{"it hung", 5 * s, false, 5 * s, 0, briefTimeout},
		{"it hung for hours", 5 * s, false, time.Hour, holdOff - 1, briefTimeout},
		{"it hung long ago", 5 * s, false, time.Hour, holdOff, 5 * s},
		{"it hung long ago, after one was given up", 5 * s, true, time.Hour, holdOff, briefTimeout},
		{"it is slow", 5 * s, false, 300 * ms, s, 5 * s},
		{"it is slow, after one was given up", 5 * s, true, 300 * ms, s, 1200 * ms},
		{"it is very slow, after one was given up", 5 * s, true, 4 * s, s, 5 * s},
		{"it was hardly slow, after one was given up", 5 * s, true, 10 * ms, s, briefTimeout},
		{"it was slow, after one was given up", 5 * s, true, 300 * ms, slowFor, briefTimeout},
	} {
		now := time.Now()
		p := past{}
		if test.took > 0 {
			p = past{test.took, now.Add(-test.ago)}
		}
		if got := limitOf(test.timeout, test.troubled, p, now); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// Five directories hang at once: one is given all the time, the others a short one, and what is said of them stays.
func TestHangSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		for i := range 6 {
			w.must(w.fs.Mkdir(w.path(fmt.Sprint("d", i)), 0o755))
			w.must(w.bind(fmt.Sprintf("d%d/s", i)))
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		for i := range 5 {
			w.hang(fmt.Sprint("d", i), simfs.OpOpen)
		}
		const list = " [d0/s] [d1/s] [d2/s] [d3/s] [d4/s] d5/s; list d0: no answer for 5s; list d1: no answer for 250ms;"
		last, got := w.look(s, last)
		if !strings.HasPrefix(got, "6s:"+list) {
			t.Error(got)
		}
		w.wait(time.Minute)
		next, again := w.look(s, last)
		if !strings.HasPrefix(again, "0s:"+list) || next != last {
			t.Error(again)
		}
		w.sim.ClearFaults()
		synctest.Wait()
		if _, got = w.look(s, last); got != "0s: d0/s d1/s d2/s d3/s d4/s d5/s" {
			t.Error(got)
		}
	})
}

// slow has each listing take so long.
func (w *world) slow(name string, d time.Duration) {
	w.sim.Inject(w.path(name), simfs.OpOpen, simfs.Fault{Hook: func() { w.wait(d) }})
}

// A directory that is slow and works, beside one that hangs again and again: it pays for that once.
func TestHangBesideSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		w.slow("e", 300*time.Millisecond)
		stale := 0
		for i := range 30 {
			release := w.hang("d", simfs.OpOpen)
			began := time.Now()
			last, _ = w.look(s, last)
			took := time.Since(began)
			if i > 0 && took > time.Second {
				t.Errorf("hang %d held the scan up for %v", i, took)
			}
			if e, ok := last.At(w.path("e/c")); !ok || e.Stale != nil {
				stale++
			}
			w.wait(6 * time.Second)
			release()
			synctest.Wait()
			var got string
			if last, got = w.look(s, last); got != "300ms: a d/b d/l e/c" {
				t.Errorf("between hang %d and the next: %s", i, got)
			}
		}
		if stale != 1 {
			t.Errorf("the slow directory was stale in %d of 30 scans", stale)
		}
	})
}

// A path that hung is not believed in for a while, though it answers; then it is as any other. If it comes back slow, it is read in the second scan.
func TestHangHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		hang := func() (took time.Duration) {
			release := w.hang("d", simfs.OpOpen)
			began := time.Now()
			last, _ = w.look(s, last)
			took = time.Since(began)
			w.wait(10 * time.Second)
			release()
			synctest.Wait()
			return took
		}
		first := hang()
		again := hang()
		w.wait(holdOff)
		later := hang()
		if first != 5*time.Second || again != briefTimeout || later != 5*time.Second {
			t.Errorf("it was given %v, then %v, and later %v", first, again, later)
		}
		w.slow("d", 300*time.Millisecond)
		for _, want := range []string{
			"250ms: a [d/b] [d/l] e/c; list d: no answer for 250ms",
			"300ms: a d/b d/l e/c", "300ms: a d/b d/l e/c",
		} {
			var got string
			if last, got = w.look(s, last); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			w.wait(time.Second)
		}
	})
}

// So many are slow that they are more than may be stuck: all are read in the end.
func TestHangBesideManySlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		const many = 40
		for i := range many {
			w.must(w.fs.Mkdir(w.path(fmt.Sprint("s", i)), 0o755))
			w.must(w.bind(fmt.Sprintf("s%d/s", i)))
			w.slow(fmt.Sprint("s", i), 400*time.Millisecond)
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		defer w.hang("d", simfs.OpOpen)()
		for i := range 3 {
			last, _ = s.Scan(t.Context(), last)
			stale := 0
			for e := range last.All() {
				if e.Stale != nil {
					stale++
				}
			}
			t.Logf("%d are stale", stale)
			if i > 0 && stale != 2 {
				t.Errorf("scan %d leaves %d stale", i, stale)
			}
			w.wait(time.Second)
		}
		if len(s.calls.past) > many {
			t.Errorf("%d paths are remembered", len(s.calls.past))
		}
		w.wait(slowFor)
		w.sim.ClearFaults()
		synctest.Wait()
		if last = scanOK(t, s, last); len(s.calls.past) > 1 || last.Len() != many+4 {
			t.Errorf("%d paths are remembered, %d found", len(s.calls.past), last.Len())
		}
	})
}
