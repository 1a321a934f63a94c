//go:build linux

package scanner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// I3: where stamps have whole seconds and a freed inode is the next one taken, a socket that is removed and bound again within a second looks as before: the
// scanner cannot tell, and says that nothing changed. What tells is the connection's end (L1). On a filesystem with finer stamps it is a replacement.
func TestRebindLooksEqual(t *testing.T) {
	for kind, want := range map[string]string{"ext2-128": "[]", "ext4": "[replaced]", "tmpfs": "[replaced]"} {
		t.Run(kind, func(t *testing.T) {
			dir := mounted(t, kind).dir
			path := filepath.Join(dir, "a")
			s := newScanner(t, Config{Root: dir})
			// Within one second: a second's end may come in between, but not each time.
			for try := range 5 {
				wait(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 50*time.Millisecond)))
				if err := bindAt(path); err != nil {
					t.Fatal(err)
				}
				before := scanOK(t, s, nil)
				wait(20 * time.Millisecond)
				err := errors.Join(unix.Unlink(path), bindAt(path))
				if err != nil {
					t.Fatal(err)
				}
				after := scanOK(t, s, before)
				var kinds []Kind
				for _, c := range Diff(before, after) {
					kinds = append(kinds, c.Kind)
				}
				if got := fmt.Sprint(kinds); got == want {
					return
				} else if try == 4 {
					t.Errorf("the scan saw %s, want %s", got, want)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Changes made behind an overlay, in its upper layer, are forbidden by its documentation and happen. Once FullEvery is over the scanner shows what a new one
// does. The overlay itself is of two minds about what was removed: the listing lacks it, and Lstat finds it in the cache of names. That is unknown, not gone
// (U2), and goes on until the cache forgets; only the connection can tell more (L2).
func TestOverlayBehind(t *testing.T) {
	m := mounted(t, "overlay")
	at := func(name string) string { return filepath.Join(m.dir, "sub", name) }
	behind := func(name string) string { return filepath.Join(m.back, "sub", name) }
	if err := os.Mkdir(at(""), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept", "removed", "replaced"} {
		if err := bindAt(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	s := newScanner(t, Config{Root: m.dir})
	last := scanOK(t, s, nil)
	if err := errors.Join(bindAt(behind("new")), unix.Unlink(behind("removed")), unix.Unlink(behind("replaced")), bindAt(behind("replaced"))); err != nil {
		t.Fatal(err)
	}
	var differ []Change
	for deadline := time.Now().Add(20 * time.Second); ; wait(50 * time.Millisecond) {
		last = scanOK(t, s, last)
		differ = Diff(scanOK(t, newScanner(t, Config{Root: m.dir}), nil), last)
		if _, ok := last.At(at("new")); ok && len(differ) <= 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the scanner has not what a new one sees: %v", differ)
		}
	}
	for _, c := range differ {
		_, err := os.Lstat(c.Entry.Path)
		if c.Kind != Added || c.Entry.Path != at("removed") || c.Entry.Stale == nil || err != nil {
			t.Errorf("%s is %v beside what a new scanner sees, stale %v, lstat %v", c.Entry.Path, c.Kind, c.Entry.Stale, err)
		}
	}
	if e, ok := last.At(at("kept")); !ok || e.Stale != nil {
		t.Errorf("what was left alone is %v", e)
	}
}

// A read-only mount is read as any other. A root that cannot be made there is an error, again and again, until somebody makes it.
func TestReadOnlyMount(t *testing.T) {
	m := mounted(t, "read-only")
	if err := bindAt(filepath.Join(m.back, "a")); err != nil {
		t.Fatal(err)
	}
	if got := paths(scanOK(t, newScanner(t, Config{Root: m.dir, MissingRoot: CreateRoot}), nil)); !slices.Equal(got, []string{m.dir + "/a"}) {
		t.Errorf("found %q", got)
	}
	created(t, filepath.Join(m.dir, "root"), syscall.EROFS, func() error { return os.Mkdir(filepath.Join(m.back, "root"), 0o755) })
}

// D8: a full filesystem has no room for the root; it is made when there is. Reading needs no room.
func TestFullFilesystem(t *testing.T) {
	m := mounted(t, "full")
	var made []string
	for i := 0; ; i++ {
		name := filepath.Join(m.dir, fmt.Sprint(i))
		err := bindAt(name)
		if errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil || i > 20 {
			t.Fatal(i, err)
		}
		made = append(made, name)
	}
	if got := paths(scanOK(t, newScanner(t, Config{Root: m.dir}), nil)); !slices.Equal(got, made) {
		t.Errorf("found %q, want %q", got, made)
	}
	created(t, filepath.Join(m.dir, "root"), syscall.ENOSPC, func() error { return os.Remove(made[0]) })
}

// created expects a Scanner that makes its root to fail with errno until help was given, and then to find an empty directory.
func created(t *testing.T, root string, errno syscall.Errno, help func() error) {
	t.Helper()
	s := newScanner(t, Config{Root: root, MissingRoot: CreateRoot})
	var last *Snapshot
	for range 2 {
		next, err := s.Scan(t.Context(), last)
		if e, ok := errors.AsType[*Error](err); !ok || e.Op != "create" || !errors.Is(err, errno) || next.Len() != 0 {
			t.Errorf("a root that cannot be made: %v", err)
		}
		last = next
	}
	if err := help(); err != nil {
		t.Fatal(err)
	}
	scanOK(t, s, last)
	if _, err := os.Stat(root); err != nil {
		t.Error(err)
	}
}
