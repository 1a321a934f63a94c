package register

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// R10, S1, S3: a real filesystem hangs in the open of a dial. The dial is given up and not made again, Run ends without it and says so, and once the
// filesystem goes on nothing of it is left.
func TestRealHungDial(t *testing.T) {
	dir, back := mounted(t, "true")
	server := loopback(t, back, dir)
	signal := func(s unix.Signal) {
		t.Helper()
		if err := server.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = server.Signal(unix.SIGCONT) })
	path := filepath.Join(dir, "a.sock")
	p := serveOn(t, listenAt(t, path), "a")
	before := openFiles(t)
	var dials atomic.Int32
	m, err := NewManager(Config{
		Roots:       []scanner.Config{{Root: dir, Interval: time.Hour}},
		DialTimeout: 200 * time.Millisecond,
		Dial: func(ctx context.Context, e scanner.Entry) (net.Conn, error) {
			dials.Add(1)
			signal(unix.SIGSTOP)
			awaitStopped(t, server.Pid)
			return dialUnix(ctx, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &realNode{T: t, dir: dir, m: m, h: newTaker()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	n.await(path, "given up", func(s state.SocketView) bool {
		return s.Phase == state.Backoff && s.Tries >= 3 && s.LastError == "dial: "+errHung.Error()
	})
	if got := dials.Load(); got != 1 {
		t.Errorf("%d dials hang, want 1", got)
	}
	asked := time.Now()
	cancel()
	stuck, ok := errors.AsType[*StuckError](<-ended)
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("Run returned after %v", took)
	}
	if want := "dial of " + path; !ok || !slices.Contains(stuck.Calls, want) { // and an eager scan
		t.Errorf("stuck are %v, want %q", stuck, want)
	}
	signal(unix.SIGCONT)
	for deadline := time.Now().Add(10 * time.Second); m.dials.count() > 0 || openFiles(t) > before; {
		if time.Now().After(deadline) {
			t.Fatalf("S3: %d dials hang, %d descriptors are open, there were %d", m.dials.count(), openFiles(t), before)
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) //nolint:errcheck // a pause
	}
	next := startEnvNode(t, scanner.Config{Root: dir, Interval: 10 * time.Millisecond})
	next.acknowledged(p)
	next.awaitRegistered(path)
}

// awaitStopped returns when no thread of a process runs.
func awaitStopped(t *testing.T, pid int) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		runs := func(file string) bool {
			stat, err := os.ReadFile(file)
			return err != nil || !bytes.Contains(stat, []byte(") T "))
		}
		if err == nil && !slices.ContainsFunc(all, runs) {
			return
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) //nolint:errcheck // a pause
	}
	t.Error("the FUSE server does not stop")
}
