package scanner

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

func keyAt(n int, changed time.Duration) key {
	return key{Stamp: Stamp{Device: 1, Inode: uint64(n), ChangeTime: int64(changed)}}
}

// TestSettle goes through the rule step by step: what a stat shows, and when a read after it started.
func TestSettle(t *testing.T) {
	const ms = time.Millisecond
	fine, other, coarse := keyAt(1, 7*time.Second+ms), keyAt(1, 7*time.Second+2*ms), keyAt(1, 7*time.Second)
	noInode, noChange := keyAt(0, 7*time.Second+ms), keyAt(1, 0)
	type look struct {
		at    time.Duration // of the stat's end; the read starts then
		key   key
		whole bool
		want  bool // may it be skipped if the next stat shows the same key?
	}
	for name, looks := range map[string][]look{
		"fine":             {{0, fine, true, false}, {49 * ms, fine, true, false}, {50 * ms, fine, true, true}},
		"coarse":           {{0, coarse, true, false}, {50 * ms, coarse, true, false}, {2099 * ms, coarse, true, false}, {2100 * ms, coarse, true, true}},
		"changed":          {{0, fine, true, false}, {60 * ms, other, true, false}, {109 * ms, other, true, false}, {110 * ms, other, true, true}},
		"changed and back": {{0, fine, true, false}, {60 * ms, other, true, false}, {70 * ms, fine, true, false}, {119 * ms, fine, true, false}, {120 * ms, fine, true, true}},
		"not whole":        {{0, fine, true, false}, {60 * ms, fine, false, false}, {61 * ms, fine, true, true}, {62 * ms, fine, false, false}},
		"no inode":         {{0, noInode, true, false}, {time.Hour, noInode, true, false}},
		"no change time":   {{0, noChange, true, false}, {time.Hour, noChange, true, false}},
	} {
		start := time.Now()
		var s settling
		for i, l := range looks {
			s.seen(l.key, start.Add(l.at))
			s.read(start.Add(l.at), l.whole, l.key.settleTime())
			if s.settled != l.want {
				t.Errorf("%s, look %d: settled is %v", name, i, s.settled)
			}
		}
	}
}

// FuzzSettle: a directory on a clock of any granularity that the rule allows for changes at any time, and a reader follows the rule. What it
// believes is what there is.
func FuzzSettle(f *testing.F) {
	f.Add(uint8(0), []byte{1, 2, 255, 60, 254, 60, 255, 255})
	f.Add(uint8(3), []byte{255, 200, 255, 1, 0, 2, 255, 255})
	f.Fuzz(func(t *testing.T, grain uint8, data []byte) {
		if wrong := settleHistory(grain, data, key.settleTime); wrong != "" {
			t.Error(wrong)
		}
	})
}

// settleHistory: each byte is an operation, then the time until the next.
func settleHistory(grain uint8, data []byte, settleTime func(key) time.Duration) (wrong string) {
	ticks := []time.Duration{1, time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, time.Second, 2 * time.Second}
	tick := ticks[int(grain)%len(ticks)]
	now, began := time.Duration(1), time.Unix(1000, 0)
	content, believed := 0, -1
	stamp := now.Truncate(tick)
	var s settling
	for i, b := range data {
		switch {
		case b < 64: // a change
			content++
			stamp = now.Truncate(tick)
		case b < 192: // a poll, perhaps with a change in its midst
			k := keyAt(1, time.Duration(1)*time.Hour+stamp)
			now += time.Duration(b & 1)
			s.seen(k, began.Add(now))
			if b&2 != 0 {
				content++
				stamp = now.Truncate(tick)
			}
			if !s.settled || s.key != k {
				s.read(began.Add(now), true, settleTime(k))
				believed = content
				break
			}
			if b&2 == 0 && believed != content {
				return fmt.Sprintf("step %d: skipped, and it had changed", i)
			}
		default:
			now += []time.Duration{time.Microsecond, time.Millisecond, 7 * time.Millisecond, 51 * time.Millisecond, time.Second, 2200 * time.Millisecond}[int(b)%6]
		}
	}
	return ""
}

// The guard is needed: without it the same histories go wrong.
func TestSettleNeedsItsGuard(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 2000 {
		data := make([]byte, 40)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		grain := uint8(rnd.IntN(6))
		if text := settleHistory(grain, data, key.settleTime); text != "" {
			t.Fatalf("with the guard, %v: %s", data, text)
		}
		if settleHistory(grain, data, func(key) time.Duration { return 0 }) != "" {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("without the guard nothing went wrong")
	}
}

// mayFail ends a history that went wrong, not the test.
type mayFail struct {
	testing.TB
	text string
}

func (m *mayFail) Fatalf(format string, args ...any) {
	m.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// The same with whole trees, on a filesystem that stamps coarsely: what FuzzScan plays goes wrong without the guard, and not with it.
func TestScanNeedsItsGuard(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 150 {
		data := []byte{byte(16 + rnd.IntN(4)<<5 + rnd.IntN(16))}
		for range 60 {
			b := byte(rnd.IntN(6) << 4)
			if rnd.IntN(2) == 0 {
				b = 0xf0
			}
			data = append(data, b|byte(rnd.IntN(16)))
		}
		synctest.Test(t, func(t *testing.T) { newHistory(t, slices.Clone(data), nil).play() })
		synctest.Test(t, func(t *testing.T) {
			m := &mayFail{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				newHistory(m, data, func(key) time.Duration { return 0 }).play()
			}()
			<-done
			if m.text != "" {
				wrong++
			}
		})
	}
	if wrong == 0 {
		t.Error("without the guard nothing went wrong")
	}
	t.Log(wrong, "of 150 histories go wrong without the guard")
}

func TestFullReadsAreSpread(t *testing.T) {
	start := time.Now()
	if got := fullReadAt(start, 0).Sub(start); got != FullEvery {
		t.Errorf("the root is due after %v", got)
	}
	var due [10]int
	for i := range 1000 {
		d := fullReadAt(start, i).Sub(start)
		if d <= 0 || d > FullEvery {
			t.Fatalf("directory %d is due after %v", i, d)
		}
		due[min(9, int(d*10/FullEvery))]++
	}
	for i, n := range due {
		if n < 80 || n > 120 {
			t.Errorf("tenth %d has %d of 1000 directories", i, n)
		}
	}
}

// lists is how often each path was listed since the call before.
type lists map[string]int

func (l lists) since(w *world, names ...string) string {
	text := ""
	for _, name := range names {
		n := w.sim.Calls(w.path(name), simfs.OpList)
		if n > l[name] {
			text += " " + name
		}
		l[name] = n
	}
	return text
}

// TestSkip shows which directories of a settled tree a scan reads.
func TestSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{Stable: true})
		w.wait(time.Millisecond)
		for _, d := range []string{"a", "b", "b/c", "../out"} {
			w.must(w.fs.Mkdir(w.path(d), 0o755))
		}
		w.must(w.bind("a/1"))
		w.must(w.bind("b/c/2"))
		w.must(w.bind("../out/3"))
		w.must(w.link("../../out/3", "b/l"))
		w.must(w.link("../../out/4", "b/m"))
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		var last *Snapshot
		listed := lists{}
		for _, step := range []struct {
			what  string
			do    func() error
			after time.Duration
			reads string
			gives int
		}{
			{"the first scan", nil, 0, " . a b b/c", 3},
			{"too early", nil, 49 * time.Millisecond, " . a b b/c", 3},
			{"it settles", nil, time.Millisecond, " . a b b/c", 3},
			{"settled", nil, time.Millisecond, "", 3},
			{"a socket more", func() error { return w.bind("b/c/5") }, time.Millisecond, " b/c", 4},
			{"again, not settled", nil, 49 * time.Millisecond, " b/c", 4},
			{"it settles again", nil, time.Millisecond, " b/c", 4},
			{"a target comes", func() error { return w.bind("../out/4") }, time.Millisecond, " b", 5},
			{"a target goes", func() error { return w.fs.Remove(w.path("../out/3")) }, time.Millisecond, " b", 4},
			{"a directory comes", func() error { return w.fs.Mkdir(w.path("a/d"), 0o755) }, 50 * time.Millisecond, " a a/d", 4},
			{"it settles once more", nil, 50 * time.Millisecond, " a a/d", 4},
			{"a mount hides", func() error { return w.sim.Mount(w.path("b/c")) }, time.Millisecond, " b/c", 2},
			{"and shows again", func() error { return w.sim.Unmount(w.path("b/c")) }, time.Millisecond, " b/c", 4},
			{"a directory goes", func() error { return w.fs.RemoveAll(w.path("b/c")) }, time.Millisecond, " b", 2},
			{"all is due", nil, FullEvery, " . a b a/d", 2},
			{"chmod shows later", func() error { return w.fs.Chmod(w.path("a/1"), 0o700) }, time.Millisecond, "", 2},
		} {
			if step.do != nil {
				w.must(step.do())
			}
			w.wait(step.after)
			next := scanOK(t, s, last)
			if got := listed.since(w, ".", "a", "b", "b/c", "a/d"); got != step.reads || next.Len() != step.gives {
				t.Errorf("%s: it read%s and found %d, want%s and %d", step.what, got, next.Len(), step.reads, step.gives)
			}
			last = next
		}
		if scanOK(t, s, nil).Len() != 2 || listed.since(w, ".", "a") != " . a" {
			t.Error("without a Snapshot it does not read everything")
		}
		other := newScanner(t, Config{FS: w.fs, Root: w.root})
		if scanOK(t, other, last); listed.since(w, ".", "a") != " . a" {
			t.Error("another Scanner's Snapshot made it skip")
		}
	})
}

// What cannot tell is never skipped, and neither is what leaves something in doubt.
func TestNoSkip(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  simfs.Config
		wrap func(afero.Fs) afero.Fs
		do   func(*world) error
		skip bool
	}{
		"stable":         {cfg: simfs.Config{Stable: true}, skip: true},
		"not stable":     {},
		"no detail":      {cfg: simfs.Config{Stable: true, Detail: simfs.NoDetail}},
		"no change time": {cfg: simfs.Config{Stable: true, Detail: simfs.NoChangeTime}},
		"wrapped":        {cfg: simfs.Config{Stable: true}, wrap: func(f afero.Fs) afero.Fs { return noLstat{f} }},
		"unreadable": {cfg: simfs.Config{Stable: true}, do: func(w *world) error {
			w.sim.Inject(w.path("x"), simfs.OpStat, simfs.Fault{Err: fs.ErrInvalid})
			return w.link("y", "x")
		}},
		"a link that leads back": {cfg: simfs.Config{Stable: true}, do: func(w *world) error { return w.link("x", "x") }, skip: true},
		"a link":                 {cfg: simfs.Config{Stable: true}, do: func(w *world) error { return w.link("x", "y") }, skip: true},
		"too many links":         {cfg: simfs.Config{Stable: true}, do: func(w *world) error { return linkAll(w, maxLinks+1) }},
		"almost too many":        {cfg: simfs.Config{Stable: true}, do: func(w *world) error { return linkAll(w, maxLinks) }, skip: true},
		"an irregular entry":     {cfg: simfs.Config{Stable: true}, do: func(w *world) error { return w.mknod("i", "irregular") }, skip: true},
		"a refused entry": {cfg: simfs.Config{Stable: true}, do: func(w *world) error {
			w.sim.Inject(w.path("r"), simfs.OpLstat, simfs.Fault{Err: fs.ErrPermission})
			return w.bind("r")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simWorld(t, test.cfg)
				w.wait(time.Millisecond)
				w.must(w.bind("a"))
				if test.do != nil {
					w.must(test.do(w))
				}
				cfg := Config{FS: w.fs, Root: w.root}
				if test.wrap != nil {
					cfg.FS = test.wrap(w.fs)
				}
				s := newScanner(t, cfg)
				var last *Snapshot
				for range 4 {
					last, _ = s.Scan(t.Context(), last)
					w.wait(coarseSettleTime)
				}
				if n := w.sim.Calls(w.root, simfs.OpList); (n == 2) != test.skip {
					t.Errorf("4 scans read the root %d times", n)
				}
			})
		})
	}
}

func linkAll(w *world, n int) error {
	for i := range n {
		if err := w.link("nowhere", fmt.Sprint("l", i)); err != nil {
			return err
		}
	}
	return nil
}

// A full read comes after FullEvery, the first one before.
func TestFullEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{Stable: true})
		w.wait(time.Millisecond)
		for i := range 20 {
			w.must(w.fs.Mkdir(w.path(fmt.Sprint("d", i)), 0o755))
		}
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		var last *Snapshot
		most, settledAt := 0, 0
		calls := func() (n int) {
			for i := range 20 {
				n += w.sim.Calls(w.path(fmt.Sprint("d", i)), simfs.OpList)
			}
			return n
		}
		for i := range 1000 {
			before := calls()
			last = scanOK(t, s, last)
			w.wait(100 * time.Millisecond)
			if i == 1 {
				settledAt = calls()
			}
			if i > 1 {
				most = max(most, calls()-before)
			}
		}
		// In 100 s 9 or 10 times each, as a scan comes a little later than it is due, and never many at once.
		if n := calls() - settledAt; n < 180 || n > 200 || most > 2 {
			t.Errorf("%d reads of 20 directories in 100 s, at most %d in one scan", n, most)
		}
		if n := w.sim.Calls(w.root, simfs.OpList); n < 10 || n > 13 {
			t.Errorf("the root was read %d times", n)
		}
	})
}

// A scan that was ended leaves no half a memory.
func TestEndedScanForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{Stable: true})
		w.wait(time.Millisecond)
		w.must(w.fs.Mkdir(w.path("d"), 0o755))
		w.must(w.bind("d/a"))
		s := newScanner(t, Config{FS: w.fs, Root: w.root})
		last := scanOK(t, s, nil)
		w.wait(time.Second)
		last = scanOK(t, s, last)
		ctx, cancel := contextEndedBy(t, w, "d")
		defer cancel()
		w.must(w.bind("d/b"))
		if next, err := s.Scan(ctx, last); next != last || err == nil {
			t.Fatalf("%v, %v", next, err)
		}
		if got := paths(scanOK(t, s, last)); len(got) != 2 {
			t.Errorf("it found %q", got)
		}
	})
}

func TestSkipOnOS(t *testing.T) {
	w := osWorld(t)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(w.bind("d/a"))
	s := newScanner(t, Config{Root: w.root})
	last := scanOK(t, s, nil)
	if runtime.GOOS != "linux" {
		if scanOK(t, s, last); s.memory.dirs[1].settling.settled {
			t.Error("it skips where nobody measured that it may")
		}
		return
	}
	last = settled(t, s)
	// Wrappers that pass the real files on are as good; a union shows by the key when its layer comes into play.
	union := afero.NewCopyOnWriteFs(afero.NewOsFs(), afero.NewMemMapFs())
	for _, fs := range []afero.Fs{afero.NewBasePathFs(afero.NewOsFs(), w.base), afero.NewReadOnlyFs(afero.NewOsFs()), union} {
		root := w.root
		if _, ok := fs.(*afero.BasePathFs); ok {
			root = "/root"
		}
		s := newScanner(t, Config{FS: fs, Root: root})
		last := settled(t, s)
		if last.Len() != 1 {
			t.Errorf("%s: found %d", fs.Name(), last.Len())
		}
		if fs == union {
			w.must(afero.WriteFile(union, w.path("d/file"), nil, 0o644))
			if next := scanOK(t, s, last); len(next.Ignored()) != 1 {
				t.Errorf("a file in the union's layer was not found")
			}
		}
	}
	w.must(w.bind("d/b"))
	if got := paths(scanOK(t, s, last)); !slices.Equal(got, []string{w.path("d/a"), w.path("d/b")}) {
		t.Errorf("found %q", got)
	}
}

// What is asked of the system for a directory that is skipped is what package os says of it.
func TestKeyOfOS(t *testing.T) {
	w := osWorld(t)
	w.must(w.fs.Mkdir(w.path("d"), 0o755))
	w.must(os.Chmod(w.path("d"), 0o751|fs.ModeSticky|fs.ModeSetgid|fs.ModeSetuid))
	w.must(w.bind("a"))
	w.must(w.link("d", "link"))
	for _, path := range []string{w.path("d"), w.root, "/", "."} {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		if k, mode, ok := osKey(path); !ok || k != keyOf(info) || mode != info.Mode() {
			t.Errorf("%s: %+v %v %v, want %+v %v", path, k, mode, ok, keyOf(info), info.Mode())
		}
	}
	for _, name := range []string{"a", "link", "none", "a/b"} {
		if k, mode, ok := osKey(w.path(name)); ok || k != (key{}) || mode != 0 {
			t.Errorf("%s: %+v %v", name, k, mode)
		}
	}
}
