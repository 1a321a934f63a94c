package scanner

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// Trees that nobody should make: bounded work, and a report that says what is wrong.

// D4: the limit is reported, nothing is cut in silence, and nothing that was known is gone because of it.
func TestTooManyEntries(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.bind("a.sock"))
	many := endlessFS{w.fs, 0, 200_000}
	s := newScanner(t, Config{FS: many, Root: w.root})
	var last *Snapshot
	for range 2 {
		next, err := s.Scan(t.Context(), last)
		if err == nil || err.Error() != "list /w/root: the scan's limit of 100000 entries is reached: raise MaxEntries" {
			t.Fatal(err)
		}
		n := next.Len()
		for _, g := range next.Ignored() {
			n += g.Count
		}
		if n != DefaultMaxEntries {
			t.Errorf("it took %d entries", n)
		}
		if last != nil && next != last {
			t.Error("the second scan gave another Snapshot")
		}
		last = next
	}
	next, err := newScanner(t, Config{FS: many, Root: w.root, MaxEntries: -1}).Scan(t.Context(), last)
	if g := next.Ignored(); err != nil || next.Len() != 1 || g[0].Count != 200_000 || len(g[0].Examples) != maxExamples {
		t.Errorf("without the limit: %v, %q", err, paths(next))
	}
}

// A listing without an end is cut by the same limit.
func TestEndlessListing(t *testing.T) {
	for _, types := range []fs.FileMode{0, fs.ModeDir} {
		w := simWorld(t, simfs.Config{Entries: simfs.NoEntries})
		next, err := newScanner(t, Config{FS: endlessFS{w.fs, types, 0}, Root: w.root, MaxEntries: 5000, MaxDepth: -1}).Scan(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "limit of 5000 entries") || next.Len() != 0 {
			t.Errorf("%v, %d", err, next.Len())
		}
	}
}

// endlessFS lists entries of a type that are not there, so many if not for ever, before those that are.
type endlessFS struct {
	afero.Fs
	types fs.FileMode
	many  int
}

func (f endlessFS) Open(name string) (afero.File, error) {
	file, err := f.Fs.Open(name)
	return endlessFile{file, f, new(int)}, err
}

func (f endlessFS) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	return f.Fs.(afero.Lstater).LstatIfPossible(name)
}

type endlessFile struct {
	afero.File
	fs endlessFS
	n  *int
}

func (f endlessFile) ReadDir(n int) (list []fs.DirEntry, err error) {
	if *f.n == f.fs.many && *f.n > 0 {
		return f.File.(fs.ReadDirFile).ReadDir(n)
	}
	for ; n > 0 && (f.fs.many == 0 || *f.n < f.fs.many); n-- {
		*f.n++
		list = append(list, endlessEntry{fmt.Sprintf("n%07d", *f.n), f.fs.types})
	}
	return list, nil
}

func (f endlessFile) Readdirnames(int) ([]string, error) { return nil, io.EOF }

type endlessEntry struct {
	name string
	typ  fs.FileMode
}

func (e endlessEntry) Name() string               { return e.name }
func (e endlessEntry) IsDir() bool                { return e.typ.IsDir() }
func (e endlessEntry) Type() fs.FileMode          { return e.typ }
func (e endlessEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// D4: what is too deep is counted, and read if MaxDepth is raised.
func TestDeepTree(t *testing.T) {
	w := simWorld(t, simfs.Config{Stable: true})
	deep := strings.TrimSuffix(strings.Repeat("d/", 500), "/")
	w.must(w.fs.MkdirAll(w.path(deep), 0o755))
	w.must(w.bind(deep + "/s"))
	next := scanOK(t, newScanner(t, Config{FS: w.fs, Root: w.root}), nil)
	if g := next.Ignored(); next.Len() != 0 || len(g) != 1 || g[0].Reason != TooDeep || strings.Count(g[0].Dir, "/d") != DefaultMaxDepth {
		t.Errorf("found %q, ignored %v", paths(next), g)
	}
	s := newScanner(t, Config{FS: w.fs, Root: w.root, MaxDepth: 600})
	next = scanOK(t, s, nil)
	if next.Len() != 1 || scanOK(t, s, next) != next {
		t.Errorf("found %q", paths(next))
	}
}

// D5: links that lead in circles are not followed. Each costs one look.
func TestLinkLoops(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.fs.MkdirAll(w.path("d/e"), 0o755))
	w.must(w.bind("d/e/s"))
	w.must(w.link(".", "here"))
	w.must(w.link("../..", "d/up"))
	w.must(w.link("e", "d/down"))
	w.must(w.link("itself", "itself"))
	w.must(w.link("two", "one"))
	w.must(w.link("one", "two"))
	next := scanOK(t, newScanner(t, Config{FS: w.fs, Root: w.root}), nil)
	counts := map[Reason]int{}
	for _, g := range next.Ignored() {
		counts[g.Reason] += g.Count
	}
	if next.Len() != 1 || counts[DanglingLink] != 3 || counts[LinkToDirectory] != 3 {
		t.Errorf("found %q, ignored %v", paths(next), counts)
	}
	if n := w.sim.Calls(w.path("itself"), simfs.OpStat) + w.sim.Calls(w.path("d"), simfs.OpList); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// D10: names that are no text, in entries, counts and errors.
func TestNamesThatAreNoText(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	dir := "\xff\xfe"
	w.must(w.fs.Mkdir(w.path(dir), 0o755))
	for i := range 256 {
		if name := "n" + string([]byte{byte(i)}); i != 0 && i != '/' {
			w.must(w.bind(dir + "/" + name))
		}
	}
	w.must(w.bind("\x80"))
	w.sim.Inject(w.path("\x80"), simfs.OpLstat, simfs.Fault{Err: syscall.EIO})
	next, err := newScanner(t, Config{FS: w.fs, Root: w.root}).Scan(t.Context(), nil)
	if next.Len() != 254 {
		t.Errorf("found %d", next.Len())
	}
	if err == nil || !utf8.ValidString(err.Error()) || !strings.Contains(err.Error(), `\x80`) {
		t.Errorf("the error is %q", err)
	}
	for e := range next.All() {
		if !utf8.ValidString(Quote(e.Path)) {
			t.Errorf("%q is shown as %q", e.Path, Quote(e.Path))
		}
	}
}

// U6: a directory that changes all the time, also while it is read, costs no more than eager polling, and what stays in it is found and kept.
func TestRestlessDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{Stable: true})
		w.must(w.bind("stays"))
		n := 0
		change := func() {
			n++
			w.must(w.bind(fmt.Sprint("s", n)))
			if n > 5 {
				w.must(w.fs.Remove(w.path(fmt.Sprint("s", n-5))))
			}
		}
		w.sim.Inject(w.root, simfs.OpList, simfs.Fault{Hook: change})
		w.sim.Inject(w.path("stays"), simfs.OpLstat, simfs.Fault{Hook: change})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		deltas := 0
		for d, err := range newScanner(t, Config{FS: w.fs, Root: w.root}).Watch(ctx) {
			deltas++
			if e, ok := d.Snapshot.At(w.path("stays")); !ok || e.Stale != nil || err != nil || d.Snapshot.Len() > 12 {
				t.Fatalf("%q, %v", paths(d.Snapshot), err)
			}
		}
		if scans := w.sim.Calls(w.root, simfs.OpStat); scans > 3001 || deltas < 2900 {
			t.Errorf("%d scans in a minute gave %d changes", scans, deltas)
		}
	})
}
