//go:build unix

package scanner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/afero"
)

// CN3: what is no regular file is not opened, whatever its name, and one that took a file's place a moment ago does not hold the scan up.
func TestFilesNotRegular(t *testing.T) {
	w := osWorld(t)
	for _, op := range []string{"fifo a.conf", "bind b.conf", "link a.conf c.conf", "link /dev/null d.conf", "link /dev/tty e.conf", "link b.conf f.conf", "write z.conf z"} {
		w.must(w.op(strings.Fields(op)))
	}
	s := newScanner(t, Config{FS: w.fs, Root: w.root, Select: Files(".conf")})
	last := scanOK(t, s, nil)
	want := "a.conf not regular: a fifo, b.conf not regular: a socket, c.conf not regular: a link to a fifo, d.conf not regular: a link to a device, " +
		`e.conf not regular: a link to a device, f.conf not regular: a link to a socket, z.conf "z"`
	if got := filesText(w, last); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if scanOK(t, s, last) != last {
		t.Error("nothing changed, and the Snapshot did")
	}
	c := &caller{fs: w.fs}
	for name, want := range map[string]string{"a.conf": "a fifo", "d.conf": "a device", ".": "a directory"} {
		if r := c.read(w.path(name)); r.err != nil || typeText(r.typ, false) != want {
			t.Errorf("%s in a file's place: %v, %v", name, r.typ, r.err)
		}
	}
	if r := c.read(w.path("b.conf")); r.err == nil {
		t.Errorf("a socket in a file's place: %v", r.typ)
	}
}

// One more way to the same: an afero filesystem that opens as os does is asked for the type first.
func TestFilesNotRegularElsewhere(t *testing.T) {
	w := osWorld(t)
	w.must(w.op(strings.Fields("fifo a.conf")))
	w.must(w.op(strings.Fields("link a.conf b.conf")))
	system := afero.NewBasePathFs(afero.NewOsFs(), w.root)
	if r := (&caller{fs: system}).read("/a.conf"); r.err != nil || typeText(r.typ, false) != "a fifo" {
		t.Errorf("a FIFO in a file's place: %v, %v", r.typ, r.err)
	}
	s := newScanner(t, Config{FS: system, Root: "/", Select: Files(".conf")})
	next := scanOK(t, s, nil)
	for e := range next.All() {
		if e.File.Problem != ProblemNotRegular {
			t.Errorf("%s: %+v", e.Path, e.File)
		}
	}
	if next.Len() != 2 {
		t.Errorf("%d entries", next.Len())
	}
}

// CN2: an unchanged poll does not allocate for a file but what open(2) takes to be handed a path, and makes no buffer to read into.
func TestFilesUnchangedAllocs(t *testing.T) {
	allocs := func(files int) (allocs float64, bytes uint64) {
		w := osWorld(t)
		for i := range files {
			w.must(os.WriteFile(filepath.Join(w.root, strings.Repeat("n", 40)+string(rune('a'+i))+".conf"), []byte(strings.Repeat("x", 4000)), 0o644))
		}
		s := newScanner(t, Config{Root: w.root, Select: Files(".conf")})
		last := scanOK(t, s, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocs = testing.AllocsPerRun(20, func() {
			if scanOK(t, s, last) != last {
				t.Fatal("nothing changed, and the Snapshot did")
			}
		})
		runtime.ReadMemStats(&after)
		return allocs, (after.TotalAlloc - before.TotalAlloc) / 21
	}
	few, bytes := allocs(3)
	many, _ := allocs(23)
	t.Logf("%v with 3 files, %v with 23; %d bytes", few, many, bytes)
	if (many-few)/20 > 1.2 {
		t.Errorf("a file more takes %.2f", (many-few)/20)
	}
	if few > 60 {
		t.Errorf("a poll takes %v", few)
	}
	if bytes > leastContent {
		t.Errorf("a poll takes %d bytes", bytes)
	}
}
