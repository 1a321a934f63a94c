package scanner

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// Of an attribute cache (NFS, FUSE) a Scanner sees what was. It keeps to that, and has caught up one poll after the cache has, or where directories are
// skipped after FullEvery.
func TestStaleAttributes(t *testing.T) {
	for _, test := range []struct {
		name          string
		change        func(*world) error
		during, after string
	}{
		{"removed", func(w *world) error { return w.fs.Remove(w.path("a")) }, "a d/b d/l e/c", "d/b d/l e/c"},
		{"new", func(w *world) error { return w.bind("d/new") }, "a d/b d/l e/c", "a d/b d/l d/new e/c"},
		{"renamed", func(w *world) error { return w.fs.Rename(w.path("a"), w.path("d/new")) }, "a d/b d/l e/c", "d/b d/l d/new e/c"},
		{"directory renamed", func(w *world) error { return w.fs.Rename(w.path("d"), w.path("new")) }, "a [d/b] [d/l] e/c", "a e/c new/b new/l"},
		{"no socket any more", func(w *world) error {
			w.must(w.fs.Remove(w.path("a")))
			return w.mknod("a", "fifo")
		}, "a d/b d/l e/c", "d/b d/l e/c"},
	} {
		for _, stable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stable %v", test.name, stable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := hangWorld(t, simfs.Config{Stable: stable})
					s := newScanner(t, Config{FS: w.fs, Root: w.root})
					var last *Snapshot
					for range 3 {
						last, _ = w.look(s, last)
						w.wait(fineSettleTime)
					}
					during := "0s: " + test.during
					if stable { // no call to d but its stat
						during = strings.NewReplacer("[", "", "]", "").Replace(during)
					}
					for _, name := range []string{".", "a", "d", "d/b", "d/l", "d/new", "e", "e/c", "new", "new/b", "new/l"} {
						w.sim.Freeze(w.path(name), 3*time.Second)
					}
					w.must(test.change(w))
					for began := time.Now(); time.Since(began) < 3*time.Second; w.wait(DefaultInterval) {
						var text string
						if last, text = w.look(s, last); !strings.HasPrefix(text, during) {
							t.Fatalf("%v after the change: %s, want %s", time.Since(began), text, during)
						}
					}
					if _, text := w.look(s, last); text != "0s: "+test.after {
						t.Errorf("at the end: %s, want %s", text, test.after)
					}
				})
			})
		}
	}
}

// Whatever changes, and whatever is stale for whatever time: a socket that nobody touches for that time is not removed, none is told that never was, and when
// nothing is stale any more a scan is worth as much as the first one of a new Scanner.
func TestStaleAtRandom(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				h := staleHistory{history: newHistory(t, []byte{byte(rnd.Uint32())}, nil), rnd: rnd, ever: map[Entry]bool{}, since: map[string]time.Time{}}
				defer h.sim.Close()
				defer h.truth.Close()
				for range 10 {
					for range 20 {
						h.step()
					}
					h.wait(longestStale + FullEvery)
					next, err := h.scanner.Scan(t.Context(), h.last)
					h.settled(next, err)
					h.last = next
				}
			})
		})
	}
}

const longestStale = 3 * time.Second

var staleNames = []string{".", "a", "b", "d", "d/a", "d/b", "d/e", "d/e/a"}

type staleHistory struct {
	*history
	rnd   *rand.Rand
	ever  map[Entry]bool       // what there has been
	since map[string]time.Time // how long the socket at a path has been as it is
	now   *Snapshot            // of the truth
}

func (h *staleHistory) step() {
	name := func() string { return "/r/" + staleNames[h.rnd.IntN(len(staleNames))] }
	path := name()
	switch h.rnd.IntN(12) {
	case 0, 1:
		h.change(func(f *simfs.FS) error { return f.Mknod(path, fs.ModeSocket|0o755) })
	case 2:
		h.change(func(f *simfs.FS) error { return f.Mkdir(path, 0o755) })
	case 3:
		h.change(func(f *simfs.FS) error { return f.Remove(path) })
	case 4:
		to := name()
		h.change(func(f *simfs.FS) error { return f.Rename(path, to) })
	case 5:
		h.sim.Freeze(path, time.Duration(h.rnd.Int64N(int64(longestStale))))
	case 6, 7:
		op := []simfs.Op{simfs.OpLstat, simfs.OpStat, simfs.OpList}[h.rnd.IntN(3)]
		h.sim.Inject(path, op, simfs.Fault{Stale: true, For: time.Duration(h.rnd.Int64N(int64(longestStale)))})
	default:
		h.wait(fuzzTimes[h.rnd.IntN(len(fuzzTimes))])
		h.scan()
	}
	h.note()
}

// note keeps what there is now.
func (h *staleHistory) note() {
	next, _ := h.first(h.truth)
	for _, c := range Diff(h.now, next) {
		h.since[c.Entry.Path] = time.Now()
	}
	for e := range next.All() {
		h.ever[Entry{Path: e.Path, ID: e.ID}] = true
	}
	h.now = next
}

func (h *staleHistory) scan() {
	next, _ := h.scanner.Scan(h.Context(), h.last)
	for _, c := range Diff(h.last, next) {
		now, is := h.now.At(c.Entry.Path)
		long := time.Since(h.since[c.Entry.Path]) > longestStale
		switch {
		case c.Kind == Removed && is && long:
			h.Fatalf("%v was removed, and is there since %v", now, h.since[c.Entry.Path])
		case c.Kind != Removed && !c.Entry.Maybe && !h.ever[Entry{Path: c.Entry.Path, ID: c.Entry.ID}]:
			h.Fatalf("%v %v never was", c.Kind, c.Entry)
		}
	}
	h.last = next
}
