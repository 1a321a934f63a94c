package scanner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spf13/afero"
)

// BenchmarkScan sets ways of looking at a tree against a floor, which is what the system itself takes: for a poll in which nothing has changed one
// fstatat for each directory, for all others getdents of each. Directories have 100 entries, two of them sockets, but for trees of one directory.
// The reads that come due within FullEvery are not in an "unchanged" poll: it is measured right after the directories have settled. One of them is in
// "one-due", and in "real-pace" as many as there are in each poll at the default interval.
func BenchmarkScan(b *testing.B) {
	for _, place := range []string{"disk", "tmpfs"} {
		b.Run(place, func(b *testing.B) {
			dir := placeOn(place)
			if dir == "" {
				b.Skipf("neither %s nor /dev/shm is on a %s: TMPDIR may name a directory that is", os.TempDir(), place) //nolint:usetesting // the filesystem matters
			}
			for _, size := range []struct{ dirs, entries, sockets int }{{0, 20, 20}, {0, 1000, 20}, {100, 100, 2}, {1000, 100, 2}} {
				b.Run(strconv.Itoa(max(size.dirs, 1)*size.entries), func(b *testing.B) {
					w := osWorldIn(b, dir)
					benchmarkTree(b, w.root, treeOf(w, size.dirs, size.entries, size.sockets), max(size.dirs, 1)*size.sockets)
				})
			}
		})
	}
}

// BenchmarkFiles sets an unchanged poll of a configuration directory, in which every file of 2 KiB is read, against a floor: open, fstat, read and close of
// each file, and getdents of the directory.
func BenchmarkFiles(b *testing.B) {
	for _, place := range []string{"disk", "tmpfs"} {
		for _, files := range []int{3, 20} {
			b.Run(fmt.Sprintf("%s/%d", place, files), func(b *testing.B) {
				dir := placeOn(place)
				if dir == "" {
					b.Skip("there is no directory on a " + place)
				}
				w := osWorldIn(b, dir)
				var list []string
				for i := range files {
					list = append(list, w.path(fmt.Sprintf("%02d-network.conflist", i)))
					w.must(os.WriteFile(list[i], make([]byte, 2<<10), 0o644))
				}
				s := newScanner(b, Config{Root: w.root, Select: Files(".conf", ".conflist", ".json"), MaxDepth: 1})
				last := scanOK(b, s, nil)
				buffer := make([]byte, 32<<10)
				b.ReportAllocs()
				against(b, func() { listAll(b, []string{w.root}, buffer); readAll(b, list, buffer) }, func() {
					if scanOK(b, s, last) != last {
						b.Fatal("nothing changed, and the Snapshot did")
					}
				})
			})
		}
	}
}

// placeOn returns a directory on disk or tmpfs, empty if there is none.
func placeOn(place string) string {
	for _, dir := range []string{os.TempDir(), "/dev/shm"} { //nolint:usetesting // the filesystem matters
		if _, err := os.Stat(dir); err == nil && onTmpfs(dir) == (place == "tmpfs") {
			return dir
		}
	}
	return ""
}

func benchmarkTree(b *testing.B, root string, dirs []string, sockets int) {
	cfg := Config{Root: root, MaxEntries: -1}
	b.Run("unchanged", func(b *testing.B) {
		s := newScanner(b, cfg)
		last := settled(b, s)
		against(b, func() { statAll(b, dirs) }, func() {
			if scanOK(b, s, last) != last {
				b.Fatal("nothing changed, and the Snapshot did")
			}
		})
	})
	for name, due := range map[string]int{"one-due": 1, "real-pace": len(dirs) * int(DefaultInterval) / int(FullEvery)} {
		if due == 0 {
			continue
		}
		b.Run(name, func(b *testing.B) { benchmarkDue(b, cfg, dirs, due) })
	}
	system := afero.NewOsFs()
	for _, way := range []struct {
		name string
		look func(b *testing.B) error
	}{
		{"first", func(b *testing.B) error {
			if scanOK(b, newScanner(b, cfg), nil).Len() != sockets {
				b.Fatal("sockets are missing")
			}
			return nil
		}},
		{"filepath.WalkDir", func(*testing.B) error {
			return filepath.WalkDir(root, func(_ string, _ fs.DirEntry, err error) error { return err })
		}},
		{"afero.ReadDir", func(*testing.B) (err error) {
			for i := 0; i < len(dirs) && err == nil; i++ {
				_, err = afero.ReadDir(system, dirs[i])
			}
			return err
		}},
		{"afero.Walk", func(*testing.B) error {
			return afero.Walk(system, root, func(_ string, _ fs.FileInfo, err error) error { return err })
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			buffer := make([]byte, 32<<10)
			against(b, func() { listAll(b, dirs, buffer) }, func() {
				if err := way.look(b); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// benchmarkDue is a poll of an unchanged tree in which so many directories are due to be read. Beside the usual ratio to one fstatat for each
// directory it reports the one to that and getdents of those that are due.
func benchmarkDue(b *testing.B, cfg Config, dirs []string, due int) {
	s := newScanner(b, cfg)
	last := settled(b, s)
	buffer := make([]byte, 32<<10)
	next := 0
	list := make([]string, due)
	var floors, polls, ratios, withReads []float64
	for b.Loop() {
		for i := range s.memory.dirs {
			s.memory.dirs[i].fullRead = time.Now().Add(time.Hour)
		}
		for i := range due {
			next = (next + 1) % len(dirs)
			s.memory.dirs[next].fullRead = time.Time{}
			list[i] = s.memory.dirs[next].path
		}
		began := time.Now()
		statAll(b, dirs)
		floor := float64(time.Since(began))
		listAll(b, list, buffer)
		reads := float64(time.Since(began))
		began = time.Now()
		if scanOK(b, s, last) != last {
			b.Fatal("nothing changed, and the Snapshot did")
		}
		poll := float64(time.Since(began))
		floors, polls, ratios, withReads = append(floors, floor/1e3), append(polls, poll/1e3), append(ratios, poll/floor), append(withReads, poll/reads)
	}
	b.ReportMetric(0, "ns/op") // it would be all together
	b.ReportMetric(median(floors), "floor-µs")
	b.ReportMetric(median(polls), "look-µs")
	b.ReportMetric(median(ratios), "look/floor")
	b.ReportMetric(median(withReads), "look/floor+reads")
}

// against measures a look and its floor turn by turn, because the speed of a shared machine varies, and reports the medians.
func against(b *testing.B, floor, look func()) {
	var floors, looks, ratios []float64
	for b.Loop() {
		began := time.Now()
		floor()
		between := time.Now()
		look()
		f, l := between.Sub(began), time.Since(between)
		floors, looks = append(floors, float64(f)/1e3), append(looks, float64(l)/1e3)
		ratios = append(ratios, float64(l)/float64(f))
	}
	b.ReportMetric(0, "ns/op") // it would be both together
	b.ReportMetric(median(floors), "floor-µs")
	b.ReportMetric(median(looks), "look-µs")
	b.ReportMetric(median(ratios), "look/floor")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// treeOf fills the root with directories of so many entries, the first of them sockets, or if dirs is 0 with the entries themselves. It returns
// the root and the directories.
func treeOf(w *world, dirs, entries, sockets int) []string {
	list, in := []string{w.root}, []string{""}
	if dirs > 0 {
		in = nil
	}
	for i := range dirs {
		dir := fmt.Sprintf("dir-%04d", i)
		w.must(os.Mkdir(w.path(dir), 0o755))
		list, in = append(list, w.path(dir)), append(in, dir+"/")
	}
	for _, dir := range in {
		for i := range sockets {
			w.must(w.bind(fmt.Sprintf("%splugin-%02d.sock", dir, i)))
		}
		for i := range entries - sockets {
			w.must(os.WriteFile(w.path(fmt.Sprintf("%sfile-%05d", dir, i)), nil, 0o644))
		}
	}
	return list
}

// settled scans until nothing is read any more.
func settled(t testing.TB, s *Scanner) *Snapshot {
	if runtime.GOOS != "linux" {
		t.Skip("here directories are read at each poll")
	}
	last := scanOK(t, s, nil)
	for deadline := time.Now().Add(time.Minute); ; {
		last = scanOK(t, s, last)
		waiting := false
		for _, d := range s.memory.dirs {
			waiting = waiting || !d.settling.settled
		}
		if !waiting {
			return last
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not settle")
		}
	}
}
