//go:build linux

package register

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watching are the system calls that plugpoll never makes. The question mark is for those that not every architecture has.
const watching = "?inotify_init,inotify_init1,inotify_add_watch,fanotify_init,fanotify_mark"

// strace has a program run where the kernel has none of these calls, and notes in a file which of them it makes.
func strace(ctx context.Context, t *testing.T, note string, command ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		lacking(t, err.Error())
	}
	args := []string{"-f", "--seccomp-bpf", "-e", "trace=" + watching, "-e", "inject=" + watching + ":error=ENOSYS", "-e", "signal=none", "-o", note}
	cmd := exec.CommandContext(ctx, "strace", append(args, command...)...)
	// strace alone must not be killed: the program would go on without it, and keep the pipe to the test open.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	return cmd
}

// A kernel without inotify is as good as one with it, since plugpoll never asks for it: not at start, not when a plugin comes and goes.
func TestNoSuchSystemCall(t *testing.T) {
	dir, err := os.MkdirTemp("", "e") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	plugpoll, note, root := filepath.Join(dir, "plugpoll"), filepath.Join(dir, "note"), filepath.Join(dir, "root")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugpoll, "../cmd/plugpoll").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	plugin := exec.CommandContext(ctx, plugpoll, "plugin", "--socket", filepath.Join(root, "a.sock"))
	daemon := strace(ctx, t, note, plugpoll, "run", "--dir", root)
	log, err := daemon.StderrPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = daemon.Wait() }()

	var said strings.Builder
	lines := bufio.NewScanner(io.TeeReader(log, &said))
	await := func(what string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("no %q in the log:\n%s", what, said.String())
	}
	await("started")
	awaitExists(t, root)
	if err := plugin.Start(); err != nil {
		t.Fatal(err)
	}
	await("registered")
	_ = plugin.Process.Signal(unix.SIGTERM)
	await("deregistered")
	_ = plugin.Wait()
	_ = unix.Kill(-daemon.Process.Pid, unix.SIGTERM) // strace lets it pass
	_, _ = io.Copy(&said, log)
	if err := daemon.Wait(); err != nil {
		t.Errorf("plugpoll: %v\n%s", err, said.String())
	}
	if asked, err := os.ReadFile(note); err != nil || strings.Contains(string(asked), "notify") {
		t.Errorf("it asked for what it must not need: %s %v", asked, err)
	}
}

func awaitExists(t *testing.T, path string) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); !exists(path); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s", path)
		}
	}
}

// TestInotifyIsNoted shows that the test above would see it.
func TestInotifyIsNoted(t *testing.T) {
	if os.Getenv("PLUGPOLL_ASK") != "" {
		_, err := unix.InotifyInit1(0)
		if err != unix.ENOSYS {
			t.Fatalf("inotify_init1: %v", err)
		}
		return
	}
	note := filepath.Join(t.TempDir(), "note")
	cmd := strace(t.Context(), t, note, os.Args[0], "-test.run=^TestInotifyIsNoted$")
	cmd.Env = append(os.Environ(), "PLUGPOLL_ASK=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if asked, err := os.ReadFile(note); err != nil || !strings.Contains(string(asked), "inotify_init1(0)") {
		t.Errorf("strace noted %q, %v", asked, err)
	}
}
