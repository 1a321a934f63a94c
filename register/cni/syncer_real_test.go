//go:build unix

package cni

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// script is a plugin. What it does is up to the files beside it: slow has ADD take 3 s, failing has STATUS fail, and hangs has it not end. It notes its calls.
const script = `#!/bin/sh
cd "${0%/*}" || exit 1
cat >/dev/null
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME" >>calls
case $CNI_COMMAND in
ADD)
	if [ -f slow ]; then sleep 3; fi
	echo '{"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/ns"}], "ips": [{"address": "192.0.2.2/24", "interface": 0}]}'
	;;
STATUS)
	if [ -f hangs ]; then sleep 1000; fi
	if [ -f failing ]; then
		echo '{"cniVersion": "1.1.0", "code": 50, "msg": "agent is not up"}'
		exit 1
	fi
	;;
esac
`

// real is a Syncer on directories of the operating system, with a plugin that is a script.
type real struct {
	*testing.T
	s        *Syncer
	conf, at string // where the configuration is, and the plugins
	log      *output
}

// startReal starts a Syncer on fresh directories. When the test ends it is stopped, and nothing may be left.
func startReal(t *testing.T, cfg Config, plugins ...string) *real {
	t.Helper()
	base := t.TempDir()
	r := &real{T: t, conf: filepath.Join(base, "net.d"), at: filepath.Join(base, "bin"), log: &output{}}
	for _, dir := range []string{r.conf, r.at} {
		r.must(os.Mkdir(dir, 0o755))
	}
	for _, p := range plugins {
		r.install(p)
	}
	r.begin(cfg)
	return r
}

// begin starts the Syncer on the directories.
func (r *real) begin(cfg Config) {
	r.Helper()
	cfg.ConfDir, cfg.BinDirs = r.conf, []string{r.at}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: r.log, DisableTime: true})
	s, err := New(cfg)
	r.must(err)
	r.s = s
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t := r.T
	t.Cleanup(func() {
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("S1: Run took %v to stop", took)
		}
		if t.Failed() {
			t.Log("log:\n" + r.log.String())
		}
	})
}

func (r *real) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *real) install(plugin string) {
	r.Helper()
	temporary := filepath.Join(r.at, "."+plugin)
	r.must(os.WriteFile(temporary, []byte(script), 0o755))
	r.must(os.Rename(temporary, filepath.Join(r.at, plugin)))
}

// write has a file take another's place at once.
func (r *real) write(name, content string) {
	r.Helper()
	temporary := filepath.Join(r.conf, "."+name)
	r.must(os.WriteFile(temporary, []byte(content), 0o644))
	r.must(os.Rename(temporary, filepath.Join(r.conf, name)))
}

// flag makes one of the files that tell the plugin what to do, or removes it.
func (r *real) flag(name string, on bool) {
	r.Helper()
	path := filepath.Join(r.at, name)
	if on {
		r.must(os.WriteFile(path, nil, 0o644))
		return
	}
	r.must(os.Remove(path))
}

// waits until the View is as wanted, and returns how long that took.
func (r *real) waits(what string, is func(View) bool) time.Duration {
	r.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	for range r.s.Events(ctx) {
		if is(r.s.View()) {
			return time.Since(began)
		}
	}
	v := r.s.View()
	r.Fatalf("waited for %s, and it is %s with network %q: %s%s", what, v.State, v.DefaultNetwork, v.Message, v.LastError)
	return 0
}

func (r *real) waitsFor(state State, network string) time.Duration {
	r.Helper()
	return r.waits(fmt.Sprintf("%s with network %q", state, network), func(v View) bool { return v.State == state && v.DefaultNetwork == network })
}

// called returns the plugin's calls so far but STATUS.
func (r *real) called() (calls []string) {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.at, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "STATUS") {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	return calls
}

// cache ends a test that cannot write where libcni keeps results, which go-cni lets nobody choose. It returns how the test's containers are to be called, whose
// results are removed at the end.
func cache(t *testing.T) (id string) {
	t.Helper()
	const dir = "/var/lib/cni/results"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("libcni's results cannot be kept: %v", err)
		}
		t.Skipf("libcni's results cannot be kept: %v", err)
	}
	id = fmt.Sprintf("plugpoll-%s-%d", t.Name(), os.Getpid())
	t.Cleanup(func() {
		kept, _ := filepath.Glob(filepath.Join(dir, "*-"+id+"*"))
		for _, path := range kept {
			_ = os.Remove(path)
		}
		_ = os.Remove(dir) // if nothing else is in it
		_ = os.Remove(filepath.Dir(dir))
	})
	return id
}

// CN6: while an ADD of 3 s runs, the configuration is replaced, asked for its status and broken as if it did not; the instance that adds is the one of before.
func TestLongADD(t *testing.T) {
	t.Parallel()
	id := cache(t)
	r := startReal(t, Config{}, "long")
	r.flag("slow", true)
	r.write("10-a.conflist", listOf("1.1.0", "before", "long"))
	r.waitsFor(Ready, "before")
	adder := r.s.CNI()
	began := time.Now()
	added := make(chan error, 1)
	go func() {
		_, err := adder.Setup(t.Context(), id, "/ns")
		added <- err
	}()
	for n := range 3 {
		name := fmt.Sprintf("n%d", n)
		r.write("10-a.conflist", listOf("1.1.0", name, "long"))
		r.waitsFor(Ready, name)
		r.must(r.s.Status(t.Context()))
		if r.s.CNI() == adder {
			t.Error("the instance is the one of before")
		}
	}
	r.write("10-a.conflist", broken)
	r.waitsFor(Stale, "n2")
	select {
	case err := <-added:
		t.Errorf("three reloads took %v, and the ADD has ended: %v", time.Since(began), err)
	default:
	}
	r.must(<-added)
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("the ADD took %v only", took)
	}
	r.must(adder.Remove(t.Context(), id, "/ns"))
}

// CN7, CN8: pods are removed while the configuration is broken, and when it is gone.
func TestRemoveWithoutConfiguration(t *testing.T) {
	t.Parallel()
	name := cache(t)
	r := startReal(t, Config{}, "plugin")
	r.write("10-a.conflist", listOf("1.1.0", "a", "plugin"))
	r.waitsFor(Ready, "a")
	id := func(n int) string { return fmt.Sprintf("%s-%d", name, n) }
	var want []string
	for n := range 3 {
		result, err := r.s.CNI().Setup(t.Context(), id(n), "/ns")
		r.must(err)
		if result.Interfaces["eth0"] == nil {
			t.Errorf("the pod's interfaces are %v", result.Interfaces)
		}
		want = append(want, "ADD "+id(n)+" eth0")
	}
	remove := func(n int) {
		r.must(r.s.CNI().Remove(t.Context(), id(n), "/ns"))
		want = append(want, "DEL "+id(n)+" eth0")
	}
	r.write("10-a.conflist", broken)
	r.waitsFor(Stale, "a")
	remove(0)
	r.must(os.Remove(filepath.Join(r.conf, "10-a.conflist")))
	r.waitsFor(NotReady, "a")
	remove(1)
	r.must(os.Remove(r.conf))
	r.waits("no directory", func(v View) bool { return strings.Contains(v.Message, "does not exist") })
	remove(2)
	if got := r.called(); !slices.Equal(got, want) {
		t.Errorf("the plugin's calls were %q, want %q", got, want)
	}
}

// CN10, CN12: real binaries: one that comes, a STATUS that fails, that hangs, and that recovers.
func TestRealPlugin(t *testing.T) {
	t.Parallel()
	r := startReal(t, Config{StatusInterval: 100 * time.Millisecond, StatusTimeout: 500 * time.Millisecond})
	r.write("10-a.conflist", listOf("1.1.0", "a", "agent"))
	r.waits("a missing plugin", func(v View) bool { return strings.Contains(v.Message, r.at) && v.Networks[0].Plugins[0].Missing != "" })
	r.install("agent")
	if took := r.waitsFor(Ready, "a"); took > 2*time.Second {
		t.Errorf("ready %v after the binary has come", took)
	}
	r.flag("failing", true)
	r.waits("a STATUS that fails", func(v View) bool {
		return v.State == NotReady && strings.Contains(v.Message, "agent is not up") && strings.HasPrefix(v.Message, MessagePrefix)
	})
	if err, ok := errors.AsType[*StatusError](r.s.LastStatus()); !ok || err.Code != 50 {
		t.Errorf("the status is %v", r.s.LastStatus())
	}
	r.flag("failing", false)
	r.waitsFor(Ready, "a")
	r.flag("hangs", true)
	r.waits("a STATUS that hangs", func(v View) bool {
		return v.State == NotReady && strings.Contains(v.Message, "it did not answer within 500ms")
	})
	r.write("10-a.conflist", listOf("1.1.0", "b", "agent"))
	r.waits("a reload", func(v View) bool { return v.DefaultNetwork == "b" })
	r.flag("hangs", false)
	r.waitsFor(Ready, "b")
	r.flag("hangs", true) // Run is stopped while it hangs
	r.waits("an asking", func(v View) bool { return !v.Status.Running.IsZero() || v.State == NotReady })
}

// CN5: many quick rewrites are few reloads, and none fails.
func TestQuickRewrites(t *testing.T) {
	t.Parallel()
	r := startReal(t, Config{}, "plugin")
	r.write("10-a.conflist", list("first", "plugin"))
	r.waitsFor(Ready, "first")
	for n := range 100 {
		r.write("10-a.conflist", list(fmt.Sprintf("n%d", n), "plugin"))
	}
	r.waitsFor(Ready, "n99")
	if v := r.s.View(); v.Reloads > 10 {
		t.Errorf("100 rewrites were %d reloads", v.Reloads)
	}
	if got := exposed(t, r.s); !strings.Contains(got, `result="rejected"} 0`) {
		t.Errorf("a reload failed:\n%s", got)
	}
}

// CN3, CN11: what a directory may hold besides, beside a good file that comes first and before one: told apart, bounded and without a hang.
func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(path string) error
		kind Kind
	}{
		{"FIFO", func(path string) error { return syscall.Mkfifo(path, 0o644) }, KindNotRegular},
		{"50 MB", func(path string) error { return os.WriteFile(path, make([]byte, 50<<20), 0o644) }, KindTooLarge},
		{"byte order mark", func(path string) error { return os.WriteFile(path, []byte("\xef\xbb\xbf"+list("b")), 0o644) }, KindBOM},
		{"unreadable", func(path string) error { return os.WriteFile(path, []byte(list("b")), 0) }, KindUnreadable},
		{"dangling", func(path string) error { return os.Symlink("nowhere", path) }, KindDangling},
		{"directory", func(path string) error { return os.Symlink(".", path) }, KindNotRegular},
		{"device", func(path string) error { return os.Symlink("/dev/zero", path) }, KindNotRegular},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.kind == KindUnreadable && os.Geteuid() == 0 {
				t.Skip("root reads everything; TestUnreadableFile has a filesystem that refuses")
			}
			r := startReal(t, Config{}, "plugin")
			r.write("10-a.conflist", list("a", "plugin"))
			r.waitsFor(Ready, "a")
			r.must(test.make(filepath.Join(r.conf, "20-b.conflist")))
			r.waits("a verdict", func(v View) bool { return len(v.Files) == 2 })
			r.waitsFor(Ready, "a")
			r.must(test.make(filepath.Join(r.conf, "00-b.conflist")))
			r.waitsFor(Stale, "a")
			if err := r.s.View().Error; err.Kind != test.kind || err.Path != filepath.Join(r.conf, "00-b.conflist") {
				t.Errorf("it is %+v", err)
			}
			r.must(r.s.LastStatus())
			r.must(r.s.CNI().Status())
		})
	}
}
