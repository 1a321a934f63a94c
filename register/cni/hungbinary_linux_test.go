package cni

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The variables that have the test's binary be another process: one that serves a filesystem whose one file cannot be read, and one that asks it for STATUS.
const (
	serveHung = "PLUGPOLL_SERVE_HUNG"
	askHung   = "PLUGPOLL_ASK_HUNG"
)

// hung is a program that is there, and whose reading never ends.
type hung struct{ fs.Inode }

func (*hung) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o755, 4096
	return 0
}

func (*hung) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (*hung) Read(context.Context, fs.FileHandle, []byte, int64) (fuse.ReadResult, syscall.Errno) {
	select {}
}

type hungDir struct{ fs.Inode }

func (d *hungDir) OnAdd(ctx context.Context) {
	d.AddChild("x", d.NewPersistentInode(ctx, &hung{}, fs.StableAttr{Mode: syscall.S_IFREG}), false)
}

// TestServeHung is the filesystem's process.
func TestServeHung(t *testing.T) {
	dir := os.Getenv(serveHung)
	if dir == "" {
		t.Skip("a part of TestPluginThatCannotBeRead")
	}
	server, err := fs.Mount(dir, &hungDir{}, &fs.Options{})
	try(t, err)
	server.Wait()
}

// TestAskHung is the asking process. Its garbage collector needs all of it to stop for a moment.
func TestAskHung(t *testing.T) {
	dir := os.Getenv(askHung)
	if dir == "" {
		t.Skip("a part of TestPluginThatCannotBeRead")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	n := asked(t, "net", "1.1.0", "x")
	go func() { _ = askStatus(ctx, []string{dir}, []network{n}) }()
	for ctx.Err() == nil {
		runtime.GC()
	}
	runtime.GC()
	fmt.Println("it lives")
	os.Exit(0)
}

// CN12: a plugin on a filesystem that does not answer hangs the asking for its STATUS, and not the process.
func TestPluginThatCannotBeRead(t *testing.T) {
	if os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("nothing can be mounted where there is no inotify: that is a user namespace")
	}
	lacking := t.Skip
	if os.Getenv("CI") != "" {
		lacking = t.Fatal
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		lacking(err)
	}
	dir := t.TempDir()
	server := exec.Command(os.Args[0], "-test.run=^TestServeHung$") //nolint:noctx // it is ended below
	server.Env = append(os.Environ(), serveHung+"="+dir)
	server.Stderr = os.Stderr
	try(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, err := os.Stat(filepath.Join(dir, "x")); err != nil; _, err = os.Stat(filepath.Join(dir, "x")) {
		if !errors.Is(err, os.ErrNotExist) || ctx.Err() != nil {
			lacking("nothing can be mounted: ", err)
		}
	}
	asker := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAskHung$")
	asker.Env = append(os.Environ(), askHung+"="+dir)
	asker.WaitDelay = time.Second
	out, err := asker.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "it lives") {
		t.Errorf("it ended with %v: %s", err, out)
	}
}
