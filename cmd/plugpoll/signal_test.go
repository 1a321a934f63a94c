package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buffer is a bytes.Buffer that may be read while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestBlockedReader stops a daemon whose events are read by nobody, though the pipe is open: it gives up by itself, and at once when told twice.
func TestBlockedReader(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it sends Unix signals")
	}
	for _, test := range []struct {
		name  string
		again bool // and again, until it is heard
		twice bool // at once, which is once
		code  int
		says  string
	}{
		{"once", false, false, exitFailed, "plugpoll: standard output: nobody reads the last events\n"},
		{"twice at once", false, true, exitFailed, "plugpoll: standard output: nobody reads the last events\n"},
		{"again", true, false, exitStuck, "plugpoll: SIGTERM again: ended at once, running calls were not waited for\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, w := fullPipe(t)
			defer func() { _ = r.Close() }()
			var stderr buffer
			cmd := exec.CommandContext(t.Context(), "plugpoll", "run", "--listen", "none", "--dir", t.TempDir(), "-o", "json")
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			says := func(text string) {
				t.Helper()
				if !poll(func() bool { return strings.Contains(stderr.String(), text) }) {
					t.Errorf("stderr does not say %q:\n%s", text, stderr.String())
				}
			}
			term := func() {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			says("started")
			term()
			if test.twice {
				term()
			}
			says("stopping")
			if test.again {
				poll(func() bool {
					_ = cmd.Process.Signal(syscall.SIGTERM) // an error says that it has ended
					return strings.Contains(stderr.String(), test.says)
				})
			}
			_ = cmd.Wait()
			says(test.says)
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
		})
	}
}

// fullPipe returns a pipe that takes no more.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for block := 4096; block > 0; block /= 4096 {
		for err = nil; err == nil; {
			_, err = w.Write(make([]byte, block))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	return r, w
}
