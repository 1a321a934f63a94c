package conformance_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance"
	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// faultFS is a simulated filesystem in which one thing goes wrong.
type faultFS struct {
	*simfs.FS
	open  func(name string) error
	names func(calls, n int, names []string, err error) ([]string, error)
	lstat func(name string, info fs.FileInfo, err error) (fs.FileInfo, error)
	list  func(dir string, names []string) []string
	typed func(fs.DirEntry) fs.DirEntry
	gone  func(dir string)
	mknod func(name string) (made bool, err error)
}

func (f *faultFS) Mknod(name string, mode fs.FileMode) error {
	if f.mknod != nil {
		if made, err := f.mknod(name); !made {
			return err
		}
	}
	return f.FS.Mknod(name, mode)
}

func (f *faultFS) Open(name string) (afero.File, error) {
	if f.open != nil {
		if err := f.open(name); err != nil {
			return nil, err
		}
	}
	file, err := f.FS.Open(name)
	names := f.names
	if f.list != nil {
		names = func(_, _ int, names []string, err error) ([]string, error) { return f.list(name, names), err }
	}
	switch {
	case err != nil:
		return nil, err
	case f.typed != nil:
		return &typedFile{file, f.typed}, nil
	case names == nil:
		return file, nil
	}
	return &faultFile{File: file, names: names}, nil
}

func (f *faultFS) LstatIfPossible(name string) (fs.FileInfo, bool, error) {
	info, ok, err := f.FS.LstatIfPossible(name)
	if f.lstat != nil {
		info, err = f.lstat(name, info, err)
	}
	return info, ok, err
}

func (f *faultFS) RemoveAll(name string) error {
	if f.gone != nil {
		f.gone(name)
	}
	return f.FS.RemoveAll(name)
}

// faultFile offers names alone.
type faultFile struct {
	afero.File
	names func(calls, n int, names []string, err error) ([]string, error)
	calls int
}

func (f *faultFile) Readdirnames(n int) ([]string, error) {
	names, err := f.File.Readdirnames(n)
	f.calls++
	return f.names(f.calls, n, names, err)
}

// typedFile offers types too.
type typedFile struct {
	afero.File
	change func(fs.DirEntry) fs.DirEntry
}

func (f *typedFile) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.File.(fs.ReadDirFile).ReadDir(n)
	for i, e := range entries {
		entries[i] = f.change(e)
	}
	return entries, err
}

// fileEntry is an entry that is listed as a file, whatever it is.
type fileEntry struct{ fs.DirEntry }

func (fileEntry) Type() fs.FileMode { return 0 }

// fakeInfo overrides what is not nil.
type fakeInfo struct {
	fs.FileInfo
	mode    *fs.FileMode
	modTime *time.Time
	noSys   bool
}

func (i fakeInfo) Mode() fs.FileMode {
	if i.mode != nil {
		return *i.mode
	}
	return i.FileInfo.Mode()
}

func (i fakeInfo) ModTime() time.Time {
	if i.modTime != nil {
		return *i.modTime
	}
	return i.FileInfo.ModTime()
}

func (i fakeInfo) Sys() any {
	if i.noSys {
		return nil
	}
	return i.FileInfo.Sys()
}

// stampless is an entry of that type without any stamp that moves.
func stampless(typ fs.FileMode) func(string, fs.FileInfo, error) (fs.FileInfo, error) {
	return func(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
		if err == nil && info.Mode().Type() == typ {
			info = fakeInfo{FileInfo: info, modTime: &time.Time{}, noSys: true}
		}
		return info, err
	}
}

// wholeSeconds shows of a socket what ext2 with inodes of 128 bytes shows of one that gets the inode of the one before.
func wholeSeconds(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err == nil && info.Mode().Type() == fs.ModeSocket {
		second := info.ModTime().Truncate(time.Second)
		info = fakeInfo{FileInfo: info, modTime: &second, noSys: true}
	}
	return info, err
}

// noSocket is what vfat says to whoever makes a socket.
func noSocket(name string) (made bool, err error) {
	return false, &fs.PathError{Op: "mknod", Path: name, Err: syscall.EPERM}
}

// brokenFS has for each rule what makes a good filesystem break it.
var brokenFS = map[string]func(*faultFS){
	"FS1": func(f *faultFS) {
		f.names = func(_, _ int, names []string, err error) ([]string, error) { return append(names, names...), err }
	},
	"FS1/dots": func(f *faultFS) {
		f.names = func(calls, _ int, names []string, err error) ([]string, error) {
			if calls == 1 {
				names = append(names, ".")
			}
			return names, err
		}
	},
	"FS2": func(f *faultFS) {
		f.names = func(calls, n int, names []string, err error) ([]string, error) {
			if n > 0 && calls > 1 {
				return nil, io.EOF
			}
			return names, err
		}
	},
	"U2": func(f *faultFS) {
		f.names = func(calls, _ int, names []string, err error) ([]string, error) {
			if calls == 1 {
				names = append(names, "ghost")
			}
			return names, err
		}
	},
	"U3": func(f *faultFS) {
		f.names = func(_, _ int, names []string, err error) ([]string, error) {
			if err != nil && !errors.Is(err, io.EOF) {
				names = nil
			}
			return names, err
		}
	},
	"U3/silent": func(f *faultFS) {
		f.names = func(_, _ int, names []string, err error) ([]string, error) {
			if !errors.Is(err, io.EOF) {
				err = nil
			}
			return names, err
		}
	},
	"D2/listing": func(f *faultFS) { f.typed = func(e fs.DirEntry) fs.DirEntry { return fileEntry{e} } },
	"D2": func(f *faultFS) {
		f.lstat = func(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
			if err == nil && info.Mode().Type() == fs.ModeSocket {
				mode := info.Mode().Perm()
				info = fakeInfo{FileInfo: info, mode: &mode}
			}
			return info, err
		}
	},
	"D5": func(f *faultFS) {
		f.lstat = func(name string, _ fs.FileInfo, _ error) (fs.FileInfo, error) { return f.Stat(name) }
	},
	"D10": func(f *faultFS) {
		f.names = func(_, _ int, names []string, err error) ([]string, error) {
			for i, name := range names {
				names[i] = strings.TrimSpace(name)
			}
			return names, err
		}
	},
	"FS3": func(f *faultFS) {
		var calls atomic.Int64
		f.lstat = func(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
			if err == nil {
				now := time.Unix(calls.Add(1), 0)
				info = fakeInfo{FileInfo: info, modTime: &now}
			}
			return info, err
		}
	},
	"FS7":        func(f *faultFS) { f.mknod = noSocket },
	"FS7/silent": func(f *faultFS) { f.mknod = func(string) (bool, error) { return false, nil } },
	"I1":         func(f *faultFS) { f.lstat = stampless(fs.ModeSocket) },
	"I1/seconds": func(f *faultFS) { f.lstat = wholeSeconds },
	"I1/once": func(f *faultFS) { // one that is made anew in time is told, those after it are not
		made := 0
		f.mknod = func(string) (bool, error) { made++; return true, nil }
		f.lstat = func(name string, info fs.FileInfo, err error) (fs.FileInfo, error) {
			if made < 3 {
				return info, err
			}
			return wholeSeconds(name, info, err)
		}
	},
	"FS4": func(f *faultFS) { f.lstat = stampless(fs.ModeDir) },
	"FS5": func(f *faultFS) {
		f.lstat = func(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
			if errors.Is(err, fs.ErrNotExist) {
				err = syscall.EIO
			}
			return info, err
		}
	},
	"FS5/open": func(f *faultFS) {
		f.open = func(name string) error {
			if _, err := f.Stat(name); err != nil {
				return syscall.EIO
			}
			return nil
		}
	},
	"D7": func(f *faultFS) {
		var mu sync.Mutex
		first := map[string]int{} // how many directories were removed at a path
		f.gone = func(dir string) {
			mu.Lock()
			defer mu.Unlock()
			if info, err := f.Stat(dir); err == nil && info.IsDir() {
				first[dir]++
			}
		}
		f.list = func(dir string, names []string) []string {
			mu.Lock()
			defer mu.Unlock()
			if first[dir] > 0 {
				return nil
			}
			return names
		}
	},
	"FS6": func(f *faultFS) {
		var inside atomic.Int64
		f.open = func(string) error {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				return syscall.EBUSY
			}
			<-time.After(time.Millisecond)
			return nil
		}
	},
}

// nodeFS is a filesystem that can have sockets.
type nodeFS interface {
	afero.Fs
	Mknod(name string, mode fs.FileMode) error
}

func simSubject(node *simfs.FS, as nodeFS) conformance.FSSubject {
	return conformance.FSSubject{
		FS:     as,
		Dir:    "/",
		Socket: func(path string) error { return as.Mknod(path, fs.ModeSocket|0o755) },
		Break: func(dir string) func() {
			return node.Inject(dir, simfs.OpList, simfs.Fault{Err: syscall.EIO, After: 1})
		},
	}
}

func TestFSBites(t *testing.T) {
	complete(t, conformance.FS(conformance.FSSubject{}), slices.Collect(maps.Keys(brokenFS)))
	for id, breaks := range brokenFS {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := simfs.New(simfs.Config{Stable: true})
				defer node.Close()
				f := &faultFS{FS: node}
				breaks(f)
				bites(t, conformance.FS(simSubject(node, f)), ruleOf(id))
			})
		})
	}
}

// Where no socket can be made, what else there is is held to the rules, and I1 is skipped: it says nothing then.
func TestFSWithoutSockets(t *testing.T) {
	breaks := map[string]func(*faultFS){"FS7": func(*faultFS) {}, "FS3": brokenFS["FS3"], "D2": func(f *faultFS) {
		f.lstat = func(_ string, info fs.FileInfo, err error) (fs.FileInfo, error) {
			if err == nil && info.IsDir() {
				mode := info.Mode().Perm()
				info = fakeInfo{FileInfo: info, mode: &mode}
			}
			return info, err
		}
	}}
	for id, breaks := range breaks {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := simfs.New(simfs.Config{})
				defer node.Close()
				f := &faultFS{FS: node, mknod: noSocket}
				breaks(f)
				for res := range conformance.Check(t.Context(), conformance.FS(simSubject(node, f))) {
					if broken := res.Err != nil; broken != (res.Rule.ID == id || res.Rule.ID == "FS7") {
						t.Errorf("%s: %v", res.Rule.ID, res.Err)
					}
					if want := "no socket can be made: mknod /rule-I1/s: operation not permitted"; res.Rule.ID == "I1" && res.Skipped != want {
						t.Errorf("I1 is skipped: %q, want %q", res.Skipped, want)
					}
				}
			})
		})
	}
}

func TestFSHolds(t *testing.T) {
	for name, cfg := range map[string]simfs.Config{
		"default": {}, "stable": {Stable: true}, "ext4": {ReuseInodes: true, Stable: true, Granularity: 4 * time.Millisecond, Shuffle: 1},
		"network": {ReuseInodes: true, Granularity: 10 * time.Millisecond}, "untyped": {Entries: simfs.UntypedEntries},
		"seconds": {Granularity: time.Second, Stable: true}, // an inode of its own tells a socket, however coarse the stamps
		"fat":     {Granularity: 2 * time.Second, Detail: simfs.NoDetail, Entries: simfs.NoEntries},
		"ext2":    {ReuseInodes: true, Stable: true, Granularity: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := simfs.New(cfg)
				defer node.Close()
				broken := ""
				if name == "fat" || name == "ext2" {
					broken = "I1"
				}
				bites(t, conformance.FS(simSubject(node, node)), broken)
				if left, err := afero.ReadDir(node, "/"); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		})
	}
}

// The operating system's filesystem is fit, and the suite leaves nothing in it.
func TestFSOfSystem(t *testing.T) {
	dir, err := os.MkdirTemp("", "fs") //nolint:usetesting // t.TempDir is too long for the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}()
	conformance.Test(t, conformance.FS(conformance.FSSubject{Dir: dir}))
}

// On Linux a socket can be made at a path of any length, so the suite can.
func TestFSOfLongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a way round the limit of a socket's path")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("n", 200))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conformance.Test(t, conformance.FS(conformance.FSSubject{Dir: dir}))
}

func TestFSLacks(t *testing.T) {
	rules := conformance.FS(conformance.FSSubject{FS: afero.NewMemMapFs(), Dir: "/", Lacks: []string{"I1"}})
	for _, r := range rules {
		if skips := r.Skip != ""; skips != slices.Contains([]string{"I1", "U3", "D5", "FS7"}, r.ID) {
			t.Errorf("%s: skipped: %q", r.ID, r.Skip)
		}
		if r.ID == "I1" && r.Check(t.Context()) != nil {
			t.Error("a rule that is skipped fails")
		}
	}
}
