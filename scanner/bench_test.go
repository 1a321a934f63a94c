package scanner

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// BenchmarkScan looks at one directory on the operating system's filesystem: 20 sockets, alone or among files that are none.
func BenchmarkScan(b *testing.B) {
	for _, entries := range []int{20, 1000, 10_000} {
		w := osWorld(b)
		for i := range entries {
			if i < 20 {
				w.must(w.bind(fmt.Sprintf("plugin-%02d.sock", i)))
			} else {
				w.must(os.WriteFile(w.path(fmt.Sprintf("file-%05d", i)), nil, 0o644))
			}
		}
		s := newScanner(b, Config{Root: w.root})
		b.Run(fmt.Sprintf("first/%d", entries), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if scanOK(b, s, nil).Len() != 20 {
					b.Fatal("sockets are missing")
				}
			}
		})
		b.Run(fmt.Sprintf("repeated/%d", entries), func(b *testing.B) {
			b.ReportAllocs()
			last := scanOK(b, s, nil)
			for b.Loop() {
				if scanOK(b, s, last) != last {
					b.Fatal("nothing changed, and the Snapshot did")
				}
			}
		})
	}
}

// BenchmarkUnchanged polls a tree in which nothing happens: directories of 100 entries, two of them sockets. The floor is what the system asks
// for one stat per directory. Full reads come due during it as they do in life.
func BenchmarkUnchanged(b *testing.B) {
	for _, dirs := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(dirs*100), func(b *testing.B) {
			w := osWorld(b)
			list := treeOf(w, dirs)
			s := newScanner(b, Config{Root: w.root, MaxEntries: -1})
			last := settled(b, s)
			b.Run("scan", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if scanOK(b, s, last) != last {
						b.Fatal("nothing changed, and the Snapshot did")
					}
				}
			})
			b.Run("floor", func(b *testing.B) {
				for b.Loop() {
					statAll(b, list)
				}
			})
			b.Run("ratio", func(b *testing.B) {
				// Turn by turn, because the speed of a shared machine varies.
				var scans, floors time.Duration
				for b.Loop() {
					t := time.Now()
					scanOK(b, s, last)
					scans += time.Since(t)
					t = time.Now()
					statAll(b, list)
					floors += time.Since(t)
				}
				b.ReportMetric(float64(scans)/float64(floors), "scan/floor")
			})
		})
	}
}

// treeOf fills the root with directories, and returns the root and them.
func treeOf(w *world, dirs int) []string {
	list := []string{w.root}
	for i := range dirs {
		dir := fmt.Sprintf("dir-%04d", i)
		w.must(os.Mkdir(w.path(dir), 0o755))
		list = append(list, w.path(dir))
		for j := range 98 {
			w.must(os.WriteFile(w.path(fmt.Sprintf("%s/file-%02d", dir, j)), nil, 0o644))
		}
		w.must(w.bind(dir + "/a.sock"))
		w.must(w.bind(dir + "/b.sock"))
	}
	return list
}

// settled scans until nothing is read any more.
func settled(t testing.TB, s *Scanner) *Snapshot {
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
