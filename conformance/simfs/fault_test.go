package simfs_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// calls has every operation on "/x/y", with x a directory and y of the right kind.
var calls = map[simfs.Op]struct {
	kind fs.FileMode // of /x/y; ModeTemporary: not there
	call func(node *simfs.FS) error
}{
	simfs.OpOpen:  {0, func(n *simfs.FS) error { return openClose(n, nil) }},
	simfs.OpList:  {fs.ModeDir, func(n *simfs.FS) error { _, err := listNames(n, "/x/y"); return err }},
	simfs.OpLstat: {0, func(n *simfs.FS) error { _, _, err := n.LstatIfPossible("/x/y"); return err }},
	simfs.OpStat:  {0, func(n *simfs.FS) error { _, err := n.Stat("/x/y"); return err }},
	simfs.OpReadlink: {fs.ModeSymlink, func(n *simfs.FS) error {
		_, err := n.ReadlinkIfPossible("/x/y")
		return err
	}},
	simfs.OpRead: {0, func(n *simfs.FS) error {
		return openClose(n, func(f afero.File) error { _, err := f.Read(make([]byte, 1)); return err })
	}},
	simfs.OpWrite: {0, func(n *simfs.FS) error {
		return openClose(n, func(f afero.File) error { _, err := f.WriteString("x"); return err })
	}},
	simfs.OpMkdir:   {fs.ModeTemporary, func(n *simfs.FS) error { return n.MkdirAll("/x/y", 0o755) }},
	simfs.OpMknod:   {fs.ModeTemporary, func(n *simfs.FS) error { return n.Mknod("/x/y", fs.ModeSocket) }},
	simfs.OpSymlink: {fs.ModeTemporary, func(n *simfs.FS) error { return n.SymlinkIfPossible("a", "/x/y") }},
	simfs.OpRename:  {0, func(n *simfs.FS) error { return n.Rename("/x/y", "/z") }},
	simfs.OpRemove:  {0, func(n *simfs.FS) error { return n.RemoveAll("/x") }},
	simfs.OpChmod:   {0, func(n *simfs.FS) error { return n.Chmod("/x/y", 0o600) }},
	simfs.OpChown:   {0, func(n *simfs.FS) error { return n.Chown("/x/y", 1, 1) }},
	simfs.OpChtimes: {0, func(n *simfs.FS) error { return n.Chtimes("/x/y", time.Time{}, time.Unix(1, 0)) }},
	simfs.OpBind:    {fs.ModeTemporary, func(n *simfs.FS) error { _, err := n.Bind("/x/y", simfs.Plugin{}); return err }},
	simfs.OpDial: {fs.ModeSocket, func(n *simfs.FS) error {
		c, err := n.Dial(context.Background(), "/x/y")
		if err == nil {
			err = c.Close()
		}
		return err
	}},
}

func openClose(node *simfs.FS, use func(afero.File) error) error {
	f, err := node.OpenFile("/x/y", os.O_RDWR, 0)
	if err == nil && use != nil {
		err = use(f)
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

func ready(t *testing.T, kind fs.FileMode) *simfs.FS {
	t.Helper()
	node := newFS(t, simfs.Config{})
	must(t, node.Mkdir("/x", 0o755))
	switch kind {
	case fs.ModeTemporary:
	case fs.ModeDir:
		must(t, node.Mkdir("/x/y", 0o755))
	case fs.ModeSymlink:
		must(t, node.SymlinkIfPossible("target", "/x/y"))
	case fs.ModeSocket:
		_, err := node.Bind("/x/y", simfs.Plugin{})
		must(t, err)
	default:
		write(t, node, "/x/y", "content")
	}
	return node
}

func TestEachOperationFails(t *testing.T) {
	custom := errors.New("custom")
	for op, c := range calls {
		t.Run(string(op), func(t *testing.T) {
			node := ready(t, c.kind)
			before := node.Calls("/x/y", op)
			node.Inject("//x/./y", op, simfs.Fault{Err: syscall.EIO, Times: 2})
			clear := node.Inject("/x/y", op, simfs.Fault{Err: custom})
			for i, want := range []error{syscall.EIO, syscall.EIO, custom, custom} {
				err := c.call(node)
				wantErr(t, "call", err, want)
				_, isPath := errors.AsType[*fs.PathError](err)
				_, isLink := errors.AsType[*os.LinkError](err)
				_, isNet := errors.AsType[*net.OpError](err)
				if !isPath && !isLink && !isNet {
					t.Errorf("call %d: %#v is not wrapped", i, err)
				}
			}
			clear()
			clear()
			wantErr(t, "cleared", c.call(node), nil)
			if got := node.Calls("/x/y/", op) - before; got != 5 {
				t.Errorf("%d calls counted, want 5", got)
			}
		})
	}
}

func TestEachOperationHangs(t *testing.T) {
	for op, c := range calls {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := ready(t, c.kind)
				var hooked int
				clear := node.Inject("/x/y", op, simfs.Fault{Hang: true, Times: 1, Hook: func() { hooked++ }})
				result := make(chan error, 1)
				go func() { result <- c.call(node) }()
				synctest.Wait()
				if len(result) != 0 || hooked != 1 {
					t.Fatalf("it did not hang: %v, %d hooks", <-result, hooked)
				}
				// The rest of the filesystem goes on.
				if _, err := node.Stat("/x"); err != nil {
					t.Error(err)
				}
				clear()
				synctest.Wait()
				wantErr(t, "released", <-result, nil)
			})
		})
	}
}

func TestHangEnds(t *testing.T) {
	for what, c := range map[string]struct {
		op   simfs.Op
		end  func(node *simfs.FS, cancel func())
		want error
	}{
		"close":            {simfs.OpStat, func(n *simfs.FS, _ func()) { n.Close() }, fs.ErrClosed},
		"close, listing":   {simfs.OpList, func(n *simfs.FS, _ func()) { n.Close() }, fs.ErrClosed},
		"clear all":        {simfs.OpStat, func(n *simfs.FS, _ func()) { n.ClearFaults() }, nil},
		"dial: context":    {simfs.OpDial, func(_ *simfs.FS, cancel func()) { cancel() }, context.Canceled},
		"dial: clear all":  {simfs.OpDial, func(n *simfs.FS, _ func()) { n.ClearFaults() }, syscall.ECONNREFUSED},
		"dial: close":      {simfs.OpDial, func(n *simfs.FS, _ func()) { n.Close() }, fs.ErrClosed},
		"error after hang": {simfs.OpLstat, func(n *simfs.FS, _ func()) { n.ClearFaults() }, syscall.ESTALE},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := newFS(t, simfs.Config{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				fault := simfs.Fault{Hang: true}
				if c.op == simfs.OpLstat {
					fault.Err = syscall.ESTALE
				}
				clear := node.Inject("/", c.op, fault)
				result := make(chan error, 1)
				go func() {
					var err error
					switch c.op {
					case simfs.OpStat:
						_, err = node.Stat("/")
					case simfs.OpLstat:
						_, _, err = node.LstatIfPossible("/")
					case simfs.OpList:
						_, err = listNames(node, "/")
					default:
						_, err = node.Dial(ctx, "/")
					}
					result <- err
				}()
				synctest.Wait()
				if len(result) != 0 {
					t.Fatalf("it did not hang: %v", <-result)
				}
				c.end(node, cancel)
				synctest.Wait()
				wantErr(t, "call", <-result, c.want)
				clear()
			})
		})
	}
}

// A hook changes the filesystem between a listing and the look at what it listed.
func TestHookChangesTheTree(t *testing.T) {
	node := newFS(t, simfs.Config{})
	write(t, node, "/a", "old")
	node.Inject("/a", simfs.OpLstat, simfs.Fault{Times: 1, Hook: func() {
		must(t, node.Remove("/a"))
		write(t, node, "/a", "replaced")
	}})
	infos, err := openDir(t, node, "/").Readdir(-1)
	must(t, err)
	if len(infos) != 1 || infos[0].Size() != int64(len("replaced")) {
		t.Errorf("seen: %v", infos)
	}
}

func TestRemoveAllGoesOn(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.MkdirAll("/d/sub", 0o755))
	write(t, node, "/d/sub/a", "")
	write(t, node, "/d/sub/b", "")
	node.Inject("/d/sub/a", simfs.OpRemove, simfs.Fault{Err: syscall.EPERM, Times: 1})
	wantErr(t, "RemoveAll", node.RemoveAll("/d"), fs.ErrPermission)
	if got := names(t, node, "/d/sub"); len(got) != 1 || got[0] != "a" {
		t.Errorf("left: %q", got)
	}
	must(t, node.RemoveAll("/d"))
}
