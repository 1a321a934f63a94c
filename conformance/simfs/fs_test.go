package simfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

func TestIOFS(t *testing.T) {
	for _, entries := range []simfs.Entries{simfs.TypedEntries, simfs.NoEntries} {
		node := newFS(t, simfs.Config{Entries: entries, Shuffle: 7})
		must(t, node.MkdirAll("/a/b/c", 0o755))
		must(t, node.MkdirAll("/empty", 0o700))
		write(t, node, "/top", "content")
		write(t, node, "/a/b/deep", strings.Repeat("x", 100_000))
		write(t, node, "/a/nothing", "")
		if err := fstest.TestFS(afero.NewIOFS(node), "top", "a/b/deep", "a/nothing", "a/b/c", "empty"); err != nil {
			t.Errorf("entries %d: %v", entries, err)
		}
	}
}

func TestTypes(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.Mkdir("/d", 0o750))
	want := map[string]fs.FileMode{"/d": fs.ModeDir | 0o750, "/f": 0o644, "/l": fs.ModeSymlink | 0o777}
	write(t, node, "/f", "1234")
	must(t, node.SymlinkIfPossible("f", "/l"))
	for name, mode := range map[string]fs.FileMode{
		"/s": fs.ModeSocket | 0o600, "/p": fs.ModeNamedPipe | 0o644, "/c": fs.ModeDevice | fs.ModeCharDevice | 0o620,
		"/b": fs.ModeDevice | 0o660, "/i": fs.ModeIrregular, "/r": 0o604,
	} {
		must(t, node.Mknod(name, mode))
		want[name] = mode
		if !mode.IsRegular() {
			_, err := node.Open(name)
			wantErr(t, "open "+name, err, syscall.ENXIO)
		}
	}
	for name, mode := range want {
		if got := lstat(t, node, name).Mode(); got != mode {
			t.Errorf("%s: mode %v, want %v", name, got, mode)
		}
	}
	dir := openDir(t, node, "/")
	list, err := dir.(fs.ReadDirFile).ReadDir(-1)
	must(t, err)
	for _, e := range list {
		if e.Type() != want["/"+e.Name()].Type() {
			t.Errorf("entry %v: type %v", e, e.Type())
		}
		i, err := e.Info()
		must(t, err)
		if i.Mode() != want["/"+e.Name()] || i.Name() != e.Name() || e.IsDir() != i.IsDir() {
			t.Errorf("entry %v: info %v", e, i)
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d entries, want %d", len(list), len(want))
	}
	wantErr(t, "mknod of a directory", node.Mknod("/x", fs.ModeDir), syscall.EINVAL)
	wantErr(t, "mknod of what is there", node.Mknod("/f", 0), fs.ErrExist)
}

func TestErrors(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.MkdirAll("/d/sub", 0o755))
	write(t, node, "/f", "")
	must(t, node.SymlinkIfPossible("/nowhere", "/dangling"))
	open := func(name string, flag int) error {
		f, err := node.OpenFile(name, flag, 0o644)
		if err == nil {
			must(t, f.Close())
		}
		return err
	}
	readlink := func(name string) error { _, err := node.ReadlinkIfPossible(name); return err }
	stat := func(name string) error { _, err := node.Stat(name); return err }
	for what, c := range map[string]struct{ got, want error }{
		"stat missing":          {stat("/x"), syscall.ENOENT},
		"stat empty":            {stat(""), syscall.ENOENT},
		"stat NUL":              {stat("/a\x00b"), syscall.EINVAL},
		"stat below a file":     {stat("/f/x"), syscall.ENOTDIR},
		"stat file with slash":  {stat("/f/"), syscall.ENOTDIR},
		"stat below missing":    {stat("/x/y"), syscall.ENOENT},
		"stat long":             {stat("/" + strings.Repeat("n", 256)), syscall.ENAMETOOLONG},
		"stat dangling":         {stat("/dangling"), syscall.ENOENT},
		"mkdir there":           {node.Mkdir("/d", 0o755), fs.ErrExist},
		"mkdir root":            {node.Mkdir("/", 0o755), fs.ErrExist},
		"mkdir below missing":   {node.Mkdir("/x/y", 0o755), syscall.ENOENT},
		"mkdirall over file":    {node.MkdirAll("/f", 0o755), syscall.ENOTDIR},
		"mkdirall below file":   {node.MkdirAll("/f/x", 0o755), syscall.ENOTDIR},
		"mkdirall over link":    {node.MkdirAll("/dangling", 0o755), syscall.EEXIST},
		"remove missing":        {node.Remove("/x"), syscall.ENOENT},
		"remove full":           {node.Remove("/d"), syscall.ENOTEMPTY},
		"remove root":           {node.Remove("/"), syscall.EBUSY},
		"remove dot":            {node.Remove("/d/."), syscall.EINVAL},
		"removeall missing":     {node.RemoveAll("/x"), nil},
		"rename missing":        {node.Rename("/x", "/y"), syscall.ENOENT},
		"rename onto directory": {node.Rename("/f", "/d"), syscall.EEXIST},
		"rename dir onto file":  {node.Rename("/d", "/f"), syscall.ENOTDIR},
		"rename into itself":    {node.Rename("/d", "/d/sub/d"), syscall.EINVAL},
		"rename onto itself":    {node.Rename("/f", "/f"), nil},
		"rename dir to itself":  {node.Rename("/d", "/d"), syscall.EEXIST},
		"rename to nowhere":     {node.Rename("/f", "/x/f"), syscall.ENOENT},
		"open missing":          {open("/x", os.O_RDONLY), syscall.ENOENT},
		"open dir to write":     {open("/d", os.O_RDWR), syscall.EISDIR},
		"create over dir":       {open("/d", os.O_CREATE), syscall.EISDIR},
		"create exclusive":      {open("/f", os.O_CREATE|os.O_EXCL), fs.ErrExist},
		"exclusive over link":   {open("/dangling", os.O_CREATE|os.O_EXCL), fs.ErrExist},
		"readlink of a file":    {readlink("/f"), syscall.EINVAL},
		"readlink missing":      {readlink("/x"), syscall.ENOENT},
		"symlink there":         {node.SymlinkIfPossible("a", "/f"), fs.ErrExist},
		"symlink to nothing":    {node.SymlinkIfPossible("", "/x"), syscall.ENOENT},
		"chmod missing":         {node.Chmod("/x", 0), syscall.ENOENT},
		"chown missing":         {node.Chown("/x", 0, 0), syscall.ENOENT},
		"chtimes missing":       {node.Chtimes("/x", time.Time{}, time.Time{}), syscall.ENOENT},
		"unmount of no mount":   {node.Unmount("/d"), syscall.EINVAL},
		"unmount missing":       {node.Unmount("/x"), syscall.ENOENT},
		"mount on a file":       {node.Mount("/f"), syscall.ENOTDIR},
		"mount on nothing":      {node.Mount("/x"), syscall.ENOENT},
	} {
		wantErr(t, what, c.got, c.want)
	}
	pathErr, ok := errors.AsType[*fs.PathError](stat("/x"))
	if !ok || pathErr.Op != "stat" || pathErr.Path != "/x" {
		t.Errorf("stat gives %#v", pathErr)
	}
	if linkErr, ok := errors.AsType[*os.LinkError](node.Rename("/x", "/y")); !ok || linkErr.New != "/y" {
		t.Errorf("rename gives %#v", linkErr)
	}
}

func TestLinks(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.MkdirAll("/a/b", 0o755))
	must(t, node.MkdirAll("/c", 0o755))
	must(t, node.Mknod("/a/b/s", fs.ModeSocket|0o755))
	for name, target := range map[string]string{
		"/abs": "/a/b/s", "/a/rel": "b/s", "/a/b/up": "../b/s", "/dir": "a/b", "/chain": "abs", "/root": "/",
		"/loop1": "loop2", "/loop2": "/loop1", "/c/parent": "..", "/slash": "a/b/", "/self": "self",
	} {
		must(t, node.SymlinkIfPossible(target, name))
		got, err := node.ReadlinkIfPossible(name)
		must(t, err)
		if got != target || lstat(t, node, name).Size() != int64(len(target)) {
			t.Errorf("link %s leads to %q, want %q", name, got, target)
		}
	}
	for _, name := range []string{
		"/abs", "/a/rel", "/a/b/up", "/dir/s", "/chain", "/dir/up", "/root/root/dir/s", "/c/parent/abs", "a/b/s", "/slash/s",
		"//a/.//b/../b/s", "/dir/../rel",
	} {
		i, err := node.Stat(name)
		must(t, err)
		if i.Mode().Type() != fs.ModeSocket {
			t.Errorf("stat %s: %v", name, i)
		}
	}
	for _, name := range []string{"/loop1", "/loop2/x", "/self", "/self/"} {
		_, err := node.Stat(name)
		wantErr(t, "stat "+name, err, syscall.ELOOP)
	}
	if !lstat(t, node, "/dir/").IsDir() || lstat(t, node, "/dir").IsDir() || !lstat(t, node, "/slash/.").IsDir() {
		t.Error("a slash behind a link must follow it, and its lack must not")
	}
	must(t, node.SymlinkIfPossible("/c/made", "/dangling"))
	write(t, node, "/dangling", "through")
	if got := lstat(t, node, "/c/made").Size(); got != 7 {
		t.Errorf("made through a dangling link: %d bytes", got)
	}
	must(t, node.RemoveAll("/dir"))
	if _, err := node.Stat("/a/b/s"); err != nil {
		t.Errorf("RemoveAll of a link followed it: %v", err)
	}
}

func TestNames(t *testing.T) {
	node := newFS(t, simfs.Config{})
	want := []string{" ", "#?%", "a\nb", "\xff\xfe", "back\\slash", "C:", strings.Repeat("n", 255), "-", "...", "ü"}
	for _, name := range want {
		write(t, node, "/"+name, name)
	}
	if diff := cmp.Diff(want, names(t, node, "/")); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		got, err := afero.ReadFile(node, "/"+name)
		must(t, err)
		if string(got) != name || lstat(t, node, "/"+name).Name() != name {
			t.Errorf("%q holds %q", name, got)
		}
	}
}

func TestContent(t *testing.T) {
	node := newFS(t, simfs.Config{})
	f, err := node.Create("/f")
	must(t, err)
	_, err = f.WriteString("hello")
	must(t, err)
	_, err = f.WriteAt([]byte("world"), 7)
	must(t, err)
	content, err := afero.ReadFile(node, "/f")
	must(t, err)
	if string(content) != "hello\x00\x00world" {
		t.Errorf("content %q", content)
	}
	must(t, f.Truncate(4))
	must(t, f.Truncate(6))
	at, err := f.Seek(-3, io.SeekEnd)
	must(t, err)
	rest, err := io.ReadAll(f)
	must(t, err)
	if at != 3 || string(rest) != "l\x00\x00" {
		t.Errorf("at %d: %q", at, rest)
	}
	small := make([]byte, 4)
	n, err := f.ReadAt(small, 4)
	if n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt over the end: %d, %v", n, err)
	}
	_, err = f.Seek(-1, io.SeekStart)
	wantErr(t, "seek before the start", err, syscall.EINVAL)
	must(t, f.Sync())

	must(t, node.Remove("/f"))
	i, err := f.Stat()
	must(t, err)
	if i.Size() != 6 || i.Name() != "f" || f.Name() != "/f" {
		t.Errorf("open after removal: %v", i)
	}
	must(t, f.Close())
	wantErr(t, "close twice", f.Close(), os.ErrClosed)
	_, err = f.Read(small)
	wantErr(t, "read when closed", err, os.ErrClosed)
	_, err = f.Readdirnames(1)
	wantErr(t, "list when closed", err, os.ErrClosed)
	wantErr(t, "sync when closed", f.Sync(), os.ErrClosed)

	for range 2 {
		f, err = node.OpenFile("/log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		must(t, err)
		_, err = f.Write([]byte("line\n"))
		must(t, err)
		_, err = f.Read(small)
		wantErr(t, "read from write-only", err, syscall.EBADF)
		if _, err = f.WriteAt(small, 0); err == nil {
			t.Error("WriteAt worked with O_APPEND")
		}
		must(t, f.Close())
	}
	content, err = afero.ReadFile(node, "/log")
	must(t, err)
	if string(content) != "line\nline\n" {
		t.Errorf("appended: %q", content)
	}
	f, err = node.Open("/log")
	must(t, err)
	defer func() { _ = f.Close() }()
	_, err = f.Write(small)
	wantErr(t, "write to read-only", err, syscall.EBADF)
	wantErr(t, "truncate read-only", f.Truncate(0), syscall.EBADF)
	_, err = f.Readdir(-1)
	wantErr(t, "list a file", err, syscall.ENOTDIR)
	dir := openDir(t, node, "/")
	_, err = dir.Read(small)
	wantErr(t, "read a directory", err, syscall.EISDIR)
}

func TestConcurrentUse(t *testing.T) {
	node := newFS(t, simfs.Config{ReuseInodes: true})
	var wg sync.WaitGroup
	for _, name := range []string{"/a", "/b", "/c", "/d"} {
		wg.Go(func() {
			for range 50 {
				s, err := node.Bind(name, simfs.Plugin{Name: name})
				if err != nil {
					t.Error(err)
					return
				}
				conn, err := node.Dial(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				clear := node.Inject("/", simfs.OpList, simfs.Fault{Err: syscall.EIO, Times: 1})
				_, _ = listNames(node, "/")
				clear()
				for _, err := range []error{node.Rename(name, name+"2"), node.Remove(name + "2"), conn.Close()} {
					if err != nil {
						t.Error(err)
					}
				}
				s.Crash()
			}
		})
	}
	wg.Wait()
	if left := names(t, node, "/"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}
