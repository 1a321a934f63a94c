package scanner

import (
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// closed counts what is closed.
type closed struct {
	afero.File
	n int
}

func (f *closed) Close() error { f.n++; return nil }

// S3: a caller that was given up between two calls closes what it has open.
func TestCloseWhenGivenUp(t *testing.T) {
	c := &caller{gone: true}
	f := &closed{}
	if c.close(f, "d"); f.n != 1 || c.calling {
		t.Errorf("closed %d times, calling: %v", f.n, c.calling)
	}
}

// U5: a root is missing too if something on the way to it has become a file.
func TestRootBehindAFile(t *testing.T) {
	now := time.Now()
	err := &Error{Op: "stat", Path: "p/root", Err: syscall.ENOTDIR}
	next, _, gone := judgeRoot(rootState{device: 1}, 0, err, true, time.Second, now)
	if gone || next.doubt.picture != rootMissing {
		t.Fatalf("at first: %+v, gone: %v", next, gone)
	}
	if _, _, gone = judgeRoot(next, 0, err, true, time.Second, now.Add(time.Second)); !gone {
		t.Error("it is not gone when its grace is over")
	}
}

// A link to a file that is written all the time does not have its directory read all the time.
func TestLinkToBusyFile(t *testing.T) {
	w := simWorld(t, simfs.Config{Stable: true})
	w.must(w.fs.Mkdir(w.path("../out"), 0o755))
	w.must(afero.WriteFile(w.fs, w.path("../out/log"), nil, 0o644))
	w.must(w.link("../out/log", "log"))
	s := newScanner(t, Config{FS: w.fs, Root: w.root})
	var last *Snapshot
	for range 4 {
		last = scanOK(t, s, last)
		w.wait(coarseSettleTime)
		w.must(afero.WriteFile(w.fs, w.path("../out/log"), []byte("more"), 0o644))
	}
	if n := w.sim.Calls(w.root, simfs.OpList); n != 2 {
		t.Errorf("4 scans read the root %d times", n)
	}
}
