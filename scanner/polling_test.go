package scanner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// How a root is polled (U6), for every system, and in what words.
func TestPollingWords(t *testing.T) {
	const s = time.Second
	fine, coarse := keyAt(1, s+1), keyAt(1, s)
	on := func(magic uint32, k key) traits { return traits{goos: "linux", magic: magic, tells: true, key: k} }
	for _, test := range []struct {
		traits traits
		typ    string
		settle time.Duration // 0: nothing is skipped
		why    string
	}{
		{on(0xef53, fine), "ext4", fineSettleTime, stampsMove},
		{on(0xef53, coarse), "ext4", coarseSettleTime, stampsMove},
		{on(0x01021994, fine), "tmpfs", fineSettleTime, stampsMove},
		{on(0x4d44, coarse), "vfat", coarseSettleTime, stampsMove},
		{on(0x6969, fine), "nfs", 0, "a network filesystem answers from a cache"},
		{on(0xfe534d42, fine), "cifs", 0, "a network filesystem answers from a cache"},
		{on(0x01021997, fine), "9p", 0, served},
		{on(0x65735546, fine), "fuse", 0, served},
		{on(0x1234, fine), "0x1234", 0, unmeasured},
		{on(0, fine), "0x0", 0, unmeasured},
		{on(0xef53, keyAt(0, 1)), "ext4", 0, "the filesystem gives no inode"},
		{on(0xef53, keyAt(1, 0)), "ext4", 0, "the filesystem gives no change time"},
		{on(0x6969, keyAt(0, 0)), "nfs", 0, cached},
		{traits{goos: "linux", key: fine}, "unknown", 0, "the system does not tell which filesystem it is"},
		{traits{goos: "linux", silent: true, key: fine}, "unknown", 0, "the question which filesystem it is has no answer yet"},
		{traits{goos: "windows"}, "unknown", 0, "on Windows nobody has measured whether directory stamps move with every change"},
		{traits{goos: "darwin", key: fine}, "unknown", 0, "on macOS nobody has measured whether directory stamps move with every change"},
		{traits{goos: "freebsd", key: fine}, "unknown", 0, "on freebsd nobody has measured whether directory stamps move with every change"},
		{traits{goos: "linux", simulated: "MemMapFS", key: fine}, "MemMapFS", 0, "it is not the operating system's and does not declare that " + stampsMove},
		{traits{goos: "windows", simulated: "simfs", declares: true, stable: true, key: fine}, "simfs", fineSettleTime, "the filesystem declares that " + stampsMove},
		{traits{goos: "linux", simulated: "simfs", declares: true, key: fine}, "simfs", 0, "the filesystem declares that its directory stamps do not move with every change"},
		{traits{goos: "linux", simulated: "simfs", declares: true, stable: true}, "simfs", 0, "the filesystem gives no inode"},
	} {
		want := Polling{Type: test.typ, SkipsUnchanged: test.settle > 0, Why: test.why, Settle: test.settle}
		if got := test.traits.polling(); got != want {
			t.Errorf("%+v:\n got %+v\nwant %+v", test.traits, got, want)
		}
	}
}

func TestFilesystems(t *testing.T) {
	seen := map[uint32]bool{}
	for _, f := range filesystems {
		if seen[f.magic] {
			t.Errorf("%#x is there twice", f.magic)
		}
		seen[f.magic] = true
		if f.name == "" || strings.ContainsAny(f.name, " ,") || f.why == "" {
			t.Errorf("%#x: name %q, why %q", f.magic, f.name, f.why)
		}
		if got := filesystemOf(f.magic); got != f || localFilesystem(f.magic) != (f.why == stampsMove) {
			t.Errorf("%#x is taken for %+v, trusted %v", f.magic, got, localFilesystem(f.magic))
		}
	}
	if localFilesystem(0x1234) {
		t.Error("an unknown filesystem is trusted")
	}
}

// pollingOf also compares what it says with what a scan decides for the root.
func pollingOf(t *testing.T, c Config) Polling {
	t.Helper()
	s := newScanner(t, c)
	p, err := s.Polling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.cfg.FS.Stat(s.root)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openDir(s.cfg.FS, s.root, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	k := keyOf(info)
	if skips := (&scan{Scanner: s}).trusts(&caller{}, f, s.root, k) && k.tells(); skips != p.SkipsUnchanged || skips && p.Settle != k.settleTime() {
		t.Errorf("a scan may skip: %v, after %v; said is %+v", skips, k.settleTime(), p)
	}
	return p
}

func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cfg := range []simfs.Config{{}, {Stable: true}, {Stable: true, Detail: simfs.NoDetail}, {Stable: true, Detail: simfs.NoChangeTime}} {
			w := simWorld(t, cfg)
			w.wait(time.Millisecond)
			w.must(w.bind("a"))
			p := pollingOf(t, Config{FS: w.fs, Root: w.root, Interval: time.Minute})
			if want := cfg.Stable && cfg.Detail == simfs.FullDetail; p.Type != w.fs.Name() || p.SkipsUnchanged != want || p.Interval != time.Minute {
				t.Errorf("%+v: %+v", cfg, p)
			}
		}
	})
	mem := afero.NewMemMapFs()
	if err := mem.Mkdir("/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if p := pollingOf(t, Config{FS: mem, Root: "/d"}); p.Type != mem.Name() || p.SkipsUnchanged || p.Interval != DefaultInterval {
		t.Errorf("MemMapFs: %+v", p)
	}
	w := osWorld(t)
	own := pollingOf(t, Config{Root: w.root})
	if runtime.GOOS != "linux" && (own.SkipsUnchanged || own.Type != "unknown") {
		t.Errorf("%+v", own)
	}
	if p := pollingOf(t, Config{FS: afero.NewBasePathFs(afero.NewOsFs(), w.base), Root: "/root"}); p != own {
		t.Errorf("below a base path: %+v, want %+v", p, own)
	}
}

// Filesystem is the word that Polling has, without a call.
func TestFilesystem(t *testing.T) {
	w := osWorld(t)
	mem := afero.NewMemMapFs()
	if err := mem.Mkdir("/d", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		config Config
		before string
	}{
		{Config{Root: w.root}, "unknown"},
		{Config{FS: afero.NewOsFs(), Root: w.root}, "unknown"},
		{Config{FS: afero.NewBasePathFs(afero.NewOsFs(), w.base), Root: "/root"}, "BasePathFs"},
		{Config{FS: mem, Root: "/d"}, mem.Name()},
	} {
		s := newScanner(t, test.config)
		if got := s.Filesystem(); got != test.before {
			t.Errorf("before a scan: %s, want %s", got, test.before)
		}
		p, err := newScanner(t, test.config).Polling(t.Context())
		if scanOK(t, s, nil); err != nil || s.Filesystem() != p.Type && runtime.GOOS == "linux" {
			t.Errorf("after a scan: %s, want %s; %v", s.Filesystem(), p.Type, err)
		}
	}
	s := newScanner(t, Config{Root: w.root})
	s.statfs = func(*os.File) func() (uint32, bool) { return func() (uint32, bool) { return 0x65735546, true } }
	if scanOK(t, s, nil); runtime.GOOS == "linux" && s.Filesystem() != "fuse" {
		t.Errorf("a filesystem that is not trusted: %s", s.Filesystem())
	}
}

// Polling makes nothing (D8), and says in an *Error what is wrong with the root.
func TestPollingErrors(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mem := afero.NewMemMapFs()
	if err := afero.WriteFile(mem, "/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{Root: file}, {Root: missing, MissingRoot: CreateRoot}, {FS: mem, Root: "/file"}, {FS: mem, Root: "/missing"}} {
		p, err := newScanner(t, c).Polling(t.Context())
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.Path != c.Root || p != (Polling{}) {
			t.Errorf("%s: %+v, %v", c.Root, p, err)
		}
		if c.Root == missing && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root was made: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newScanner(t, Config{Root: dir}).Polling(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// U4: a root that does not answer does not keep whoever asks.
func TestPollingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		release := w.hang("", simfs.OpOpen)
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		began := time.Now()
		if _, err := s.Polling(t.Context()); !errors.As(err, new(noAnswer)) || time.Since(began) != DefaultCallTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if stuck := s.Stuck(); len(stuck) != 1 || stuck[0].Path != w.root {
			t.Errorf("stuck are %v", stuck)
		}
		if _, err := s.Polling(t.Context()); !errors.As(err, new(noAnswer)) || len(s.Stuck()) != 1 {
			t.Errorf("asked once more: %v, stuck are %v", err, s.Stuck())
		}
		release()
		synctest.Wait()
		if _, err := s.Polling(t.Context()); err != nil || len(s.Stuck()) != 0 {
			t.Errorf("%v, stuck are %v", err, s.Stuck())
		}
	})
}
