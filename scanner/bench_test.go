package scanner

import (
	"fmt"
	"os"
	"testing"
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
