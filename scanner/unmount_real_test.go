//go:build linux

package scanner

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// U5: the root is unmounted behind the scanner's back, and an empty directory is in its place. Nothing is gone until RootGrace has passed with the same
// picture; what is added meanwhile is seen at once.
func TestUnmountedRoot(t *testing.T) {
	const grace = 400 * time.Millisecond
	f := newFaulty(t)
	w := f.watch(Config{RootGrace: grace}, everything...)
	f.detach()
	began := time.Now()
	if err := w.unchanged(); err == nil {
		t.Error("a root that was unmounted is no error")
	}
	if stale := w.stale(); !slices.Equal(stale, everything) {
		t.Errorf("%q are stale", stale)
	}
	added := filepath.Join(f.dir, "new")
	if err := bindAt(added); err != nil {
		t.Fatal(err)
	}
	changes, _ := w.scan()
	if time.Since(began) < grace && (len(changes) != 1 || changes[0].Kind != Added || changes[0].Entry.Path != added) {
		t.Errorf("a socket was made in the root's place: %v", changes)
	}
	for {
		wait(10 * time.Millisecond)
		changes, err := w.scan()
		if len(changes) == 0 && time.Since(began) < 20*time.Second {
			continue
		}
		// The picture changed when the socket was made, which may start the grace anew.
		if took := time.Since(began); took < grace || len(changes) != len(everything) || changes[0].Kind != Removed {
			t.Errorf("after %v: %v, %v", took, changes, err)
		}
		break
	}
	if changes, err := w.scan(); len(changes) != 0 || err != nil || w.last.Len() != 1 {
		t.Errorf("afterwards: %v, %v, %q", changes, err, paths(w.last))
	}
}

// U5: a root that is mounted again within RootGrace was never gone, however long it looked empty before.
func TestRemountedRoot(t *testing.T) {
	f := newFaulty(t)
	w := f.watch(Config{RootGrace: 2 * time.Second}, everything...)
	for range 3 {
		f.detach()
		f.kill()
		for range 5 {
			_ = w.unchanged()
		}
		if stale := w.stale(); len(stale) != w.last.Len() {
			t.Errorf("only %q are stale", stale)
		}
		f.serve()
		w.remounted(w.last.Len())
	}
}
