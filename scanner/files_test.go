package scanner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// filesText says what was found, one entry after the other.
func filesText(w *world, s *Snapshot) string {
	var list []string
	for e := range s.All() {
		text := strings.TrimPrefix(entryText(e), w.root+"/")
		if e.Stale != nil {
			text = "[" + text + "]"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// CN1: a name is a candidate by its extension, letter by letter.
func TestSelectorMatches(t *testing.T) {
	s := Files(".conf", ".conflist", ".json")
	for name, want := range map[string]bool{
		"10-a.conf": true, "a.conflist": true, "a.json": true, "a.b.json": true, "a b\n.conf": true, "\xff.conf": true,
		"a": false, "conf": false, "a.CONF": false, "a.conf~": false, "a.conf.bak": false, "a.conf.": false, "a.con": false, "a.conflists": false, "": false, ".": false,
	} {
		if got := s.matches(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestSelectorCheck(t *testing.T) {
	for _, test := range []struct {
		s    Selector
		want string // empty: it is good
	}{
		{Selector{}, ""},
		{Files(".conf"), ""},
		{Files(".conf", ".conflist", ".json"), ""},
		{Files(), "names no extension"},
		{Files("conf"), `extension "conf"`},
		{Files(".conf", ""), `extension ""`},
		{Files(".tar.gz"), `extension ".tar.gz"`},
		{Files("/.conf"), `extension "/.conf"`},
		{Files("*.conf"), `extension "*.conf"`},
	} {
		_, err := New(Config{Root: "/r", Select: test.s})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%v: %v", test.s, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "Config.Select")):
			t.Errorf("%v: %v, want %s", test.s, err, test.want)
		}
	}
	extensions := []string{".conf"}
	s := Files(extensions...)
	extensions[0] = ".json"
	if !s.matches("a.conf") {
		t.Error("the extensions are the caller's")
	}
}

func TestFileTexts(t *testing.T) {
	for size, want := range map[int64]string{
		MaxFileSize + 1: "1.1 MiB, the limit is 1 MiB", 1258291: "1.2 MiB, the limit is 1 MiB", 50 << 20: "50 MiB, the limit is 1 MiB", 50<<20 + 1: "50.1 MiB, the limit is 1 MiB",
		0: "it has grown beyond the limit of 1 MiB",
	} {
		if got := tooLargeText(size); got != want {
			t.Errorf("%d: %s", size, got)
		}
	}
	for err, want := range map[error]string{
		&fs.PathError{Op: "open", Path: "/x\ny", Err: syscall.EACCES}: "permission denied",
		errors.New("two\nlines \x1b[31m"):                             `two\nlines \x1b[31m`,
	} {
		if got := errorText(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	if got := errorText(errors.New(strings.Repeat("x", 10_000))); len(got) > maxErrorText {
		t.Errorf("%d bytes", len(got))
	}
}

// CN2: of a rewrite to the same size with all the stamps that one can set set back, only the content tells.
func TestFilesSameStamps(t *testing.T) {
	test := func(t *testing.T, system afero.Fs, root string) {
		path := filepath.Join(root, "a.conf")
		at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		write := func(content string) {
			f, err := system.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
			if err == nil {
				_, err = f.WriteString(content)
				err = errors.Join(err, f.Close(), system.Chtimes(path, at, at))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write("first")
		s := newScanner(t, Config{FS: system, Root: root, Select: Files(".conf")})
		last := scanOK(t, s, nil)
		for _, content := range []string{"secnd", "third", "first"} {
			write(content)
			next := scanOK(t, s, last)
			if c := Diff(last, next); len(c) != 1 || c[0].Kind != Replaced || c[0].Entry.File.Content != content {
				t.Errorf("%s: %v", content, c)
			}
			last = next
			write(content)
			if scanOK(t, s, last) != last {
				t.Errorf("%s written again: the Snapshot changed", content)
			}
		}
	}
	t.Run("os", func(t *testing.T) { test(t, afero.NewOsFs(), t.TempDir()) })
	t.Run("memory", func(t *testing.T) { test(t, afero.NewMemMapFs(), "/") })
	t.Run("base path", func(t *testing.T) { test(t, afero.NewBasePathFs(afero.NewOsFs(), t.TempDir()), "/") })
	t.Run("coarse", func(t *testing.T) {
		sim := simfs.New(simfs.Config{Granularity: time.Hour, Stable: true})
		defer sim.Close()
		test(t, sim, "/")
	})
}

// CN3: a file may have a size; a larger one is not read.
func TestFilesTooLarge(t *testing.T) {
	for name := range worlds {
		inWorld(t, name, false, func(w *world) {
			write := func(name string, size int64) {
				f, err := w.fs.Create(w.path(name))
				w.must(err)
				w.must(errors.Join(f.Truncate(size), f.Close()))
			}
			write("a.conf", MaxFileSize)
			write("b.conf", MaxFileSize+1)
			write("c.conf", leastContent)
			write("d.conf", 50<<20)
			s := newScanner(w.t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			last := scanOK(w.t, s, nil)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*MaxFileSize {
				w.t.Errorf("the scan took %d bytes of memory", took)
			}
			for name, want := range map[string]File{
				"a.conf": {Content: strings.Repeat("\x00", MaxFileSize)}, "b.conf": {"", ProblemTooLarge, "1.1 MiB, the limit is 1 MiB"},
				"c.conf": {Content: strings.Repeat("\x00", leastContent)}, "d.conf": {"", ProblemTooLarge, "50 MiB, the limit is 1 MiB"},
			} {
				if e, _ := last.At(w.path(name)); e.File == nil || *e.File != want {
					w.t.Errorf("%s: %d bytes, %s: %s", name, len(e.File.Content), e.File.Problem, e.File.Detail)
				}
			}
			if scanOK(w.t, s, last) != last {
				w.t.Error("nothing changed, and the Snapshot did")
			}
		})
	}
}

// CN3: a file that grows while it is read, and never ends, or ends in an error, is read no further than it may be.
func TestFilesEndless(t *testing.T) {
	for name, test := range map[string]struct {
		read func(read int, p []byte) (int, error)
		want File
	}{
		"endless":       {func(_ int, p []byte) (int, error) { return len(p), nil }, File{"", ProblemTooLarge, "it has grown beyond the limit of 1 MiB"}},
		"byte by byte":  {func(n int, p []byte) (int, error) { return copy(p, "x"), ending(n, 20_000) }, File{Content: strings.Repeat("x", 20_000)}},
		"no bytes":      {func(n int, p []byte) (int, error) { return copy(p, "xyz"[min(n, 3):]), nil }, File{Content: "xyz"}},
		"end with data": {func(_ int, p []byte) (int, error) { return copy(p, "xyz"), io.EOF }, File{Content: "xyz"}},
		"error":         {func(n int, p []byte) (int, error) { return copy(p, "x"), ending(n, -3) }, File{"", ProblemUnreadable, "input/output error"}},
	} {
		t.Run(name, func(t *testing.T) {
			system := readFS{Fs: afero.NewMemMapFs(), read: test.read}
			if err := afero.WriteFile(system, "/r/a.conf", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			next := scanOK(t, newScanner(t, Config{FS: system, Root: "/r", Select: Files(".conf")}), nil)
			if e, _ := next.At("/r/a.conf"); e.File == nil || *e.File != test.want {
				t.Errorf("%d entries; %.100v", next.Len(), e.File)
			}
		})
	}
}

// ending is io.EOF once n bytes were read before this one, or for a negative n an error.
func ending(read, n int) error {
	switch read + 1 {
	case n:
		return io.EOF
	case -n:
		return syscall.EIO
	}
	return nil
}

// readFS reads as it is told; it is given how many bytes were read before.
type readFS struct {
	afero.Fs
	read func(read int, p []byte) (int, error)
}

func (f readFS) Open(name string) (afero.File, error) {
	file, err := f.Fs.Open(name)
	return &readFile{File: file, fs: f}, err
}

type readFile struct {
	afero.File
	fs readFS
	n  int
}

func (f *readFile) Read(p []byte) (int, error) {
	n, err := f.fs.read(f.n, p)
	f.n += n
	return n, err
}

// CN3: the first MaxFiles are read, those of the root before those below it.
func TestFilesTooMany(t *testing.T) {
	for name := range worlds {
		inWorld(t, name, false, func(w *world) {
			w.must(w.fs.Mkdir(w.path("a"), 0o755))
			w.must(w.fs.Mkdir(w.path("b"), 0o755))
			for i := range MaxFiles - 3 {
				w.must(w.op([]string{"write", fmt.Sprintf("r%03d.conf", i)}))
			}
			w.must(w.op(strings.Fields("link nothing s.conf")))
			for _, name := range []string{"a/3.conf", "a/1.conf", "a/2.conf", "b/1.conf"} {
				w.must(w.op([]string{"write", name}))
			}
			s := newScanner(w.t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
			unread := func(s *Snapshot) (list []string) {
				for e := range s.All() {
					if e.File.Problem == ProblemTooMany && e.File.Detail == "only the first 256 are read" {
						list = append(list, strings.TrimPrefix(e.Path, w.root+"/"))
					}
				}
				return list
			}
			opened := func() int {
				if w.sim == nil {
					return 0
				}
				return w.sim.Calls(w.path("a/3.conf"), simfs.OpOpen)
			}
			before := opened()
			last := scanOK(w.t, s, nil)
			if got := unread(last); !slices.Equal(got, []string{"a/3.conf", "b/1.conf"}) || last.Len() != MaxFiles+2 {
				w.t.Errorf("%d found, not read: %q", last.Len(), got)
			}
			if opened() != before {
				w.t.Error("one too many was opened")
			}
			if scanOK(w.t, s, last) != last {
				w.t.Error("nothing changed, and the Snapshot did")
			}
			w.must(w.op(strings.Fields("write q.conf")))
			if last = scanOK(w.t, s, last); !slices.Equal(unread(last), []string{"a/2.conf", "a/3.conf", "b/1.conf"}) {
				w.t.Errorf("one more: %q", unread(last))
			}
			w.must(w.op(strings.Fields("rm a")))
			if last = scanOK(w.t, s, last); len(unread(last)) != 0 {
				w.t.Errorf("fewer: %q", unread(last))
			}
		})
	}
}

// A Snapshot holds one *File for as long as a file does not change, and a Scanner takes over what another one has read.
func TestFilesKept(t *testing.T) {
	w := osWorld(t)
	w.must(w.op(strings.Fields("write a.conf 1")))
	w.must(w.op(strings.Fields("write b.conf 1")))
	w.must(w.op(strings.Fields("link nothing c.conf")))
	cfg := Config{FS: w.fs, Root: w.root, Select: Files(".conf")}
	first := scanOK(t, newScanner(t, cfg), nil)
	w.must(w.op(strings.Fields("write b.conf 2")))
	next := scanOK(t, newScanner(t, cfg), first)
	for _, name := range []string{"a.conf", "c.conf"} {
		was, _ := first.At(w.path(name))
		is, _ := next.At(w.path(name))
		if was.File == nil || was.File != is.File || was.ID != (Identity{}) {
			t.Errorf("%+v, then %+v", was, is)
		}
	}
	w.must(w.fs.Remove(w.path("c.conf")))
	first, next = scanOK(t, newScanner(t, cfg), nil), scanOK(t, newScanner(t, cfg), next)
	if got, want := filesText(w, first)+"; "+filesText(w, next), `a.conf "1", b.conf "2"; a.conf "1", b.conf "2"`; got != want {
		t.Error(got)
	}
	same := NewSnapshot([]Entry{{Path: w.path("a.conf"), File: &File{Content: "1"}}, {Path: w.path("b.conf"), File: &File{Content: "2"}}}, nil)
	if c := Diff(first, same); len(c) != 0 {
		t.Errorf("equal files differ: %v", c)
	}
	if c := Diff(same, NewSnapshot([]Entry{{Path: w.path("a.conf")}, {Path: w.path("b.conf"), File: &File{Problem: ProblemDangling}}}, nil)); len(c) != 2 {
		t.Errorf("other files are no change: %v", c)
	}
}

// A Snapshot of sockets is one of another world: nothing of it stays, be its names now those of candidates or of other things.
func TestFilesAfterSockets(t *testing.T) {
	for name := range worlds {
		inWorld(t, name, false, func(w *world) {
			for _, op := range []string{"mkdir ../d", "bind a", "bind b", "bind c", "bind d.conf", "bind ../s", "link ../s e"} {
				w.must(w.op(strings.Fields(op)))
			}
			last := scanOK(w.t, newScanner(w.t, Config{FS: w.fs, Root: w.root}), nil)
			for _, op := range []string{"rm b", "link ../d b", "rm c", "link nothing c", "rm d.conf", "write d.conf d"} {
				w.must(w.op(strings.Fields(op)))
			}
			next := scanOK(w.t, newScanner(w.t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")}), last)
			if got := filesText(w, next); last.Len() != 5 || got != `d.conf "d"` {
				w.t.Errorf("%d sockets, then %s", last.Len(), got)
			}
		})
	}
}

// A Look does not read files, and says so.
func TestFilesLook(t *testing.T) {
	w := osWorld(t)
	w.must(w.op(strings.Fields("write a.conf 1")))
	s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
	_, err := s.Look(t.Context(), w.path("a.conf"))
	if _, ok := errors.AsType[*Error](err); !ok || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "selects files") {
		t.Error(err)
	}
	if p, err := s.Polling(t.Context()); err != nil || p.SkipsUnchanged || !strings.Contains(p.Why, "file") || p.Settle != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// U4: a call on a file hangs. What is known of it stays, nothing else is held up, and it heals when the call has returned.
func TestFilesHang(t *testing.T) {
	const all = `0s: a.conf b.conf l.conf n/c.conf`
	for _, test := range []struct {
		name string
		op   simfs.Op
		says string
	}{
		{"b.conf", simfs.OpStat, "stat b.conf"},
		{"b.conf", simfs.OpOpen, "open b.conf"},
		{"b.conf", simfs.OpRead, "read b.conf"},
		{"l.conf", simfs.OpStat, "stat l.conf"},
		{"l.conf", simfs.OpOpen, "open l.conf"},
		{"l.conf", simfs.OpRead, "read l.conf"},
		{"n/c.conf", simfs.OpRead, "read n/c.conf"},
		{"n", simfs.OpStat, "stat n"},
		{"n", simfs.OpList, "list n"},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s, known %v", test.op, test.name, known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := simWorld(t, simfs.Config{})
					for _, op := range []string{"write a.conf a", "write b.conf b", "write ../out o", "link ../out l.conf", "mkdir ../net", "write ../net/c.conf c", "link ../net n"} {
						w.must(w.op(strings.Fields(op)))
					}
					s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf"), MaxDepth: 1})
					var last *Snapshot
					name := test.name
					if name == "n" {
						name = "n/c.conf"
					}
					want := strings.Replace(all, " "+name, "", 1)
					if known {
						last = scanOK(t, s, nil)
						want = strings.Replace(all, name, "["+name+"]", 1)
					}
					want += "; " + test.says + ": no answer for 5s"
					was, _ := last.At(w.path(name))
					before := w.sim.Calls(w.path(test.name), test.op)
					release := w.hang(test.name, test.op)
					last, got := w.look(s, last)
					if got != strings.Replace(want, "0s", "5s", 1) || stuckText(s) != test.says {
						t.Errorf("it hangs: %s, want %s; stuck is %s", got, want, stuckText(s))
					}
					if is, _ := last.At(w.path(name)); is.File != was.File {
						t.Errorf("known was %v, and now %v", was.File, is.File)
					}
					w.must(w.op(strings.Fields("write a.conf A")))
					w.wait(time.Minute)
					last, got = w.look(s, last)
					if e, _ := last.At(w.path("a.conf")); got != want || e.File.Content != "A" {
						t.Errorf("it still hangs: %s", got)
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

// S3: a file whose open or read has returned after it was given up is closed.
func TestFilesHangClosed(t *testing.T) {
	for _, op := range []simfs.Op{simfs.OpOpen, simfs.OpRead} {
		synctest.Test(t, func(t *testing.T) {
			w := simWorld(t, simfs.Config{ReuseInodes: true})
			w.must(w.op(strings.Fields("write a.conf a")))
			s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
			info, err := w.fs.Stat(w.path("a.conf"))
			w.must(err)
			release := w.hang("a.conf", op)
			_, _ = w.look(s, nil)
			release()
			synctest.Wait()
			// Its inode is used again only if nobody has it open.
			w.must(w.fs.Remove(w.path("a.conf")))
			w.must(w.op(strings.Fields("write b.conf b")))
			again, err := w.fs.Stat(w.path("b.conf"))
			w.must(err)
			if StampOf(info).Inode != StampOf(again).Inode {
				t.Errorf("%s: the file is open", op)
			}
		})
	}
}

// Half of MaxFiles hang, one after the other: those after the first MaxFiles do not come and go because of it.
func TestFilesHangTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{})
		for i := range MaxFiles + 1 {
			w.must(w.op([]string{"write", fmt.Sprintf("%03d.conf", i)}))
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
		last := scanOK(t, s, nil)
		release := w.hang("007.conf", simfs.OpOpen)
		for range 3 {
			next, err := s.Scan(t.Context(), last)
			if c := Diff(last, next); len(c) > 0 || err == nil {
				t.Errorf("%v, %v", c, err)
			}
			last = next
		}
		release()
	})
}
