package scanner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// slowInfo takes its time to tell a type, which is no call of the filesystem.
type slowInfo struct {
	fs.FileInfo
	ask func()
}

func (i slowInfo) Mode() fs.FileMode {
	i.ask()
	return i.FileInfo.Mode()
}

func (i slowInfo) ModTime() time.Time {
	i.ask()
	return i.FileInfo.ModTime()
}

type slowInfoFS struct {
	*simfs.FS
	ask func()
}

func (f slowInfoFS) LstatIfPossible(name string) (os.FileInfo, bool, error) {
	info, real, err := f.FS.LstatIfPossible(name)
	if err == nil {
		info = slowInfo{info, f.ask}
	}
	return info, real, err
}

func (f slowInfoFS) Stat(name string) (os.FileInfo, error) {
	info, err := f.FS.Stat(name)
	if err == nil {
		info = slowInfo{info, f.ask}
	}
	return info, err
}

// What is left behind of a scan that was ended between two calls changes nothing that Scan returns, at whatever step it was. The race detector says so.
func TestScanEndedBetweenCalls(t *testing.T) {
	var steps atomic.Int64
	for step := int64(0); step <= steps.Load(); step++ { // the first scan is not ended
		sim := simfs.New(simfs.Config{})
		if err := errors.Join(sim.Mkdir("/p", 0o755), sim.Mknod("/p/a.sock", fs.ModeSocket|0o755)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var asked atomic.Int64
		s, err := New(Config{Root: "/p", FS: slowInfoFS{sim, func() {
			n := asked.Add(1)
			steps.Store(max(steps.Load(), n))
			if n == step {
				cancel()
				<-time.After(quitGrace + 20*time.Millisecond) // no channel of the test, which would order what comes after it
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Scan(ctx, nil); step > 0 && !errors.Is(err, context.Canceled) {
			t.Errorf("step %d: got %v, want the context's error", step, err)
		}
		<-time.After(50 * time.Millisecond)
		sim.Close()
	}
	if steps.Load() < 4 {
		t.Errorf("%d steps", steps.Load())
	}
}
