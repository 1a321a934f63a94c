package scanner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// world is a filesystem that tests change, with a root for the scanner in it.
type world struct {
	t    testing.TB
	fs   afero.Fs
	sim  *simfs.FS // nil: the operating system's
	base string    // holds the root and what is outside of it
	root string
	n    int
	// tick is how much time passes before each operation, settle how much after each scan of a script; the filesystem settles meanwhile. Zero: none.
	tick, settle time.Duration
}

// worlds by name: the operating system's filesystem, and simulated ones. Every script runs on each of them unless it says otherwise.
var worlds = map[string]simfs.Config{
	"os":      {},
	"typed":   {Shuffle: 7},
	"untyped": {Shuffle: 7, Entries: simfs.UntypedEntries},
	"names":   {Shuffle: 7, Entries: simfs.NoEntries, ReuseInodes: true},
}

// inWorld runs a test in a new world. In one that settles, time passes: that of a bubble, but for the operating system.
func inWorld(t *testing.T, name string, settles bool, test func(*world)) {
	switch cfg := worlds[name]; {
	case name == "os" && settles:
		t.Parallel()
		w := osWorld(t)
		w.settle = fineSettleTime + 10*time.Millisecond
		test(w)
	case name == "os":
		test(osWorld(t))
	default:
		synctest.Test(t, func(t *testing.T) {
			cfg.Stable = settles
			w := simWorld(t, cfg)
			w.tick = time.Millisecond
			if settles {
				w.settle = fineSettleTime
			}
			test(w)
		})
	}
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

func osWorld(t testing.TB) *world { return osWorldIn(t, "") }

// osWorldIn makes its world in dir; empty is where temporary files go.
func osWorldIn(t testing.TB, dir string) *world {
	// t.TempDir has the test's name in it, which makes it too long for a socket's path.
	base, err := os.MkdirTemp(dir, "s") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	return newWorld(t, &world{t: t, fs: afero.NewOsFs(), base: base})
}

func simWorld(t testing.TB, cfg simfs.Config) *world {
	sim := simfs.New(cfg)
	t.Cleanup(sim.Close)
	w := &world{t: t, fs: sim, sim: sim, base: "/w"}
	w.must(sim.Mkdir(w.base, 0o755))
	return newWorld(t, w)
}

func newWorld(t testing.TB, w *world) *world {
	if runtime.GOOS == "windows" {
		t.Skip("paths and links of these tests are those of Unix")
	}
	w.root = filepath.Join(w.base, "root")
	w.must(w.fs.Mkdir(w.root, 0o755))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.root, name) }

// bind makes a socket. A real one is bound under a short name and renamed, which works for names of any length.
func (w *world) bind(name string) error {
	if w.sim != nil {
		return w.sim.Mknod(w.path(name), fs.ModeSocket|0o755)
	}
	w.n++
	short := filepath.Join(w.base, fmt.Sprint(w.n))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	w.t.Cleanup(func() { _ = l.Close() })
	return os.Rename(short, w.path(name))
}

func (w *world) mknod(name, kind string) error {
	if w.sim != nil {
		return w.sim.Mknod(w.path(name), map[string]fs.FileMode{
			"fifo": fs.ModeNamedPipe, "device": fs.ModeDevice | fs.ModeCharDevice, "irregular": fs.ModeIrregular,
		}[kind]|0o644)
	}
	if kind != "fifo" {
		return errors.New("only the simulated filesystem makes a " + kind)
	}
	return mkfifo(w.path(name))
}

func (w *world) link(target, name string) error {
	return w.fs.(afero.Symlinker).SymlinkIfPossible(target, w.path(name))
}

// op does one operation of a script.
func (w *world) op(words []string) error {
	path := func(i int) string { return w.path(words[i]) }
	switch words[0] {
	case "bind":
		return w.bind(words[1])
	case "mkdir":
		return w.fs.MkdirAll(path(1), 0o755)
	case "write":
		return afero.WriteFile(w.fs, path(1), []byte(append(words, "x")[2]), 0o644)
	case "hardlink":
		return os.Link(path(1), path(2))
	case "fifo", "device", "irregular":
		return w.mknod(words[1], words[0])
	case "link":
		return w.link(words[1], words[2])
	case "rename":
		return w.fs.Rename(path(1), path(2))
	case "rm":
		if _, _, err := w.fs.(afero.Lstater).LstatIfPossible(path(1)); err != nil {
			return err
		}
		return w.fs.RemoveAll(path(1))
	case "chmod":
		return w.fs.Chmod(path(1), 0o700)
	case "chtimes":
		at, err := time.Parse(time.RFC3339Nano, words[2])
		if err != nil {
			return err
		}
		return w.fs.Chtimes(path(1), at, at)
	case "wait": // in simulated worlds
		d, err := time.ParseDuration(words[1])
		w.wait(d)
		return err
	case "mount":
		return w.sim.Mount(path(1))
	case "unmount":
		return w.sim.Unmount(path(1))
	case "fault":
		return w.fault(words[1:])
	case "during":
		return w.during(words[1:])
	case "clear":
		w.sim.ClearFaults()
		return nil
	}
	return errors.New("unknown operation " + words[0])
}

var errnos = map[string]error{
	"EACCES": syscall.EACCES, "EIO": syscall.EIO, "ELOOP": syscall.ELOOP, "ENOENT": syscall.ENOENT, "ESTALE": syscall.ESTALE,
	"ENOTCONN": syscall.ENOTCONN, "EHOSTDOWN": syscall.EHOSTDOWN, "EMFILE": syscall.EMFILE, "EOF": io.EOF,
}

var faultOps = map[string]simfs.Op{
	"open": simfs.OpOpen, "list": simfs.OpList, "entry": simfs.OpEntry, "lstat": simfs.OpLstat, "stat": simfs.OpStat, "read": simfs.OpRead, "mkdir": simfs.OpMkdir,
}

// fault: OP PATH [after N] ERRNO [once]; entry PATH leaves the name out of the listing.
func (w *world) fault(words []string) error {
	var f simfs.Fault
	op, ok := faultOps[words[0]]
	if !ok {
		return errors.New("no fault of " + words[0])
	}
	for _, word := range words[2:] {
		if word == "once" {
			f.Times = 1
			continue
		}
		if _, err := fmt.Sscan(word, &f.After); err == nil || word == "after" {
			continue
		}
		if f.Err, ok = errnos[word]; !ok {
			return errors.New("unknown errno " + word)
		}
	}
	w.sim.Inject(w.path(words[1]), op, f)
	return nil
}

// during: OP PATH OPERATION…, done when the scan is about to make that call.
func (w *world) during(words []string) error {
	w.sim.Inject(w.path(words[1]), faultOps[words[0]], simfs.Fault{Times: 1, Hook: func() {
		if err := w.op(words[2:]); err != nil {
			w.t.Error(strings.Join(words, " "), err)
		}
	}})
	return nil
}
