package register

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// U3: what is kept free for scans.
func TestFiles(t *testing.T) {
	for _, test := range []struct{ soft, roots, most int }{{0, 1, 0}, {64, 1, 32}, {100, 2, 50}, {1024, 1, 951}, {1024, 3, 933}} {
		var f files
		f.limit(test.soft, test.roots)
		if f.most != test.most {
			t.Errorf("of %d with %d roots %d are given, want %d", test.soft, test.roots, f.most, test.most)
		}
	}
	var f files
	f.limit(64, 1)
	for range 15 {
		if err := f.take(2); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = f.take(1), f.take(2)
	// O1: one cause has one text, however many connections there are.
	want := "too many open files: of the 64 that the process may have 32 are kept free from connections: raise its limit (ulimit -n, LimitNOFILE=)"
	if err := f.take(2); err == nil || err.Error() != want || failureOf(err) != state.Local {
		t.Errorf("the error is %v, of kind %v", err, failureOf(err))
	}
	f.give(1)
	if err := f.take(2); err != nil {
		t.Error(err)
	}
}

// L1: a lack on our side says nothing of the plugin, whatever call has met it.
func TestLocalFailures(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, wsaNoFiles, wsaNoBuffers} {
		err := fmt.Errorf("dial: %w", os.NewSyscallError("connect", errno))
		if got := failureOf(err); got != state.Local {
			t.Errorf("%v is of kind %v", err, got)
		}
	}
}

// L1: who listens is not called unknown when a lack of descriptors kept us from looking; that would make the plugin another instance.
func TestPeerWithoutFiles(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	listenAt(t, path)
	conn, err := dialUnix(t.Context(), seen(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	peer, err := systemPeer(conn)
	if restore := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); restore != nil {
		t.Fatal(restore)
	}
	if peer != nil || failureOf(err) != state.Local {
		t.Errorf("the peer is %+v, %v", peer, err)
	}
}

// U3: more plugins than the process may open files do not keep it from scanning, and those that found no place get one when others leave.
func TestRealFewFiles(t *testing.T) {
	dir := socketDir(t)
	for i := range 100 {
		serveOn(t, listenAt(t, filepath.Join(dir, fmt.Sprintf("%02d.sock", i))), fmt.Sprintf("p%02d", i))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFewFilesChild$", "-test.v")
	cmd.Env = append(os.Environ(), "PLUGPOLL_FEW_FILES="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFewFilesChild") {
		t.Errorf("the child: %v: %s", err, out)
	}
}

// TestFewFilesChild is no test but the process of TestRealFewFiles.
func TestFewFilesChild(t *testing.T) {
	dir := os.Getenv("PLUGPOLL_FEW_FILES")
	if dir == "" {
		return
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}))
	m, err := NewManager(Config{Roots: []scanner.Config{{Root: dir, Interval: 20 * time.Millisecond}}})
	must(err)
	must(m.AddHandler(testType, newTaker()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() { cancel(); must(<-ended) }()
	registered := func() (n int) {
		for _, s := range m.View().Sockets {
			if s.Phase == state.Registered {
				n++
			}
		}
		return n
	}
	await := func(what string, wanted func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !wanted(); {
			if time.Now().After(deadline) {
				t.Fatalf("not %s: %d are registered, the root's error is %q", what, registered(), m.View().Roots[0].Error)
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 1e7}, nil) //nolint:errcheck // a pause
		}
	}
	await("full", func() bool { return registered() >= 30 })
	await("refused", func() bool {
		for _, s := range m.View().Sockets {
			if s.Phase == state.Backoff && strings.HasPrefix(s.LastError, "dial: ") && strings.HasSuffix(s.LastError, "(ulimit -n, LimitNOFILE=)") {
				return true
			}
		}
		return false
	})
	// The scanner sees what is new, and without an error.
	must(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	await("scanned", func() bool { return len(m.View().Roots[0].Ignored) == 1 })
	if e := m.View().Roots[0].Error; e != "" {
		t.Errorf("the root's error is %s", e)
	}
	before := map[string]bool{}
	for _, s := range m.View().Sockets {
		if s.Phase == state.Registered {
			before[s.Path] = true
			must(os.Remove(s.Path))
		}
	}
	await("others", func() bool {
		n := 0
		for _, s := range m.View().Sockets {
			if s.Phase == state.Registered && !before[s.Path] {
				n++
			}
		}
		return n >= 30
	})
	for line := range strings.Lines(fmt.Sprintf("%+v", m.View().Roots[0].Error)) {
		t.Errorf("the root's error is %s", line)
	}
}
