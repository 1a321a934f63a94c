package scanner

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// A directory that is due is read, and no other; what the read shows beyond what the directory's key has told is found. Whatever a read does not show for
// certain is left to a scan of everything.
func TestRefresh(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(*world) error // while its directory is skipped
		finds  string             // entries that are new or other ones, [stale]
		reads  int                // of d
		failed bool
	}{
		{"nothing", nil, "", 1, false},
		{"chmod", func(w *world) error { return w.fs.Chmod(w.path("d/b"), 0o700) }, "d/b", 2, false},
		{"a socket does not show", func(w *world) error {
			w.sim.Inject(w.path("d/b"), simfs.OpEntry, simfs.Fault{Times: 2})
			return nil
		}, "[d/b]", 2, false},
		{"the listing fails", func(w *world) error {
			w.sim.Inject(w.path("d"), simfs.OpList, simfs.Fault{Err: syscall.EIO})
			return nil
		}, "[d/b] [d/e/f] [d/l]", 4, true}, // names alone are tried each time
		{"it fails once", func(w *world) error {
			w.sim.Inject(w.path("d"), simfs.OpOpen, simfs.Fault{Err: syscall.EMFILE, Times: 1})
			return nil
		}, "", 1, false},
		{"a socket cannot be looked at", func(w *world) error {
			w.sim.Inject(w.path("d/b"), simfs.OpLstat, simfs.Fault{Err: syscall.EIO})
			return nil
		}, "[d/b]", 2, true},
		{"a directory in it does not show", func(w *world) error {
			w.sim.Inject(w.path("d/e"), simfs.OpEntry, simfs.Fault{})
			return nil
		}, "[d/e/f]", 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := hangWorld(t, simfs.Config{Stable: true})
				w.must(w.fs.Mkdir(w.path("d/e"), 0o755))
				w.must(w.bind("d/e/f"))
				w.wait(time.Second)
				s := newScanner(t, Config{FS: w.fs, Root: w.root})
				var last *Snapshot
				for range 2 {
					last = scanOK(t, s, last)
					w.wait(fineSettleTime)
				}
				for i := range s.memory.dirs {
					s.memory.dirs[i].fullRead = time.Now().Add(time.Hour)
				}
				s.memory.dirs[1].fullRead = time.Now()
				if test.before != nil {
					w.must(test.before(w))
				}
				d, e := w.sim.Calls(w.path("d"), simfs.OpList), w.sim.Calls(w.path("e"), simfs.OpList)
				next, err := s.Scan(t.Context(), last)
				var finds []string
				for entry := range next.All() {
					name := strings.TrimPrefix(entry.Path, w.root+"/")
					if entry.Stale != nil {
						name = "[" + name + "]"
					}
					if known, ok := last.At(entry.Path); !ok || !known.equal(entry) {
						finds = append(finds, name)
					}
				}
				slices.Sort(finds)
				if got := strings.Join(finds, " "); got != test.finds || (next == last) != (got == "") || next.Len() != last.Len() {
					t.Errorf("it finds %q of %d, want %q", got, next.Len(), test.finds)
				}
				if n := w.sim.Calls(w.path("d"), simfs.OpList) - d; n != test.reads || w.sim.Calls(w.path("e"), simfs.OpList) != e {
					t.Errorf("d was read %d times", n)
				}
				if test.failed != (err != nil && strings.Contains(err.Error(), "input/output error")) {
					t.Error(err)
				}
				if test.finds == "" {
					if due := time.Until(s.memory.dirs[1].fullRead); due > FullEvery || due <= 0 {
						t.Errorf("it is due in %v", due)
					}
				}
			})
		})
	}
}
