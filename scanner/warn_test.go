package scanner

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/afero"

	"github.com/plugpoll/plugpoll/conformance/simfs"
)

// X1: which directories are warned about.
func TestExposed(t *testing.T) {
	const dir, sticky = fs.ModeDir, fs.ModeDir | fs.ModeSticky
	for _, test := range []struct {
		goos        string
		mode        fs.FileMode
		above, ours bool
		want        bool
	}{
		{"linux", dir | 0o755, false, false, false},
		{"linux", dir | 0o775, false, false, false}, // a group was chosen
		{"linux", dir | 0o777, false, false, true},
		{"linux", dir | 0o702, false, false, true},
		{"linux", sticky | 0o777, false, false, true}, // sockets can be added
		{"linux", sticky | 0o777, false, true, true},
		{"linux", 0o777, false, false, false}, // no directory
		{"linux", fs.ModeSymlink | 0o777, true, false, false},
		{"linux", dir | 0o755, true, false, false},
		{"linux", dir | 0o777, true, true, true},
		{"linux", sticky | 0o777, true, true, false}, // /tmp/ours
		{"linux", sticky | 0o777, true, false, true}, // /tmp/theirs, or not there yet
		{"darwin", dir | 0o777, false, false, true},
		{"windows", dir | 0o777, false, false, false},
		{"windows", dir | 0o777, true, false, false},
	} {
		if got := exposed(test.goos, test.mode, test.above, test.ours); got != test.want {
			t.Errorf("%s %v, above %v, ours %v: %v", test.goos, test.mode, test.above, test.ours, got)
		}
	}
	for mode, want := range map[fs.FileMode]string{dir | 0o755: "0755", sticky | 0o777: "1777", dir | fs.ModeSetgid | 0o777: "2777", fs.ModeSetuid | 0o702: "4702"} {
		if got := octal(mode); got != want {
			t.Errorf("%v is written %s", mode, got)
		}
	}
}

// warnings are lines of a log, without their time and with the names that tests give.
type warnings struct {
	bytes.Buffer
	base string
}

func (l *warnings) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Warn, DisableTime: true})
}

func (l *warnings) take() string {
	text := strings.NewReplacer(l.base+"/", "", "[WARN]  ", "", warnWritable, "writable", warnParent, "above").Replace(l.String())
	l.Reset()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// X1 on the operating system's filesystem, whoever runs the test.
func TestWarn(t *testing.T) {
	w := osWorld(t)
	chmod := func(name string, mode fs.FileMode) { w.must(os.Chmod(filepath.Join(w.base, name), mode)) }
	for _, name := range []string{"p", "p/q", "p/q/root", "p/q/root/open dir", "p/q/root/group", "p/q/root/later", "p/q/root/.dot"} {
		w.must(os.Mkdir(filepath.Join(w.base, name), 0o755))
	}
	chmod("p", 0o777)
	chmod("p/q", 0o777|fs.ModeSticky)
	chmod("p/q/root/open dir", 0o777|fs.ModeSticky)
	chmod("p/q/root/group", 0o775)
	chmod("p/q/root/.dot", 0o777)
	log := &warnings{base: w.base}
	s := newScanner(t, Config{Root: filepath.Join(w.base, "p/q/root"), Logger: log.logger()})
	last := scanOK(t, s, nil)
	if got, want := log.take(), `above: path=p mode=0777; writable: path="\"`+w.base+`/p/q/root/open dir\"" mode=1777`; got != strings.ReplaceAll(want, w.base+"/", "") {
		t.Errorf("at first: %s", got)
	}
	for range 3 { // then it skips
		w.wait(fineSettleTime)
		last = scanOK(t, s, last)
	}
	if got := log.take(); got != "" {
		t.Errorf("once more: %s", got)
	}
	chmod("p/q/root/later", 0o777)
	chmod("p/q/root", 0o757)
	for range 2 {
		last = scanOK(t, s, last)
	}
	if got := log.take(); got != "writable: path=p/q/root mode=0757; writable: path=p/q/root/later mode=0777" {
		t.Errorf("later: %s", got)
	}

	// A root that is not there may be made by anybody in a sticky directory.
	s = newScanner(t, Config{Root: filepath.Join(w.base, "p/q/none"), Logger: log.logger()})
	_, _ = s.Scan(t.Context(), nil)
	if got := log.take(); got != "above: path=p mode=0777; above: path=p/q mode=1777" {
		t.Errorf("missing: %s", got)
	}
}

// X1: no call is made for it but once, for what is above, and none if nobody reads the log; on Windows a mode means nothing; there is an end to it.
func TestWarnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld(t, simfs.Config{Stable: true})
		for i := range 2 * maxWarned {
			w.must(w.fs.Mkdir(w.path(string(rune('a'+i))), 0o777))
			w.must(w.fs.Chmod(w.path(string(rune('a'+i))), 0o777))
		}
		log := &warnings{base: w.base}
		for _, test := range []struct {
			goos          string
			logger        hclog.Logger
			calls, warned int
		}{{"linux", nil, 0, 0}, {"linux", log.logger(), 1, maxWarned}, {"windows", log.logger(), 0, 0}} {
			s := newScanner(t, Config{FS: w.fs, Root: w.root, Logger: test.logger})
			s.goos = test.goos
			before := w.sim.Calls("/w", simfs.OpLstat)
			var last *Snapshot
			for range 5 {
				last = scanOK(t, s, last)
				w.wait(time.Second)
			}
			if n, lines := w.sim.Calls("/w", simfs.OpLstat)-before, strings.Count(log.String(), "\n"); n != test.calls || lines != test.warned {
				t.Errorf("%s: %d calls, %d lines", test.goos, n, lines)
			}
			log.Reset()
		}
	})
}

// U4: what is above the root may hang too.
func TestWarnHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hangWorld(t, simfs.Config{})
		log := &warnings{base: w.base}
		release := w.hang("..", simfs.OpLstat)
		s := newScanner(t, Config{FS: w.fs, Root: w.root, Logger: log.logger()})
		last, got := w.look(s, nil)
		if got != "5s: a d/b d/l e/c" {
			t.Error(got)
		}
		if _, got = w.look(s, last); got != "0s: a d/b d/l e/c" || stuckText(s) != "lstat /w" {
			t.Errorf("%s; stuck is %s", got, stuckText(s))
		}
		release()
	})
}

func TestWayUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	if got := wayUp(afero.NewOsFs(), "/a/b/c"); !slices.Equal(got, []string{"/a/b/c", "/a/b", "/a", "/"}) {
		t.Errorf("%q", got)
	}
	if got := wayUp(afero.NewMemMapFs(), "b/c"); !slices.Equal(got, []string{"b/c", "b", "."}) {
		t.Errorf("%q", got)
	}
	if got := wayUp(afero.NewOsFs(), "c"); got[0] != "c" || len(got) < 2 || got[len(got)-1] != "/" {
		t.Errorf("%q", got)
	}
}
