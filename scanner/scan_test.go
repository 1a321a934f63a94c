package scanner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"
	"github.com/spf13/afero/mem"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

func newScanner(t testing.TB, c Config) *Scanner {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scanOK scans without an error.
func scanOK(t testing.TB, s *Scanner, last *Snapshot) *Snapshot {
	t.Helper()
	next, err := s.Scan(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func paths(s *Snapshot) []string {
	list := []string{}
	for e := range s.All() {
		list = append(list, e.Path)
	}
	return list
}

// memSocket makes a socket as MemMapFs can have one: its own calls drop the type.
func memSocket(t testing.TB, m afero.Fs, path string) {
	t.Helper()
	f, err := m.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	mem.SetMode(f.(*mem.File).Data(), fs.ModeSocket|0o755)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMemMapFs(t *testing.T) {
	m := afero.NewMemMapFs()
	memSocket(t, m, "/r/a")
	memSocket(t, m, "/r/d/b")
	memSocket(t, m, "/r/d/.c")
	if err := afero.WriteFile(m, "/r/f", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := newScanner(t, Config{FS: m, Root: "/r"})
	first := scanOK(t, s, nil)
	want := []string{"/r/a", "/r/d/b"}
	if got := paths(first); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if next := scanOK(t, s, first); next != first {
		t.Errorf("an unchanged tree gave another Snapshot: %v", Diff(first, next))
	}
	if err := m.RemoveAll("/r/d"); err != nil {
		t.Fatal(err)
	}
	if got := paths(scanOK(t, s, first)); !slices.Equal(got, want[:1]) {
		t.Errorf("after the removal of d: %q", got)
	}
}

// I5: MemMapFs's FileInfo changes with the file; a Snapshot does not.
func TestSnapshotHoldsCopies(t *testing.T) {
	m := afero.NewMemMapFs()
	memSocket(t, m, "/r/a")
	s := newScanner(t, Config{FS: m, Root: "/r"})
	first := scanOK(t, s, nil)
	before, _ := first.At("/r/a")
	at := time.Unix(12345, 678)
	if err := m.Chtimes("/r/a", at, at); err != nil {
		t.Fatal(err)
	}
	if after, _ := first.At(before.Path); after != before {
		t.Errorf("the Snapshot changed from %v to %v", before, after)
	}
	changes := Diff(first, scanOK(t, s, first))
	if len(changes) != 1 || changes[0].Kind != Replaced || changes[0].Entry.ID.ModTime != at.UnixNano() {
		t.Errorf("changes %v, want a replaced by one of %v", changes, at)
	}
}

// I1: what each filesystem tells is in the identity, what it cannot tell is zero.
func TestIdentity(t *testing.T) {
	at := time.Unix(1000, 1)
	for name, test := range map[string]struct {
		detail simfs.Detail
		want   Stamp
	}{
		"full":           {simfs.FullDetail, Stamp{Device: 1, Inode: 3, ModTime: 1000_000_000_001, ChangeTime: 1000_000_000_001, Type: fs.ModeSocket}},
		"no change time": {simfs.NoChangeTime, Stamp{Device: 1, Inode: 3, ModTime: 1000_000_000_001, Type: fs.ModeSocket}},
		"none":           {simfs.NoDetail, Stamp{ModTime: 1000_000_000_001, Type: fs.ModeSocket}},
	} {
		t.Run(name, func(t *testing.T) {
			sim := simfs.New(simfs.Config{Detail: test.detail, Now: func() time.Time { return at }})
			defer sim.Close()
			if err := errors.Join(sim.Mkdir("/r", 0o755), sim.Mknod("/r/s", fs.ModeSocket)); err != nil {
				t.Fatal(err)
			}
			e, _ := scanOK(t, newScanner(t, Config{FS: sim, Root: "/r"}), nil).At("/r/s")
			// Only that there is an inode counts.
			if test.want.Inode != 0 && e.ID.Inode != 0 {
				e.ID.Inode = test.want.Inode
			}
			if diff := cmp.Diff(Identity{Stamp: test.want}, e.ID); diff != "" {
				t.Error(diff)
			}
		})
	}
	if s := stampOf(timeless{}); s != (Stamp{}) {
		t.Errorf("a file without a time has the stamp %+v", s)
	}
}

type timeless struct{ fs.FileInfo }

func (timeless) Mode() fs.FileMode  { return 0o644 }
func (timeless) ModTime() time.Time { return time.Time{} }
func (timeless) Sys() any           { return nil }

func TestIdentityOfOS(t *testing.T) {
	w := osWorld(t)
	w.must(w.bind("a"))
	e, _ := scanOK(t, newScanner(t, Config{Root: w.root}), nil).At(w.path("a"))
	info, err := os.Lstat(w.path("a"))
	w.must(err)
	if e.ID.ModTime != info.ModTime().UnixNano() || e.ID.Device == 0 || e.ID.Inode == 0 || e.ID.ChangeTime < e.ID.ModTime || e.ID.Link != (Stamp{}) {
		t.Errorf("identity %+v of a file with the time %v", e.ID, info.ModTime())
	}
}

// The identity of a link covers both (D5).
func TestIdentityOfLink(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.bind("a"))
	w.must(w.link("a", "l"))
	s := scanOK(t, newScanner(t, Config{FS: w.fs, Root: w.root}), nil)
	a, _ := s.At(w.path("a"))
	l, _ := s.At(w.path("l"))
	if l.ID.Stamp != a.ID.Stamp || l.ID.Link.Inode == 0 || l.ID.Link.Inode == a.ID.Inode || l.ID.Link.Type != fs.ModeSymlink {
		t.Errorf("the socket is %+v, the link %+v", a.ID, l.ID)
	}
}

// D4: a Scanner with a lower MaxDepth lets go of what it would not find, though the directory is there.
func TestLowerDepth(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("d/a"))
	first := scanOK(t, newScanner(t, Config{FS: w.fs, Root: w.root}), nil)
	if next := scanOK(t, newScanner(t, Config{FS: w.fs, Root: w.root, MaxDepth: -1}), first); first.Len() != 1 || next.Len() != 0 {
		t.Errorf("%q, then %q", paths(first), paths(next))
	}
}

// A root is taken as it is written, but for separators at its end.
func TestRootForms(t *testing.T) {
	w := osWorld(t)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("d/a"))
	t.Chdir(w.root)
	for root, want := range map[string]string{
		"d": "d/a", "d/": "d/a", "./d//": "./d/a", ".": "./d/a", "d/../d": "d/../d/a", w.root + "/d": w.root + "/d/a",
	} {
		s := newScanner(t, Config{Root: root})
		first := scanOK(t, s, nil)
		if got := paths(first); !slices.Equal(got, []string{want}) || s.Root() != root {
			t.Errorf("root %q: %q, want %q", root, got, want)
		}
		if scanOK(t, s, first) != first {
			t.Errorf("root %q: its own entries are not known again", root)
		}
	}
	for root, want := range map[string]string{"/": "/a", "//": "/a", "/x": "/x/a"} {
		if got := join(trimRoot(root), "a"); got != want {
			t.Errorf("root %q: %q", root, got)
		}
	}
}

func TestSeparator(t *testing.T) {
	for dir, want := range map[string]string{`C:\x`: `\`, `C:`: `\`, `C:/x`: "/", `C:/x\y`: `\`, `\\?\C:\x`: `\`, "/r": "/"} {
		if got := separator("windows", dir); got != want {
			t.Errorf("below %s: %s", dir, got)
		}
	}
	if got := separator("linux", `/a\b`); got != "/" {
		t.Errorf("on Linux: %s", got)
	}
}

// One Trace line per scan, without a raw path (O1, D10).
func TestLog(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	root := w.path("a\nb")
	w.must(w.fs.Mkdir(root, 0o755))
	var out strings.Builder
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Trace, DisableTime: true})
	scanOK(t, newScanner(t, Config{FS: w.fs, Root: root, Logger: log}), nil)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "scanned") || !strings.Contains(got, "entries=0") {
		t.Errorf("the log is %q", got)
	}
}

// No Snapshot comes of a scan that was ended, not even a part of one.
func TestScanEnded(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	for i := range 10 {
		w.must(w.bind(fmt.Sprint("s", i)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	s := newScanner(t, Config{FS: w.fs, Root: w.root, Each: func(string, Verdict) {
		if seen++; seen == 3 {
			cancel()
		}
	}})
	last := &Snapshot{}
	if next, err := s.Scan(ctx, last); next != last || !errors.Is(err, context.Canceled) || seen != 3 {
		t.Errorf("%v, %v after %d entries", next, err, seen)
	}
	if next, err := s.Scan(ctx, last); next != last || !errors.Is(err, context.Canceled) || seen != 3 {
		t.Errorf("a scan under an ended context: %v, %v after %d entries", next, err, seen)
	}
	if next := scanOK(t, s, last); next.Len() != 10 {
		t.Errorf("the next scan found %d", next.Len())
	}
}

// U6: scans of one root never overlap, and one that waits for its turn heeds its context.
func TestScansTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		w.must(w.bind("a"))
		release := w.sim.Inject(w.root, simfs.OpList, simfs.Fault{Hang: true, Times: 1})
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		found := make(chan int, 2)
		for range 2 {
			go func() {
				next, err := s.Scan(t.Context(), nil)
				if err != nil {
					t.Error(err)
				}
				found <- next.Len()
			}()
		}
		synctest.Wait()
		if n := w.sim.Calls(w.root, simfs.OpList); n != 1 {
			t.Errorf("%d scans read the root at once", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last := &Snapshot{}
		if next, err := s.Scan(ctx, last); next != last || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting: %v, %v", next, err)
		}
		release()
		if a, b := <-found, <-found; a != 1 || b != 1 {
			t.Errorf("found %d and %d sockets", a, b)
		}
	})
}

// oddFS lists what it is told to.
type oddFS struct {
	afero.Fs
	lists [][]string // of Readdirnames, one a call
	dirs  [][]fs.DirEntry
	ends  error
}

type oddFile struct {
	afero.File
	fs   *oddFS
	n    int
	root bool
}

type oddDir struct{ *oddFile }

func (o *oddFS) Open(name string) (afero.File, error) {
	f, err := o.Fs.Open(name)
	odd := &oddFile{File: f, fs: o, root: filepath.Base(name) == "root"}
	if o.dirs != nil && odd.root {
		return oddDir{odd}, err
	}
	return odd, err
}

func (f *oddFile) Readdirnames(n int) ([]string, error) {
	if !f.root {
		return f.File.Readdirnames(n)
	}
	if f.n == len(f.fs.lists) {
		return nil, f.fs.ends
	}
	f.n++
	return f.fs.lists[f.n-1], nil
}

func (f oddDir) ReadDir(int) ([]fs.DirEntry, error) {
	f.n++
	if f.n == len(f.fs.dirs) {
		return f.fs.dirs[f.n-1], io.EOF // not what os does, but allowed to fs.ReadDirFile
	}
	return f.fs.dirs[f.n-1], nil
}

// Listings that keep less than the contract of os do not confuse the scan.
func TestOddListings(t *testing.T) {
	w := simWorld(t, simfs.Config{Entries: simfs.NoEntries})
	for _, name := range []string{"a", "b", "c"} {
		w.must(w.bind(name))
	}
	want := []string{w.path("a"), w.path("b"), w.path("c")}
	for name, ends := range map[string]error{"end of file": io.EOF, "an empty chunk": nil} {
		odd := &oddFS{Fs: w.fs, lists: [][]string{{"c", "a", "a"}, {"", "b", "c"}}, ends: ends}
		next := scanOK(t, newScanner(t, Config{FS: odd, Root: w.root, MaxEntries: 6}), nil)
		if got := paths(next); !slices.Equal(got, want) || len(next.Ignored()) != 0 {
			t.Errorf("%s: %q, %v", name, got, next.Ignored())
		}
	}
	info, err := w.fs.Stat(w.path("a"))
	w.must(err)
	odd := &oddFS{Fs: w.fs, dirs: [][]fs.DirEntry{{fs.FileInfoToDirEntry(info)}, {fs.FileInfoToDirEntry(info)}}}
	if got := paths(scanOK(t, newScanner(t, Config{FS: odd, Root: w.root}), nil)); !slices.Equal(got, want[:1]) {
		t.Errorf("entries with the end of file: %q", got)
	}
}

// noLstat is a filesystem that only follows links.
type noLstat struct{ afero.Fs }

// D5 without Lstat: the listing tells that it is a link, and Stat what it leads to.
func TestLinksWithoutLstat(t *testing.T) {
	w := simWorld(t, simfs.Config{})
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("s"))
	w.must(w.link("s", "ok"))
	w.must(w.link("d", "dir"))
	w.must(w.link("nothing", "dangling"))
	s := newScanner(t, Config{FS: noLstat{w.fs}, Root: w.root})
	first := scanOK(t, s, nil)
	if got := paths(first); !slices.Equal(got, []string{w.path("ok"), w.path("s")}) {
		t.Errorf("found %q", got)
	}
	var got []Reason
	for _, g := range first.Ignored() {
		got = append(got, g.Reason)
	}
	if !slices.Equal(got, []Reason{DanglingLink, LinkToDirectory}) {
		t.Errorf("ignored %q", got)
	}
	w.must(w.fs.Remove(w.path("s")))
	if next := scanOK(t, s, first); next.Len() != 0 {
		t.Errorf("after the socket's removal: %q", paths(next))
	}
}

// U3 with a real directory: os opens it, and entries come typed; more than one chunk of them.
func TestManyEntries(t *testing.T) {
	w := osWorld(t)
	for i := range 2*chunk + 7 {
		w.must(os.WriteFile(w.path(fmt.Sprintf("f%05d", i)), nil, 0o644))
	}
	w.must(w.bind("g"))
	next := scanOK(t, newScanner(t, Config{Root: w.root}), nil)
	if g := next.Ignored(); next.Len() != 1 || len(g) != 1 || g[0].Count != 2*chunk+7 || len(g[0].Examples) != maxExamples || g[0].Examples[19] != "f00019" {
		t.Errorf("%q, %v", paths(next), g)
	}
}

// U1 on the operating system: a directory without permission keeps what was known in it.
func TestUnreadableOS(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	w := osWorld(t)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("d/a"))
	s := newScanner(t, Config{Root: w.root})
	first := scanOK(t, s, nil)
	w.must(os.Chmod(w.path("d"), 0))
	next, err := s.Scan(t.Context(), first)
	if e, _ := next.At(w.path("d/a")); !errors.Is(err, fs.ErrPermission) || e.Stale == nil || !errors.Is(e.Stale.Err, fs.ErrPermission) {
		t.Errorf("%v: %+v", err, e)
	}
	w.must(os.Chmod(w.path("d"), 0o755))
	if e, _ := scanOK(t, s, next).At(w.path("d/a")); e.Stale != nil {
		t.Errorf("still stale: %v", e.Stale)
	}
}

func TestErrorText(t *testing.T) {
	bad := "/x/a\nb"
	for _, test := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: bad, Err: fs.ErrPermission}, `list "/x/a\nb": permission denied`},
		{&os.LinkError{Op: "link", Old: bad, New: bad, Err: fs.ErrExist}, `list "/x/a\nb": file already exists`},
		{&fs.PathError{Op: "open", Path: bad, Err: &fs.PathError{Op: "x", Path: bad, Err: fs.ErrClosed}}, `list "/x/a\nb": file already closed`},
		{errors.New("odd\x1b[31m\ntext"), `list "/x/a\nb": odd\x1b[31m\ntext`},
	} {
		err := &Error{Op: "list", Path: bad, Err: test.err}
		if err.Error() != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s, want %s", err, test.want)
		}
	}
	if text := (&Error{Op: "list", Path: "/x", Err: errors.New(strings.Repeat("y", 2000))}).Error(); len(text) > maxErrorText+20 {
		t.Errorf("a text of %d bytes", len(text))
	}
}

// contextEndedBy ends its context when the scan opens a directory.
func contextEndedBy(t *testing.T, w *world, name string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	w.sim.Inject(w.path(name), simfs.OpOpen, simfs.Fault{Times: 1, Hook: cancel})
	return ctx, cancel
}
