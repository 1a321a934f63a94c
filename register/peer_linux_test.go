package register

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// L1: when a process started is found whatever its program is called.
func TestStartIn(t *testing.T) {
	const rest = " S 4 5 6 7 -8 9 10 11 12 13 14 15 16 17 18 19 20 21 987654 23 24"
	for stat, want := range map[string]uint64{
		"42 (plugin)" + rest:            987654,
		"42 (a b) c) (d)" + rest:        987654,
		"42 ()\n) S 1 2 3" + ")" + rest: 987654,
		"42 (\xff)" + rest + "\n":       987654,
		"42 (plugin) S 1 2 3":           0,
		"":                              0,
		")":                             0,
		"42 (p)" + rest[:strings.Index(rest, "987654")]: 0,
		strings.Repeat("x ", 100):                       0,
		"1 (p) " + strings.Repeat("-", 9):               0,
	} {
		if got := startIn([]byte(stat)); got != want {
			t.Errorf("%q: %d, want %d", stat, got, want)
		}
	}
	for pid, known := range map[int]bool{os.Getpid(): true, 0: false, -1: false, 1 << 30: false} {
		if start, err := startOf(pid); (start != 0) != known || err != nil {
			t.Errorf("process %d: %d, %v", pid, start, err)
		}
	}
}

func FuzzStartIn(f *testing.F) {
	f.Add([]byte("42 (a b) c) S 1 2"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if start := startIn(stat); start != 0 && !bytes.Contains(stat, []byte(")")) && len(bytes.Fields(stat)) < 20 {
			t.Errorf("%q: %d", stat, start)
		}
	})
}

// L1: the peer of a real socket is who listens, not who made the connection's other end.
func TestPeerOf(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	l := listenAt(t, path)
	conn, err := dialUnix(t.Context(), scanner.Entry{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = l
	peer, ok := peerOf(conn)
	start, err := startOf(os.Getpid())
	if want := (state.Peer{UID: os.Getuid(), PID: os.Getpid(), Start: start}); !ok || err != nil || peer != want {
		t.Errorf("the peer is %+v, want %+v", peer, want)
	}
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	if _, ok := peerOf(a); ok {
		t.Error("a pipe has a peer")
	}
}

// L1: another process is told apart, in a namespace below ours too.
func TestPeerOfAnother(t *testing.T) {
	for name, command := range map[string][]string{"same namespace": nil, "namespace below": {"unshare", "--pid", "--fork", "--mount-proc"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(socketDir(t), "a.sock")
			args := append(command, os.Args[0], "-test.run=^TestPeerChild$") //nolint:gocritic // another slice is meant
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "PLUGPOLL_LISTEN="+path)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close(); _ = cmd.Wait() }()
			answer := make([]byte, 10)
			if n, _ := out.Read(answer); string(answer[:n]) != "listening\n" {
				lacking(t, "no child: "+string(answer[:n]))
			}
			conn, err := dialUnix(t.Context(), scanner.Entry{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			peer, ok := peerOf(conn)
			if !ok || peer.UID != os.Getuid() || peer.PID == os.Getpid() || (peer.Start == 0) != (peer.PID == 0) {
				t.Errorf("the peer is %+v, %v", peer, ok)
			}
			if name == "same namespace" && peer.PID != cmd.Process.Pid {
				t.Errorf("the peer is %+v, the child %d", peer, cmd.Process.Pid)
			}
		})
	}
}

// TestPeerChild is no test but the other process of TestPeerOfAnother.
func TestPeerChild(t *testing.T) {
	path := os.Getenv("PLUGPOLL_LISTEN")
	if path == "" {
		return
	}
	l := listenAt(t, path)
	_, _ = os.Stdout.WriteString("listening\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = l.Close()
}

// L1, X1: of a process that has no number in our namespace the user is known, and that alone.
func TestPeerOutOfSight(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	listenAt(t, path)
	cmd := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", os.Args[0], "-test.run=^TestPeerOutOfSightChild$")
	cmd.Env = append(os.Environ(), "PLUGPOLL_DIAL="+path)
	out, err := cmd.CombinedOutput()
	text, ok := strings.CutPrefix(string(out), "peer ")
	if !ok {
		lacking(t, fmt.Sprintf("no namespace: %v: %s", err, out))
	}
	if want := fmt.Sprintf("%+v true\n", state.Peer{UID: os.Getuid()}); !strings.HasPrefix(text, want) {
		t.Errorf("the peer is %s, want %s", text, want)
	}
}

// TestPeerOutOfSightChild is no test but the child of TestPeerOutOfSight.
func TestPeerOutOfSightChild(t *testing.T) {
	path := os.Getenv("PLUGPOLL_DIAL")
	if path == "" {
		return
	}
	conn, err := dialUnix(t.Context(), scanner.Entry{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	peer, ok := peerOf(conn)
	fmt.Printf("peer %+v %v\n", peer, ok)
	_ = conn.Close()
}

// X1: the owner of a socket is looked at before it is dialled, by our Dialer and before anybody else's.
func TestRealOwner(t *testing.T) {
	path := filepath.Join(socketDir(t), "a.sock")
	l := listenAt(t, path)
	me, other := os.Getuid(), os.Getuid()+1
	ours := ownersOnly(dialUnix, []int{me}, nil)
	reject := func(what string, dial Dialer, e scanner.Entry) {
		t.Helper()
		conn, err := dial(t.Context(), e)
		if conn != nil {
			_ = conn.Close()
		}
		if failureOf(err) != state.Permanent || !strings.Contains(err.Error(), "the socket belongs to uid ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	e := seen(t, path)
	for what, dial := range map[string]Dialer{"ours": unixDialer([]int{other, me}), "another": ours} {
		conn, err := dial(t.Context(), e)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_ = conn.Close()
	}
	reject("ours", unixDialer([]int{other}), e)
	reject("another", ownersOnly(dialUnix, []int{other}, nil), e)
	if me != 0 || os.Getenv("PLUGPOLL_NOINOTIFY") != "" {
		t.Skip("chown needs root, and not in the user namespace of noinotify.sh")
	}
	// Whoever may put a link there must not have a socket registered that is an allowed user's.
	link := filepath.Join(filepath.Dir(path), "link.sock")
	if err := errors.Join(os.Symlink(path, link), os.Lchown(link, other, -1)); err != nil {
		t.Fatal(err)
	}
	for what, dial := range map[string]Dialer{"ours": unixDialer([]int{me}), "another": ours} {
		if _, err := dial(t.Context(), seen(t, link)); failureOf(err) != state.Permanent || !strings.Contains(err.Error(), "it is a link that belongs to uid ") {
			t.Errorf("%s, of a link: %v", what, err)
		}
	}
	if err := os.Chown(path, other, -1); err != nil {
		t.Fatal(err)
	}
	reject("ours, after chown", unixDialer([]int{me}), e)
	reject("another, after chown", ours, e)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := ours(t.Context(), e); !errors.Is(err, syscall.ENOENT) || strings.Contains(err.Error(), path) {
		t.Errorf("removed: %v", err)
	}
	_ = l
}
