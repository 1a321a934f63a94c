package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A stop with a log that nobody reads takes up to lastLines, with events that nobody reads lastEvents more; the rest is for a slow machine.
const unreadStop = 8 * time.Second

// startUnread starts a daemon with a log that nobody reads, and returns when it works all the same. Its standard output is stdout.
func startUnread(t *testing.T, stderr, stdout *os.File, flags ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it sends Unix signals")
	}
	made := filepath.Join(t.TempDir(), "made by the daemon")
	cmd := exec.CommandContext(t.Context(), "plugpoll", append([]string{"run", "--listen", "none", "--dir", made}, flags...)...)
	if stderr != nil {
		cmd.Stderr = stderr
	}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if !poll(func() bool { _, err := os.Stat(made); return err == nil }) {
		t.Fatal("the daemon waits for its log to be read")
	}
	return cmd
}

// endsWith waits for the end of a daemon that was told to stop.
func endsWith(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	late := time.AfterFunc(unreadStop, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !late.Stop() {
		t.Fatal("it does not stop")
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
}

func terminate(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// TestUnreadLog: a log that nobody reads holds nothing up, neither the work nor the end.
func TestUnreadLog(t *testing.T) {
	t.Run("stops", func(t *testing.T) {
		t.Parallel()
		r, w := fullPipe(t)
		defer func() { _ = r.Close() }()
		cmd := startUnread(t, w, nil, "--interval", "1ms", "--log-level", "trace")
		_ = w.Close()
		terminate(t, cmd)
		endsWith(t, cmd, exitDone)
	})
	// The complaint is not waited for either.
	t.Run("fails", func(t *testing.T) {
		t.Parallel()
		r, w := fullPipe(t)
		defer func() { _ = r.Close() }()
		cmd := startUnread(t, w, w, "-o", "json")
		_ = w.Close()
		terminate(t, cmd)
		endsWith(t, cmd, exitFailed)
	})
	t.Run("told twice", func(t *testing.T) {
		t.Parallel()
		r, w := fullPipe(t)
		defer func() { _ = r.Close() }()
		cmd := startUnread(t, w, w, "-o", "json")
		_ = w.Close()
		ctx, ended := context.WithCancel(t.Context())
		defer ended()
		go func() {
			// Two signals at once may arrive as one.
			for ctx.Err() == nil {
				terminate(t, cmd)
				<-time.After(20 * time.Millisecond)
			}
		}()
		endsWith(t, cmd, exitStuck)
	})
}

// TestUnreadLogReturns: who reads again after a while is told how many lines are missing, in the log's own format, and misses none after that.
func TestUnreadLogReturns(t *testing.T) {
	for format, lost := range map[string]*regexp.Regexp{
		"text": regexp.MustCompile(`^\S+ \[WARN\]  the log was not read in time, lines are missing here: lost=(\d+)$`),
		"json": regexp.MustCompile(`^\{"@level":"warn","@message":"the log was not read in time, lines are missing here","@module":"plugpoll","@timestamp":"[^"]+","lost":(\d+)\}$`),
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			flags := []string{"--interval", "1ms", "--log-level", "trace", "--log-format", format}
			// Long lines fill the queue sooner.
			long := strings.Repeat(strings.Repeat("x", 250)+string(filepath.Separator), 3)
			for range 20 {
				dir := filepath.Join(t.TempDir(), long)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				flags = append(flags, "--dir", dir)
			}
			cmd := startUnread(t, w, nil, flags...)
			_ = w.Close()
			lines := bufio.NewScanner(r)
			// How soon the queue is full depends on the machine.
			found := false
			for pause := 500 * time.Millisecond; !found && pause < patience; pause *= 2 {
				<-time.After(pause)
				for read := 0; !found && read < 2*maxQueue && lines.Scan(); read += len(lines.Bytes()) {
					m := lost.FindStringSubmatch(lines.Text())
					if found = m != nil; found {
						if n, err := strconv.Atoi(m[1]); err != nil || n < 1 {
							t.Errorf("lost is %q", m[1])
						}
					}
				}
			}
			if !found {
				t.Fatal("no line says that lines are missing")
			}
			terminate(t, cmd)
			var last string
			for lines.Scan() {
				last = lines.Text()
			}
			if !strings.Contains(last, "stopped") {
				t.Errorf("the last line is %q", last)
			}
			endsWith(t, cmd, exitDone)
		})
	}
}
