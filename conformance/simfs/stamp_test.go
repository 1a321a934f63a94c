package simfs_test

import (
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// What moves which stamp. A path is followed by the stamps that must move: m, c, both or none.
func TestStamps(t *testing.T) {
	cases := []struct {
		what string
		do   func(node *simfs.FS) error
		want map[string]string
	}{
		{"create", func(n *simfs.FS) error { return afero.WriteFile(n, "/d/new", nil, 0o644) }, map[string]string{"/d": "mc"}},
		{"mkdir", func(n *simfs.FS) error { return n.Mkdir("/d/new", 0o755) }, map[string]string{"/d": "mc"}},
		{"mknod", func(n *simfs.FS) error { return n.Mknod("/d/new", fs.ModeSocket) }, map[string]string{"/d": "mc"}},
		{"symlink", func(n *simfs.FS) error { return n.SymlinkIfPossible("f", "/d/new") }, map[string]string{"/d": "mc"}},
		{"bind", func(n *simfs.FS) error {
			_, err := n.Bind("/d/new", simfs.Plugin{})
			return err
		}, map[string]string{"/d": "mc"}},
		{"remove", func(n *simfs.FS) error { return n.Remove("/d/f") }, map[string]string{"/d": "mc"}},
		{"rename within", func(n *simfs.FS) error { return n.Rename("/d/f", "/d/g") }, map[string]string{"/d": "mc", "/d/g": "c"}},
		{"rename between", func(n *simfs.FS) error { return n.Rename("/d/f", "/e/f") }, map[string]string{"/d": "mc", "/e": "mc", "/e/f": "c"}},
		{"rename dir", func(n *simfs.FS) error { return n.Rename("/e", "/d/e") }, map[string]string{"/": "mc", "/d": "mc", "/d/e": "c"}},
		{"rename over", func(n *simfs.FS) error { return n.Rename("/d/f", "/d/s") }, map[string]string{"/d": "mc", "/d/s": "c"}},
		{"rename to itself", func(n *simfs.FS) error { return n.Rename("/d/f", "/d/f") }, nil},
		{"chmod", func(n *simfs.FS) error { return n.Chmod("/d/s", 0o600) }, map[string]string{"/d/s": "c"}},
		{"chmod through a link", func(n *simfs.FS) error { return n.Chmod("/l", 0o700) }, map[string]string{"/d/f": "c"}},
		{"chown", func(n *simfs.FS) error { return n.Chown("/d", 1, -1) }, map[string]string{"/d": "c"}},
		{"chtimes", func(n *simfs.FS) error { return n.Chtimes("/d/f", time.Time{}, time.Unix(1, 0)) }, map[string]string{"/d/f": "mc"}},
		{"chtimes omitted", func(n *simfs.FS) error { return n.Chtimes("/d/f", time.Unix(1, 0), time.Time{}) }, map[string]string{"/d/f": "c"}},
		{"write", func(n *simfs.FS) error { return afero.WriteFile(n, "/d/f", []byte("more"), 0o644) }, map[string]string{"/d/f": "mc"}},
		{"truncate on open", func(n *simfs.FS) error { return afero.WriteFile(n, "/d/f", nil, 0o644) }, map[string]string{"/d/f": "mc"}},
		{"read", func(n *simfs.FS) error { _, err := afero.ReadFile(n, "/d/f"); return err }, nil},
		{"list", func(n *simfs.FS) error { _, err := listNames(n, "/d"); return err }, nil},
		{"failure", func(n *simfs.FS) error { _ = n.Mkdir("/d/f", 0); _ = n.Remove("/d"); return nil }, nil},
	}
	all := []string{"/", "/d", "/e", "/d/f", "/d/s", "/d/g", "/e/f", "/d/e", "/l"}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			at := newClock()
			node := newFS(t, simfs.Config{Now: at.now})
			must(t, node.Mkdir("/d", 0o755))
			must(t, node.Mkdir("/e", 0o755))
			write(t, node, "/d/f", "x")
			must(t, node.Mknod("/d/s", fs.ModeSocket|0o755))
			must(t, node.SymlinkIfPossible("/d/f", "/l"))
			before, at0 := map[string]fs.FileInfo{}, at.now()
			for _, name := range all {
				if i, _, err := node.LstatIfPossible(name); err == nil {
					before[name] = i
				}
			}
			at.move(time.Nanosecond)
			must(t, c.do(node))
			for _, name := range all {
				if i, _, err := node.LstatIfPossible(name); err != nil || before[name] == nil && c.want[name] == "" {
					continue
				} else if got := moved(i, at0); got != c.want[name] {
					t.Errorf("%s: moved %q, want %q", name, got, c.want[name])
				}
			}
			for name, i := range before {
				if got := moved(i, at0); got != "" {
					t.Errorf("the old FileInfo of %s is live: moved %q", name, got)
				}
			}
		})
	}
}

func moved(i fs.FileInfo, from time.Time) string {
	var got string
	if !i.ModTime().Equal(from) {
		got += "m"
	}
	if _, _, ctime := i.Sys().(identity).Identity(); !ctime.Equal(from) {
		got += "c"
	}
	return got
}

func TestGranularity(t *testing.T) {
	for _, g := range []time.Duration{4 * time.Millisecond, time.Second, 2 * time.Second} {
		at := newClock()
		node := newFS(t, simfs.Config{Now: at.now, Granularity: g})
		before := keyOf(t, node, "/")
		at.move(g - at.now().Sub(at.now().Truncate(g)) - 1)
		write(t, node, "/f", "")
		if got := keyOf(t, node, "/"); got != before {
			t.Errorf("%v: a change within the unit shows: %v, %v", g, before, got)
		}
		at.move(1)
		write(t, node, "/g", "")
		if got := keyOf(t, node, "/"); got.mtime.Sub(before.mtime) != g {
			t.Errorf("%v: next stamp after %v", g, got.mtime.Sub(before.mtime))
		}
		must(t, node.Chtimes("/f", time.Time{}, at.now().Add(g/2)))
		if got := keyOf(t, node, "/f"); !got.mtime.Equal(got.mtime.Truncate(g)) {
			t.Errorf("%v: Chtimes left %v", g, got.mtime)
		}
	}
}

func TestBubbleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newFS(t, simfs.Config{})
		before := keyOf(t, node, "/").mtime
		<-time.After(time.Hour)
		write(t, node, "/f", "")
		if got := keyOf(t, node, "/f").mtime.Sub(before); got != time.Hour {
			t.Errorf("stamp moved by %v", got)
		}
	})
}

func TestDetail(t *testing.T) {
	for _, detail := range []simfs.Detail{simfs.FullDetail, simfs.NoChangeTime, simfs.NoDetail} {
		node := newFS(t, simfs.Config{Detail: detail})
		must(t, node.Chown("/", 7, 8))
		i := lstat(t, node, "/")
		if detail == simfs.NoDetail {
			if i.Sys() != nil {
				t.Errorf("Sys is %v", i.Sys())
			}
			continue
		}
		device, inode, ctime := i.Sys().(identity).Identity()
		if device == 0 || inode == 0 || ctime.IsZero() != (detail == simfs.NoChangeTime) {
			t.Errorf("detail %d: %d, %d, %v", detail, device, inode, ctime)
		}
		if uid, gid := i.Sys().(interface{ Owner() (uid, gid int) }).Owner(); uid != 7 || gid != 8 {
			t.Errorf("owner %d:%d", uid, gid)
		}
	}
}

func TestStable(t *testing.T) {
	for _, want := range []bool{false, true} {
		if got := newFS(t, simfs.Config{Stable: want}).Stable(); got != want {
			t.Errorf("Stable is %v", got)
		}
	}
}

func TestInodes(t *testing.T) {
	remake := func(node *simfs.FS, between func()) (before, after uint64) {
		must(t, node.Mknod("/s", fs.ModeSocket))
		before = keyOf(t, node, "/s").inode
		must(t, node.Remove("/s"))
		if between != nil {
			between()
		}
		must(t, node.Mknod("/s", fs.ModeSocket))
		return before, keyOf(t, node, "/s").inode
	}
	if before, after := remake(newFS(t, simfs.Config{}), nil); before == after {
		t.Error("an inode number was used twice")
	}
	reusing := newFS(t, simfs.Config{ReuseInodes: true})
	if before, after := remake(reusing, nil); before != after {
		t.Errorf("inode %d was not reused, but %d", before, after)
	}

	// An open file holds its inode, and so does a listener.
	write(t, reusing, "/open", "")
	held := keyOf(t, reusing, "/open").inode
	f, err := reusing.Open("/open")
	must(t, err)
	must(t, reusing.Remove("/open"))
	write(t, reusing, "/next", "")
	if keyOf(t, reusing, "/next").inode == held {
		t.Error("the inode of an open file was reused")
	}
	must(t, f.Close())
	write(t, reusing, "/then", "")
	if keyOf(t, reusing, "/then").inode != held {
		t.Error("the inode was not freed on close")
	}
	plugin, err := reusing.Bind("/bound", simfs.Plugin{})
	must(t, err)
	held = keyOf(t, reusing, "/bound").inode
	must(t, reusing.Remove("/bound"))
	again, err := reusing.Bind("/bound", simfs.Plugin{})
	must(t, err)
	if keyOf(t, reusing, "/bound").inode == held {
		t.Error("the inode of a listener was reused")
	}
	plugin.Crash()
	plugin.Crash()
	must(t, again.Stop(t.Context()))
	write(t, reusing, "/last", "")
	if keyOf(t, reusing, "/last").inode != held {
		t.Error("the inode was not freed by the crash")
	}

	// Numbers in use are all different.
	var seen []uint64
	for _, name := range names(t, reusing, "/") {
		seen = append(seen, keyOf(t, reusing, "/"+name).inode)
	}
	slices.Sort(seen)
	if len(slices.Compact(slices.Clone(seen))) != len(seen) {
		t.Errorf("inodes %v", seen)
	}
}

func TestMount(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.MkdirAll("/plugins/sub", 0o755))
	must(t, node.SymlinkIfPossible("plugins", "/link"))
	plugin, err := node.Bind("/plugins/a", simfs.Plugin{})
	must(t, err)
	dir := openDir(t, node, "/plugins")
	before := keyOf(t, node, "/plugins")

	must(t, node.Mount("/link"))
	over := keyOf(t, node, "/plugins")
	if over.device == before.device || len(names(t, node, "/plugins")) != 0 {
		t.Errorf("mounted: %v over %v", over, before)
	}
	if inside, err := dir.Readdirnames(-1); err != nil || len(inside) != 2 {
		t.Errorf("a directory opened before shows %v, %v", inside, err)
	}
	write(t, node, "/plugins/b", "")
	if got := keyOf(t, node, "/plugins/b"); got.device != over.device {
		t.Errorf("made on device %d", got.device)
	}
	if _, err := node.Stat("/plugins/../link/b"); err != nil {
		t.Error(err)
	}
	wantErr(t, "rename over the edge", node.Rename("/plugins/b", "/b"), syscall.EXDEV)
	wantErr(t, "remove the mount point", node.Remove("/plugins"), syscall.EBUSY)
	wantErr(t, "rename the mount point", node.Rename("/plugins", "/p"), syscall.EBUSY)
	_, err = node.Dial(t.Context(), "/plugins/a")
	wantErr(t, "dial what is hidden", err, fs.ErrNotExist)

	must(t, node.Mount("/plugins"))
	if got := keyOf(t, node, "/plugins"); got.device == over.device {
		t.Error("a second mount has the first one's device")
	}
	must(t, node.Unmount("/plugins"))
	if got := keyOf(t, node, "/plugins"); got.device != over.device || len(names(t, node, "/plugins")) != 1 {
		t.Errorf("the lower mount shows %v", got)
	}
	must(t, node.Unmount("/link"))
	if got := keyOf(t, node, "/plugins"); got != before {
		t.Errorf("unmounted: %v, want %v", got, before)
	}
	conn, err := node.Dial(t.Context(), "/plugins/a")
	must(t, err)
	must(t, conn.Close())
	if got := plugin.Record().Dials; got != 1 {
		t.Errorf("%d dials", got)
	}

	must(t, node.Mount("/"))
	if got := names(t, node, "/.."); len(got) != 0 {
		t.Errorf("a mount over the root shows %v", got)
	}
	must(t, node.Unmount("/"))
	wantErr(t, "unmount twice", node.Unmount("/"), syscall.EINVAL)
	must(t, node.RemoveAll("/plugins"))
}
