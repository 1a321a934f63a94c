package simfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// real is the operating system's filesystem below a directory, with what simfs has beside afero.Fs.
type real struct {
	afero.Fs
	root string
}

type subject interface {
	afero.Fs
	afero.Symlinker
	Mknod(name string, mode fs.FileMode) error
}

func (r real) at(name string) string { return r.root + name }

func (r real) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(r.at(name), perm) }

func (r real) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(r.at(name), perm) }

func (r real) Remove(name string) error                    { return os.Remove(r.at(name)) }
func (r real) RemoveAll(name string) error                 { return os.RemoveAll(r.at(name)) }
func (r real) Rename(a, b string) error                    { return os.Rename(r.at(a), r.at(b)) }
func (r real) Stat(name string) (fs.FileInfo, error)       { return os.Stat(r.at(name)) }
func (r real) Chmod(name string, m fs.FileMode) error      { return os.Chmod(r.at(name), m) }
func (r real) SymlinkIfPossible(old, name string) error    { return os.Symlink(old, r.at(name)) }
func (r real) ReadlinkIfPossible(n string) (string, error) { return os.Readlink(r.at(n)) }
func (r real) Open(name string) (afero.File, error)        { return os.Open(r.at(name)) }

func (r real) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	i, err := os.Lstat(r.at(name))
	return i, true, err
}

func (r real) OpenFile(name string, flag int, perm fs.FileMode) (afero.File, error) {
	f, err := os.OpenFile(r.at(name), flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (r real) Chtimes(name string, a, m time.Time) error { return os.Chtimes(r.at(name), a, m) }

func (r real) Mknod(name string, mode fs.FileMode) error {
	err := syscall.Mknod(r.at(name), syscall.S_IFSOCK|uint32(mode.Perm()), 0)
	if err != nil {
		return pathErr(name, err)
	}
	return nil
}

func pathErr(name string, err error) error { return &fs.PathError{Op: "mknod", Path: name, Err: err} }

// Any history of calls has the same results on simfs as on the real filesystem: the same errno, kinds and contents.
func TestAgainstTheOperatingSystem(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for seed := range uint64(60) {
		sim := newFS(t, simfs.Config{Shuffle: seed, ReuseInodes: seed%2 == 0})
		disk := real{Fs: afero.NewOsFs(), root: t.TempDir()}
		random := rand.New(rand.NewPCG(seed, 1))
		must(t, sim.Mkdir("/t", 0o755))
		must(t, disk.Mkdir("/t", 0o755))
		var history []string
		for range 300 {
			what, call := randomCall(random)
			history = append(history, what)
			got, want := outcome(call(sim)), outcome(call(disk))
			if got != want {
				t.Fatalf("seed %d: %s: simulated %s, real %s\nhistory: %q", seed, what, got, want, history)
			}
		}
		if diff := cmp.Diff(tree(t, disk, "", nil), tree(t, sim, "", nil)); diff != "" {
			t.Fatalf("seed %d: real, simulated: %s\nhistory: %q", seed, diff, history)
		}
	}
}

func randomCall(r *rand.Rand) (what string, call func(s subject) (string, error)) {
	name, other := randomPath(r), randomPath(r)
	none := func(err error) (string, error) { return "", err }
	described := func(i fs.FileInfo, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return describe(i), nil
	}
	table := []struct {
		what string
		call func(s subject) (string, error)
	}{
		{"mkdir", func(s subject) (string, error) { return none(s.Mkdir(name, 0o755)) }},
		{"mkdir", func(s subject) (string, error) { return none(s.Mkdir(name, 0o750)) }},
		{"mkdirall", func(s subject) (string, error) { return none(s.MkdirAll(name, 0o700)) }},
		{"mknod", func(s subject) (string, error) { return none(s.Mknod(name, fs.ModeSocket|0o640)) }},
		{"write", func(s subject) (string, error) { return none(put(s, name, other, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)) }},
		{"append", func(s subject) (string, error) { return none(put(s, name, other, os.O_RDWR|os.O_APPEND)) }},
		{"exclusive", func(s subject) (string, error) { return none(put(s, name, other, os.O_RDWR|os.O_CREATE|os.O_EXCL)) }},
		{"symlink", func(s subject) (string, error) { return none(s.SymlinkIfPossible(filepath.Base(other), name)) }},
		{"symlink up", func(s subject) (string, error) { return none(s.SymlinkIfPossible(".."+other, name)) }},
		{"symlink up", func(s subject) (string, error) { return none(s.SymlinkIfPossible("../"+filepath.Base(other), name)) }},
		{"readlink", func(s subject) (string, error) { return s.ReadlinkIfPossible(name) }},
		{"rename", func(s subject) (string, error) { return none(s.Rename(name, other)) }},
		{"rename", func(s subject) (string, error) { return none(s.Rename(name, other)) }},
		{"remove", func(s subject) (string, error) { return none(s.Remove(name)) }},
		{"removeall", func(s subject) (string, error) {
			// os opens the parent, so that its error is about the parent's type.
			return fmt.Sprint(s.RemoveAll(name+"/a") == nil), nil
		}},
		{"chmod", func(s subject) (string, error) { return none(s.Chmod(name, 0o711)) }},
		{"stat", func(s subject) (string, error) { return described(s.Stat(name)) }},
		{"lstat", func(s subject) (string, error) {
			i, _, err := s.LstatIfPossible(name)
			return described(i, err)
		}},
		{"list", func(s subject) (string, error) {
			list, err := listNames(s, name)
			slices.Sort(list)
			return fmt.Sprint(list), err
		}},
	}
	c := table[r.IntN(len(table))]
	return c.what + " " + name + " " + other, c.call
}

// randomPath is a path below /t, so that a link upwards stays below the real root.
func randomPath(r *rand.Rand) string {
	name := "/t"
	for range 1 + r.IntN(3) {
		name += "/" + string(rune('a'+r.IntN(4)))
	}
	return name
}

func put(s subject, name, content string, flag int) error {
	f, err := s.OpenFile(name, flag, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// describe leaves out what differs on purpose: sizes of directories and times.
func describe(i fs.FileInfo) string {
	size := i.Size()
	if i.IsDir() {
		size = 0
	}
	return fmt.Sprint(i.Name(), i.Mode(), size)
}

func outcome(result string, err error) string {
	if err == nil {
		return result
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "another error: " + err.Error()
}

func tree(t *testing.T, s subject, dir string, all []string) []string {
	t.Helper()
	list := names(t, s, dir+"/")
	slices.Sort(list)
	for _, name := range list {
		i, _, err := s.LstatIfPossible(dir + "/" + name)
		must(t, err)
		line := dir + " " + describe(i)
		if i.Mode().IsRegular() {
			f, err := s.Open(dir + "/" + name)
			must(t, err)
			content := make([]byte, i.Size())
			_, err = f.ReadAt(content, 0)
			must(t, errors.Join(err, f.Close()))
			line += fmt.Sprintf(" %q", content)
		}
		all = append(all, line)
		if i.IsDir() {
			all = tree(t, s, dir+"/"+name, all)
		}
	}
	return all
}
