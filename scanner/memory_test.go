package scanner

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// S4: what is kept grows with sockets and directories, not with files.
func TestMemoryOfFiles(t *testing.T) {
	w := osWorldIn(t, placeOn("tmpfs")) // or where temporary files go
	w.must(w.bind("a.sock"))
	s := newScanner(t, Config{Root: w.root, MaxEntries: -1})
	last := scanOK(t, s, nil)
	before := heap()
	const files = 100_000
	for i := range files {
		// Out of order: those that come first by name are all over the listing.
		w.must(os.WriteFile(w.path(fmt.Sprintf("file-%06d", i*7919%files)), nil, 0o644))
	}
	for range 3 {
		last = scanOK(t, s, last)
		w.wait(fineSettleTime)
	}
	after := heap()
	if last.Len() != 1 || len(last.Ignored()) != 1 || last.Ignored()[0].Count != files || len(last.Ignored()[0].Examples) != maxExamples {
		t.Fatalf("%d entries, ignored %+v", last.Len(), last.Ignored())
	}
	if after > before+64<<10 {
		t.Errorf("%d files take %d bytes", files, after-before)
	}
	runtime.KeepAlive(s)
}

// heap is what is in use. What was let go of for reuse goes with the second collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// An unchanged directory costs the one allocation of its path for the system, and a poll a few of its own.
func TestAllocationsUnchanged(t *testing.T) {
	var polls []float64
	for _, dirs := range []int{0, 100} {
		w := osWorld(t)
		treeOf(w, dirs, 5, 2)
		s := newScanner(t, Config{Root: w.root})
		last := settled(t, s)
		for i := range s.memory.dirs {
			s.memory.dirs[i].fullRead = time.Now().Add(time.Hour)
		}
		polls = append(polls, testing.AllocsPerRun(10, func() {
			if next := scanOK(t, s, last); next != last {
				t.Error("nothing changed, and the Snapshot did")
			}
		}))
	}
	if polls[0] > 50 || runtime.GOOS == "linux" && polls[1]-polls[0] > 100 {
		t.Errorf("a poll of the root alone, and of 100 directories in it, allocate %v times", polls)
	}
	t.Logf("allocations: %v", polls)
}
