package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/register"
	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// lacking skips a test where the machine lacks what it needs, and fails it in CI.
func lacking(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" && os.Getenv("PLUGPOLL_NOINOTIFY") == "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// TestWhyOverlay has a plugin listen in the lower directory of an overlay that the daemon watches: its socket is there, and refuses.
func TestWhyOverlay(t *testing.T) {
	base := shortDir(t)
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, ""); err != nil {
		lacking(t, "a mount failed: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	lower, merged := filepath.Join(base, "lower"), filepath.Join(base, "merged")
	for _, dir := range []string{lower, merged, filepath.Join(base, "upper"), filepath.Join(base, "work")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := "lowerdir=" + lower + ",upperdir=" + filepath.Join(base, "upper") + ",workdir=" + filepath.Join(base, "work")
	below := &inside{t: t, dir: lower}
	below.plugin("behind-an-overlay.sock", pluginOptions{})
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		lacking(t, "a mount failed: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(merged, unix.MNT_DETACH) })
	n := newInside(t, register.Config{Roots: []scanner.Config{{Root: merged, Interval: 20 * time.Millisecond}}}, nil)
	n.phase(filepath.Join(merged, "behind-an-overlay.sock"), state.Backoff)
	scene{cause: otherSide, says: []string{`is on overlay`, `a process here listens at a socket of this name`, `use the same mount`}}.check(t, n.why("behind-an-overlay.sock"))
}
