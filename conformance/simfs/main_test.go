package simfs_test

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"
	"go.uber.org/goleak"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 6007008, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type identity interface {
	Identity() (device, inode uint64, changeTime time.Time)
}

func newFS(t *testing.T, cfg simfs.Config) *simfs.FS {
	t.Helper()
	node := simfs.New(cfg)
	t.Cleanup(node.Close)
	return node
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil) != (got == nil) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func write(t *testing.T, node afero.Fs, name, content string) {
	t.Helper()
	must(t, afero.WriteFile(node, name, []byte(content), 0o644))
}

func lstat(t *testing.T, node *simfs.FS, name string) fs.FileInfo {
	t.Helper()
	i, asked, err := node.LstatIfPossible(name)
	must(t, err)
	if !asked {
		t.Fatalf("LstatIfPossible(%q) did not ask", name)
	}
	return i
}

// key is what a scanner would compare.
type key struct {
	device, inode uint64
	mtime, ctime  time.Time
}

func keyOf(t *testing.T, node *simfs.FS, name string) key {
	t.Helper()
	i := lstat(t, node, name)
	k := key{mtime: i.ModTime()}
	k.device, k.inode, k.ctime = i.Sys().(identity).Identity()
	return k
}

func names(t *testing.T, node afero.Fs, dir string) []string {
	t.Helper()
	list, err := listNames(node, dir)
	must(t, err)
	return list
}

func listNames(node afero.Fs, dir string) (list []string, err error) {
	d, err := node.Open(dir)
	if err != nil {
		return nil, err
	}
	list, err = d.Readdirnames(-1)
	return list, errors.Join(err, d.Close())
}
