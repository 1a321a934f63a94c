package simfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// lister calls one of the three listing methods and returns names.
type lister struct {
	name string
	list func(f afero.File, n int) ([]string, error)
}

var listers = []lister{
	{"ReadDir", func(f afero.File, n int) (list []string, err error) {
		entries, err := f.(fs.ReadDirFile).ReadDir(n)
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list, err
	}},
	{"Readdir", func(f afero.File, n int) (list []string, err error) {
		infos, err := f.Readdir(n)
		for _, i := range infos {
			list = append(list, i.Name())
		}
		return list, err
	}},
	{"Readdirnames", func(f afero.File, n int) ([]string, error) { return f.Readdirnames(n) }},
}

func openDir(t *testing.T, node afero.Fs, name string) afero.File {
	t.Helper()
	f, err := node.Open(name)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestChunks(t *testing.T) {
	for _, l := range listers {
		t.Run(l.name, func(t *testing.T) {
			node := newFS(t, simfs.Config{})
			for _, name := range []string{"e", "d", "c", "b", "a"} {
				write(t, node, "/"+name, "")
			}
			dir := openDir(t, node, "/")
			for range 2 {
				for _, want := range [][]string{{"e", "d"}, {"c", "b"}, {"a"}} {
					got, err := l.list(dir, 2)
					must(t, err)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Error(diff)
					}
				}
				for range 2 {
					if got, err := l.list(dir, 2); len(got) != 0 || !errors.Is(err, io.EOF) {
						t.Errorf("at the end: %q, %v", got, err)
					}
				}
				if got, err := l.list(dir, 0); len(got) != 0 || err != nil {
					t.Errorf("the rest, at the end: %q, %v", got, err)
				}
				_, err := dir.Seek(0, io.SeekStart)
				must(t, err)
			}
			first, err := l.list(dir, 1)
			must(t, err)
			rest, err := l.list(dir, -1)
			must(t, err)
			if len(first) != 1 || len(rest) != 4 {
				t.Errorf("%q, then %q", first, rest)
			}
		})
	}
}

func TestPassIsOneMoment(t *testing.T) {
	node := newFS(t, simfs.Config{})
	write(t, node, "/a", "")
	write(t, node, "/b", "")
	dir := openDir(t, node, "/")
	entries, err := dir.(fs.ReadDirFile).ReadDir(1)
	must(t, err)
	must(t, node.Remove("/a"))
	must(t, node.Remove("/b"))
	write(t, node, "/c", "")
	_, err = entries[0].Info()
	wantErr(t, "info of what is gone", err, fs.ErrNotExist)
	rest, err := dir.Readdirnames(-1)
	must(t, err)
	if diff := cmp.Diff([]string{"b"}, rest); diff != "" {
		t.Error(diff)
	}
}

func TestOrder(t *testing.T) {
	var want []string
	build := func(seed uint64) *simfs.FS {
		node := newFS(t, simfs.Config{Shuffle: seed})
		want = nil
		for i := range 100 {
			name := fmt.Sprintf("s%02d", 99-i)
			want = append(want, name)
			write(t, node, "/"+name, "")
		}
		return node
	}
	if diff := cmp.Diff(want, names(t, build(0), "/")); diff != "" {
		t.Errorf("not the order of creation: %s", diff)
	}
	one, same, other := build(1), names(t, build(1), "/"), names(t, build(2), "/")
	got := names(t, one, "/")
	if !slices.Equal(got, same) || slices.Equal(got, other) || slices.Equal(got, want) || slices.IsSorted(got) {
		t.Errorf("shuffled: %q\nsame seed: %q\nother seed: %q", got, same, other)
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("shuffling changed the names: %q", got)
	}
}

func TestEntries(t *testing.T) {
	untyped := newFS(t, simfs.Config{Entries: simfs.UntypedEntries})
	must(t, untyped.Mknod("/s", fs.ModeSocket))
	entries, err := openDir(t, untyped, "/").(fs.ReadDirFile).ReadDir(-1)
	must(t, err)
	i, err := entries[0].Info()
	must(t, err)
	if entries[0].Type() != fs.ModeIrregular || i.Mode().Type() != fs.ModeSocket {
		t.Errorf("type %v, info %v", entries[0].Type(), i)
	}

	plain := newFS(t, simfs.Config{Entries: simfs.NoEntries})
	write(t, plain, "/f", "")
	if dir, ok := openDir(t, plain, "/").(fs.ReadDirFile); ok {
		t.Errorf("%T implements fs.ReadDirFile", dir)
	}
	if got := names(t, plain, "/"); len(got) != 1 {
		t.Errorf("names %q", got)
	}
}

func TestRemovedDirectory(t *testing.T) {
	node := newFS(t, simfs.Config{})
	must(t, node.Mkdir("/d", 0o755))
	dir := openDir(t, node, "/d")
	must(t, node.Remove("/d"))
	_, err := dir.Readdirnames(-1)
	wantErr(t, "list", err, syscall.ENOENT)
	must(t, node.Mkdir("/d", 0o755))
	_, err = dir.Readdirnames(-1)
	wantErr(t, "list, another one in its place", err, syscall.ENOENT)
}

func TestCutListing(t *testing.T) {
	for _, l := range listers {
		for _, c := range []struct {
			what  string
			fault simfs.Fault
			n     int
			want  []string // each call's names
			errs  []error
		}{
			{"all", simfs.Fault{Err: syscall.EIO}, -1, []string{""}, []error{syscall.EIO}},
			{"all after 2", simfs.Fault{Err: syscall.ESTALE, After: 2}, -1, []string{"ab"}, []error{syscall.ESTALE}},
			{"chunks after 2", simfs.Fault{Err: syscall.EIO, After: 2}, 1, []string{"a", "b", "", ""}, []error{nil, nil, syscall.EIO, syscall.EIO}},
			{"within a chunk", simfs.Fault{Err: syscall.EIO, After: 3}, 2, []string{"ab", "c"}, []error{nil, syscall.EIO}},
			{"beyond the end", simfs.Fault{Err: syscall.EIO, After: 9}, -1, []string{"abcd"}, []error{syscall.EIO}},
			{"silently", simfs.Fault{Err: io.EOF, After: 2}, -1, []string{"ab"}, []error{nil}},
			{"silently in chunks", simfs.Fault{Err: io.EOF, After: 3}, 2, []string{"ab", "c", ""}, []error{nil, nil, io.EOF}},
			{"silently all", simfs.Fault{Err: io.EOF}, 1, []string{""}, []error{io.EOF}},
		} {
			t.Run(l.name+" "+c.what, func(t *testing.T) {
				node := newFS(t, simfs.Config{})
				for _, name := range []string{"a", "b", "c", "d"} {
					write(t, node, "/"+name, "")
				}
				c.fault.Times = 1
				node.Inject("/", simfs.OpList, c.fault)
				dir := openDir(t, node, "/")
				for i, want := range c.want {
					list, err := l.list(dir, c.n)
					var got string
					for _, name := range list {
						got += name
					}
					if got != want || !errors.Is(err, c.errs[i]) {
						t.Errorf("call %d: %q, %v; want %q, %v", i, got, err, want, c.errs[i])
					}
					if pathErr, ok := errors.AsType[*fs.PathError](err); ok && pathErr.Path != "/" {
						t.Errorf("call %d: %#v", i, pathErr)
					}
				}
				_, err := dir.Seek(0, io.SeekStart)
				must(t, err)
				if list, err := l.list(dir, -1); len(list) != 4 || err != nil {
					t.Errorf("the next pass: %q, %v", list, err)
				}
			})
		}
	}
}

// What is there may be left out of a listing, and what is listed may be gone.
func TestListingDisagreesWithLstat(t *testing.T) {
	for _, l := range listers {
		node := newFS(t, simfs.Config{})
		write(t, node, "/a", "")
		write(t, node, "/b", "")
		node.Inject("/a", simfs.OpEntry, simfs.Fault{Times: 1})
		for _, want := range [][]string{{"b"}, {"a", "b"}} {
			got, err := l.list(openDir(t, node, "/"), -1)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", l.name, diff)
			}
			lstat(t, node, "/a")
		}

		want := []string{"a", "b"}
		if l.name == "Readdir" {
			want = want[1:] // as os does
		}
		node.Inject("/a", simfs.OpLstat, simfs.Fault{Err: syscall.ENOENT, Times: 1})
		for _, n := range []int{2, -1} {
			got, err := l.list(openDir(t, node, "/"), n)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" && n == 2 {
				t.Errorf("%s: %s", l.name, diff)
			}
		}
		node.ClearFaults()
		node.Inject("/b", simfs.OpLstat, simfs.Fault{Err: syscall.EACCES})
		got, err := l.list(openDir(t, node, "/"), -1)
		if l.name == "Readdir" {
			wantErr(t, "Readdir", err, syscall.EACCES)
			if diff := cmp.Diff([]string{"a"}, got); diff != "" {
				t.Error(diff)
			}
		} else {
			must(t, err)
		}
	}
}
