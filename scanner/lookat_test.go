package scanner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// A Look finds what a scan finds, and says what is there if that is no candidate. It makes two calls at most.
func TestLook(t *testing.T) {
	for name := range worlds {
		inWorld(t, name, false, func(w *world) {
			w.wait(w.tick)
			for _, op := range []string{
				"mkdir d", "mkdir d/e", "mkdir ../out", "bind ../out/s", "bind a", "bind d/b", "bind .hidden", "mkdir .d", "bind .d/s", "bind d/e/deep", "write file", "write d/file",
				"fifo fifo", "link ../out/s link", "link nowhere dangling", "link d directory", "link file filelink", "link ../../out/s d/l", "bind gone", "rm gone",
			} {
				w.must(w.op(strings.Fields(op)))
			}
			if w.sim != nil {
				w.must(w.op([]string{"irregular", "maybe"}))
			}
			s := newScanner(w.t, Config{FS: w.fs, Root: w.root, MaxDepth: 1})
			last := scanOK(w.t, s, nil)
			found := 0
			for e := range last.All() {
				found++
				if got, err := s.Look(w.t.Context(), e.Path); err != nil || got != e {
					w.t.Errorf("%s: %+v, %v; a scan finds %+v", e.Path, got, err, e)
				}
			}
			if want := 4; found < want {
				w.t.Errorf("a scan finds %d", found)
			}
			for name, want := range map[string]string{
				"gone": "no such file", "none/s": "no such file", "file": "not a socket", "fifo": "not a socket", "filelink": "not a socket", "file/s": "a file is on the way to it",
				"d": "a directory", "directory": "link to a directory", "dangling": "dangling link", ".hidden": "dot name", ".d/s": "dot name", "d/e/deep": "too deep",
			} {
				e, err := s.Look(w.t.Context(), w.path(name))
				if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) || e != (Entry{}) {
					w.t.Errorf("%s: %+v, %v", name, e, err)
				}
			}
			for _, path := range []string{"", "/", "a", w.root, w.root + "/", w.root + "x", w.root + "//a", w.base + "/out/s"} {
				if e, err := s.Look(w.t.Context(), path); err == nil || errors.Is(err, fs.ErrNotExist) || e != (Entry{}) {
					w.t.Errorf("%q: %+v, %v", path, e, err)
				}
			}
		})
	}
}

// What cannot be told is no ErrNotExist; what may not be looked at may be there (D2).
func TestLookUnknown(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.bind("a"))
	s := newScanner(t, Config{FS: w.fs, Root: w.root})
	for _, errno := range []error{syscall.EIO, syscall.ESTALE, syscall.EACCES, syscall.ELOOP} {
		w.sim.Inject(w.path("a"), simfs.OpLstat, simfs.Fault{Err: errno, Times: 1})
		e, err := s.Look(t.Context(), w.path("a"))
		if maybe := errors.Is(errno, syscall.EACCES); !errors.Is(err, errno) || errors.Is(err, fs.ErrNotExist) || e.Maybe != maybe || maybe && e.Path != w.path("a") {
			t.Errorf("%v: %+v, %v", errno, e, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Look(ctx, w.path("a")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// U4 for Looks: one that hangs is given up, its path is left alone by Looks and Scans until the call has returned, and others go on.
func TestLookHangs(t *testing.T) {
	for _, test := range []struct {
		name string
		op   simfs.Op
	}{{"a", simfs.OpLstat}, {"d/l", simfs.OpStat}} {
		synctest.Test(t, func(t *testing.T) {
			w := hangWorld(t, simfs.Config{})
			s := newScanner(t, Config{FS: w.fs, Root: w.root})
			last := scanOK(t, s, nil)
			release := w.hang(test.name, test.op)
			before := w.sim.Calls(w.path(test.name), test.op)
			began := time.Now()
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() {
					if _, err := s.Look(t.Context(), w.path(test.name)); !errors.As(err, new(noAnswer)) || errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if took := time.Since(began); took != DefaultCallTimeout {
				t.Errorf("it took %v", took)
			}
			began = time.Now()
			if _, err := s.Look(t.Context(), w.path(test.name)); !errors.As(err, new(noAnswer)) || time.Since(began) != 0 {
				t.Errorf("once more: %v after %v", err, time.Since(began))
			}
			if e, err := s.Look(t.Context(), w.path("d/b")); err != nil || time.Since(began) != 0 {
				t.Errorf("beside it: %v, %v", e, err)
			}
			next, _ := s.Scan(t.Context(), last)
			if e, ok := next.At(w.path(test.name)); !ok || e.Stale == nil || time.Since(began) != 0 {
				t.Errorf("a scan: %+v after %v", e, time.Since(began))
			}
			if got := stuckText(s); got != string(test.op)+" "+test.name || w.sim.Calls(w.path(test.name), test.op) != before+1 {
				t.Errorf("stuck are %s; %d calls", got, w.sim.Calls(w.path(test.name), test.op)-before)
			}
			release()
			synctest.Wait()
			if e, err := s.Look(t.Context(), w.path(test.name)); err != nil || e.Path == "" || stuckText(s) != "" {
				t.Errorf("it has returned: %+v, %v", e, err)
			}
			if _, got := w.look(s, next); got != "0s: a d/b d/l e/c" {
				t.Error(got)
			}
		})
	}
}

// U4: what is in a directory that hangs is not looked at either; what hangs above the root says nothing.
func TestLookBelowHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		w.must(w.bind("dd"))
		defer w.hang("d", simfs.OpOpen)()
		defer w.hang("..", simfs.OpLstat)()
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Logger: (&warnings{}).logger()})
		_, _ = s.Scan(t.Context(), nil)
		before := w.sim.Calls(w.path("d/b"), simfs.OpLstat)
		if _, err := s.Look(t.Context(), w.path("d/b")); !errors.As(err, new(noAnswer)) || !strings.Contains(err.Error(), "list /w/root/d: ") || w.sim.Calls(w.path("d/b"), simfs.OpLstat) != before {
			t.Errorf("%v; stuck are %s", err, stuckText(s))
		}
		for _, name := range []string{"a", "dd", "e/c"} {
			if _, err := s.Look(t.Context(), w.path(name)); err != nil {
				t.Error(err)
			}
		}
	})
}

// A Look ends with its context. A scan neither waits for what it leaves behind nor takes it for a call that hangs, as long as that may be under way.
func TestLookEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		w.sim.Inject(w.path("a"), simfs.OpLstat, simfs.Fault{Hang: true, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := s.Look(ctx, w.path("a")); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if next := scanOK(t, s, last); next != last || time.Since(began) != time.Second {
			t.Errorf("the scan took until %v", time.Since(began))
		}
		if _, err := s.Look(t.Context(), w.path("a")); !errors.As(err, new(noAnswer)) || time.Since(began) != DefaultCallTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, got := w.look(s, last); got != "0s: [a] d/b d/l e/c; lstat a: no answer for 5s" {
			t.Error(got)
		}
		w.sim.ClearFaults()
		synctest.Wait()
		if _, got := w.look(s, last); got != "0s: a d/b d/l e/c" || len(s.calls.looking) != 0 {
			t.Error(got)
		}
	})
}

// Many Looks hang: four at a time, eight in all, and then neither Looks nor Scans try anything.
func TestLookHangsMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		const many = 20
		for i := range many {
			w.must(w.bind(fmt.Sprint("s", i)))
			w.hang(fmt.Sprint("s", i), simfs.OpLstat)
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		began := time.Now()
		var group sync.WaitGroup
		var full atomic.Int32
		for i := range many {
			group.Go(func() {
				_, err := s.Look(t.Context(), w.path(fmt.Sprint("s", i)))
				if errors.As(err, new(tooManyStuck)) {
					full.Add(1)
				} else if !errors.As(err, new(noAnswer)) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took != 2*DefaultCallTimeout || full.Load() != many-maxStuck || len(s.Stuck()) != maxStuck {
			t.Errorf("after %v %d were turned down, %d are stuck", took, full.Load(), len(s.Stuck()))
		}
		if _, err := s.Scan(t.Context(), nil); !errors.As(err, new(tooManyStuck)) || len(s.Stuck()) != maxStuck {
			t.Errorf("a scan: %v", err)
		}
		w.sim.ClearFaults()
		synctest.Wait()
		if last := scanOK(t, s, nil); last.Len() != many {
			t.Errorf("found %d", last.Len())
		}
	})
}

// Looks and Scans at once, while the sockets change.
func TestLookRace(t *testing.T) {
	w := osWorld(t)
	const sockets = 8
	for i := range sockets {
		w.must(w.bind(fmt.Sprint("s", i)))
	}
	s := newScanner(t, Config{Root: w.root})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				path := w.path(fmt.Sprint("s", rand.N(sockets)))
				short, cancel := context.WithTimeout(ctx, rand.N(200*time.Microsecond))
				e, err := s.Look(short, path)
				cancel()
				if err == nil && (e.Path != path || e.Maybe) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%+v, %v", e, err)
				}
			}
		})
	}
	var last *Snapshot
	for n := 0; ctx.Err() == nil; n++ {
		last = scanOK(t, s, last)
		if last.Len() != sockets {
			t.Errorf("found %d", last.Len())
		}
		w.must(w.bind("s0")) // over the other
	}
	group.Wait()
	s.Wait(t.Context())
	if len(s.Stuck()) != 0 || len(s.calls.looking) != 0 {
		t.Errorf("left are %v and %d", s.Stuck(), len(s.calls.looking))
	}
}

func TestLookAllocations(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the count is that of Linux")
	}
	w := osWorld(t)
	w.must(w.bind("a"))
	s, path := newScanner(t, Config{Root: w.root}), w.path("a")
	ctx := t.Context()
	n := testing.AllocsPerRun(100, func() {
		if _, err := s.Look(ctx, path); err != nil {
			t.Error(err)
		}
	})
	if n > 12 {
		t.Errorf("a Look allocates %v times", n)
	}
	t.Logf("allocations: %v", n)
}

// BenchmarkLook sets a Look against the system's lstat.
func BenchmarkLook(b *testing.B) {
	w := osWorld(b)
	w.must(w.bind("a"))
	s, path := newScanner(b, Config{Root: w.root}), w.path("a")
	against(b, func() { statAll(b, []string{path}) }, func() {
		if _, err := s.Look(b.Context(), path); err != nil {
			b.Fatal(err)
		}
	})
}
