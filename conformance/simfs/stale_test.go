package simfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// shown is what every way of looking shows of /d and of what may be in it.
func shown(t *testing.T, node *simfs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(call string, i fs.FileInfo, err error) {
		if err != nil {
			all[call] = "no: " + errors.Unwrap(err).Error()
			return
		}
		device, inode, changed := i.Sys().(identity).Identity()
		all[call] = fmt.Sprintf("%s %v %d bytes, %d:%d, %v, %v", i.Name(), i.Mode(), i.Size(), device, inode, i.ModTime(), changed)
	}
	for _, name := range []string{"/d", "/d/a", "/d/b"} {
		i, _, err := node.LstatIfPossible(name)
		note("lstat "+name, i, err)
		i, err = node.Stat(name)
		note("stat "+name, i, err)
	}
	list, err := listNames(node, "/d")
	if err != nil {
		list = []string{errors.Unwrap(err).Error()}
	}
	all["list"] = strings.Join(list, " ")
	if d, err := node.Open("/d"); err == nil {
		for _, e := range readDir(t, d) {
			all["list"] += fmt.Sprintf(", %s %v", e.Name(), e.Type())
			i, err := e.Info()
			if err != nil {
				i, err = nil, errors.Unwrap(err)
			}
			all["info of "+e.Name()] = fmt.Sprint(i, err)
		}
		i, err := d.Stat()
		note("stat of the open /d", i, err)
		must(t, d.Close())
	}
	return all
}

func readDir(t *testing.T, d fs.File) []fs.DirEntry {
	t.Helper()
	list, err := d.(fs.ReadDirFile).ReadDir(-1)
	if err != nil {
		list = nil
	}
	return list
}

// While they are frozen, paths show what was there, and then what is.
func TestFreeze(t *testing.T) {
	for what, change := range map[string]func(*testing.T, *simfs.FS){
		"removed": func(t *testing.T, n *simfs.FS) { must(t, n.Remove("/d/a")) },
		"new":     func(t *testing.T, n *simfs.FS) { must(t, n.Mknod("/d/b", fs.ModeSocket)) },
		"written": func(t *testing.T, n *simfs.FS) { write(t, n, "/d/a", "longer") },
		"chmod":   func(t *testing.T, n *simfs.FS) { must(t, n.Chmod("/d/a", 0o600)) },
		"replaced": func(t *testing.T, n *simfs.FS) {
			must(t, n.Mknod("/x", fs.ModeSocket))
			must(t, n.Rename("/x", "/d/a"))
		},
		"renamed": func(t *testing.T, n *simfs.FS) { must(t, n.Rename("/d/a", "/d/b")) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node, twin := newFS(t, simfs.Config{}), newFS(t, simfs.Config{})
				for _, n := range []*simfs.FS{node, twin} {
					must(t, n.Mkdir("/d", 0o755))
					write(t, n, "/d/a", "a")
				}
				before := shown(t, node)
				for _, name := range []string{"/d", "/d//a", "/d/./b"} {
					node.Freeze(name, 3*time.Second)
				}
				<-time.After(time.Second)
				change(t, node)
				change(t, twin)
				<-time.After(2*time.Second - 1)
				if diff := cmp.Diff(before, shown(t, node)); diff != "" {
					t.Errorf("while it is stale:\n%s", diff)
				}
				<-time.After(1)
				truth := shown(t, twin)
				if diff := cmp.Diff(truth, shown(t, node)); diff != "" {
					t.Errorf("after it:\n%s", diff)
				}
				if cmp.Equal(before, truth) {
					t.Error("nothing changed")
				}
			})
		})
	}
}

// What is stale in one operation is not in another, and every caller is answered in the words he used.
func TestStaleOneOperation(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.Mkdir("/d", 0o755))
	write(t, node, "/d/a", "a")
	must(t, node.SymlinkIfPossible("d", "/l"))
	clear := node.Inject("/d/a", simfs.OpLstat, simfs.Fault{Stale: true})
	node.Inject("/l", simfs.OpStat, simfs.Fault{Stale: true})
	node.Inject("/l", simfs.OpLstat, simfs.Fault{Stale: true, Times: 1})
	node.Inject("/d/b", simfs.OpStat, simfs.Fault{Stale: true})
	must(t, node.Remove("/d/a"))
	must(t, node.Remove("/l"))
	write(t, node, "/d/b", "")
	if i := lstat(t, node, "d//a/"); i.Name() != "a" || i.Size() != 1 {
		t.Errorf("lstat of what was removed: %v", i)
	}
	_, err := node.Stat("/d/a")
	wantErr(t, "stat of it", err, fs.ErrNotExist)
	_, err = node.Open("/d/a")
	wantErr(t, "open of it", err, fs.ErrNotExist)
	if i, err := node.Stat("/l"); err != nil || i.Name() != "l" || !i.IsDir() {
		t.Errorf("stat through a link that was removed: %v, %v", i, err)
	}
	if i := lstat(t, node, "/l"); i.Mode().Type() != fs.ModeSymlink {
		t.Errorf("lstat of the link: %v", i)
	}
	_, _, err = node.LstatIfPossible("/l")
	wantErr(t, "a second lstat of it", err, fs.ErrNotExist)
	_, err = node.Stat("/d/b")
	wantErr(t, "stat of what is new", err, fs.ErrNotExist)
	lstat(t, node, "/d/b")
	clear()
	_, _, err = node.LstatIfPossible("/d/a")
	wantErr(t, "lstat, cleared", err, fs.ErrNotExist)
	node.ClearFaults()
	_, err = node.Stat("/d/b")
	must(t, err)
}

// An open file or directory shows what it was itself, never what was at its path.
func TestStaleOpen(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.MkdirAll("/d/old", 0o755))
	then := openDir(t, node, "/d")
	thaw := node.Freeze("/d", 0)
	must(t, node.RemoveAll("/d"))
	if got, err := then.Readdirnames(-1); err != nil || !slices.Equal(got, []string{"old"}) {
		t.Errorf("of a directory that was removed: %q, %v", got, err)
	}
	must(t, node.Mkdir("/d", 0o700))
	must(t, node.Mkdir("/d/new", 0o755))
	now := openDir(t, node, "/d")
	if got, err := now.Readdirnames(-1); err != nil || !slices.Equal(got, []string{"new"}) {
		t.Errorf("of the directory that took its place: %q, %v", got, err)
	}
	for open, want := range map[fs.File]fs.FileMode{then: 0o755, now: 0o700} {
		if i, err := open.Stat(); err != nil || i.Mode().Perm() != want {
			t.Errorf("the open directory is %v, %v, want %v", i, err, want)
		}
	}
	if i, err := node.Stat("/d"); err != nil || i.Mode().Perm() != 0o755 {
		t.Errorf("the path shows %v, %v", i, err)
	}
	thaw()
	thaw()
	if i, err := node.Stat("/d"); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("thawed, the path shows %v, %v", i, err)
	}
}

// Stale and Err go together: a listing of then that ends early.
func TestStaleListingFails(t *testing.T) {
	node := newFS(t, simfs.Config{})
	for _, name := range []string{"/a", "/b", "/c"} {
		write(t, node, name, "")
	}
	node.Inject("/", simfs.OpList, simfs.Fault{Stale: true, Err: syscall.EIO, After: 2})
	must(t, node.Remove("/a"))
	got, err := openDir(t, node, "/").Readdirnames(-1)
	if wantErr(t, "the listing", err, syscall.EIO); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("it shows %q", got)
	}
}

// For ends any fault, by the clock of the filesystem, and the next one takes over.
func TestFor(t *testing.T) {
	clock := newClock()
	node := newFS(t, simfs.Config{Now: clock.now, Granularity: 2 * time.Second})
	node.Inject("/", simfs.OpStat, simfs.Fault{Err: syscall.EIO, For: time.Second})
	node.Inject("/", simfs.OpStat, simfs.Fault{Err: syscall.EACCES, For: 1500 * time.Millisecond, Times: 1})
	for i, want := range []error{syscall.EIO, syscall.EIO, syscall.EACCES, nil} {
		_, err := node.Stat("/")
		wantErr(t, fmt.Sprintf("after %d × 0.5 s", i), err, want)
		clock.move(500 * time.Millisecond)
	}
	node.Inject("/", simfs.OpStat, simfs.Fault{Err: syscall.EIO, For: -1})
	clock.move(time.Hour)
	_, err := node.Stat("/")
	wantErr(t, "no end", err, syscall.EIO)
}
