//go:build unix

package register

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/plugpoll/plugpoll/scanner"
	"github.com/plugpoll/plugpoll/state"
)

// A plugin's life on a real socket: registered, replaced in both ways, removed.
func TestRealLife(t *testing.T) {
	n := newRealNode(t)
	path := n.at("a.sock")
	first := n.serve(path, "a")
	n.acknowledged(first)
	n.awaitRegistered(path)
	n.calls("Validate a", "Register a")
	if fs := n.m.View().Roots[0].Filesystem; runtime.GOOS == "linux" && (fs == "unknown" || fs == "OsFs") {
		t.Errorf("the view has the filesystem %q", fs)
	}

	// A plugin that binds a new name and renames it over the old one.
	second := n.serve(n.at(".new"), "a")
	n.must(os.Rename(n.at(".new"), path))
	n.acknowledged(second)
	n.awaitRegistered(path)
	n.calls("Deregister a", "Validate a", "Register a")
	first.server.Stop()

	// A plugin that removes what is left of its predecessor.
	second.server.Stop()
	n.must(os.Remove(path))
	third := n.serve(path, "a")
	n.acknowledged(third)
	n.awaitRegistered(path)
	n.calls("Deregister a", "Validate a", "Register a")

	n.must(os.Remove(path))
	n.awaitGone(path)
	n.calls("Deregister a")
	// Between the end of the second one and the removal of its socket it may be asked whether it is still there (L1).
	if got := n.dialled("a.sock"); got < 3 || got > 6 {
		t.Errorf("%d dials", got)
	}
}

// D5: a link to a socket that lives elsewhere.
func TestRealLink(t *testing.T) {
	n := newRealNode(t)
	elsewhere, err := os.MkdirTemp("", "r") //nolint:usetesting // short
	n.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	target, link := filepath.Join(elsewhere, "t.sock"), n.at("link.sock")
	p := n.serve(target, "a")
	n.must(os.Symlink(target, link))
	n.acknowledged(p)
	n.awaitRegistered(link)
	if got := n.h.holding(link).Endpoint; got != link {
		t.Errorf("the endpoint is %s", got)
	}
	q := n.serve(filepath.Join(elsewhere, "u.sock"), "a")
	n.must(os.Rename(filepath.Join(elsewhere, "u.sock"), target))
	n.acknowledged(q)
	n.must(os.Remove(target))
	n.awaitGone(link)
	n.calls("Validate a", "Register a", "Deregister a", "Validate a", "Register a", "Deregister a")
}

// D10: names that a URL, a shell or a terminal would trip over.
func TestRealNames(t *testing.T) {
	n := newRealNode(t)
	names := []string{"with blank", "a#b", "a?b=c", "a%41", "%", "a\nb", "-", "~", `a\b`, "é", "unix:a", "@a", "'\"", "a.sock;b"}
	if runtime.GOOS == "linux" {
		names = append(names, "\xff\xfe")
	}
	for _, name := range names {
		p := n.serve(n.at(name), "p")
		n.acknowledged(p)
		n.awaitRegistered(n.at(name))
		n.must(os.Remove(n.at(name)))
		n.awaitGone(n.at(name))
	}
}

// A relative path that begins with @ is a file, and not an abstract name.
func TestRealAtSign(t *testing.T) {
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Chdir(dir)
	if err := os.Mkdir("@x", 0o755); err != nil {
		t.Fatal(err)
	}
	n := startRealNode(t, "@x")
	p := n.serve(filepath.Join(dir, "@x/a.sock"), "a")
	n.acknowledged(p)
	n.awaitRegistered("@x/a.sock")
}

// R14: no proxy has a say.
func TestRealProxy(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	t.Setenv("NO_PROXY", "")
	n := newRealNode(t)
	n.acknowledged(n.serve(n.at("a.sock"), "a"))
}

// D2: what is no socket is never dialled; R13: what is no stream socket is ignored.
func TestRealOtherFiles(t *testing.T) {
	n := newRealNode(t)
	n.must(os.WriteFile(n.at("file.sock"), nil, 0o600))
	n.must(syscall.Mkfifo(n.at("fifo.sock"), 0o600))
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: n.at("dgram.sock"), Net: "unixgram"})
	n.must(err)
	t.Cleanup(func() { _ = datagrams.Close() })
	s := n.await(n.at("dgram.sock"), "ignored", func(s state.SocketView) bool { return s.Phase == state.NotPlugin })
	if runtime.GOOS == "linux" && s.LastError != "dial: connect: protocol wrong type for socket" {
		t.Errorf("View shows %q", s.LastError)
	}
	n.acknowledged(n.serve(n.at("a.sock"), "a"))
	for _, name := range []string{"file.sock", "fifo.sock"} {
		if got := n.dialled(name); got != 0 {
			t.Errorf("%s was dialled %d times", name, got)
		}
	}
	v := n.m.View()
	if i := v.Roots[0].Ignored; len(v.Sockets) != 2 || len(i) != 1 || i[0].Count != 2 || i[0].Reason != scanner.NotSocket {
		t.Errorf("View shows %+v", v)
	}
}

// A socket that nobody serves any more, until somebody does.
func TestRealDeadSocket(t *testing.T) {
	n := newRealNode(t)
	path := n.at("a.sock")
	n.serve(path, "a").server.Stop()
	s := n.await(path, "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries >= 2 })
	if s.LastError != "dial: connect: connection refused" {
		t.Errorf("View shows %q", s.LastError)
	}
	n.must(os.Remove(path))
	n.acknowledged(n.serve(path, "a"))
	n.awaitRegistered(path)
}

// R17: servers that speak no gRPC cost one connect for each try.
func TestRealOtherServers(t *testing.T) {
	for name, answer := range map[string]string{"closes": "", "garbage": "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1": "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			n := newRealNode(t)
			path := n.at("a.sock")
			l := n.listen(path)
			t.Cleanup(func() { _ = l.Close() })
			var accepted atomic.Int64
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					accepted.Add(1)
					_, _ = c.Write([]byte(answer))
					_ = c.Close()
				}
			}()
			s := n.await(path, "failing", func(s state.SocketView) bool { return s.Phase == state.Backoff && s.Tries == 3 })
			if got := accepted.Load(); got != 3 {
				t.Errorf("%d connects for %d tries", got, s.Tries)
			}
			if !strings.HasPrefix(s.LastError, "GetInfo: ") || strings.Contains(s.LastError, "desc =") || strings.Contains(s.LastError, path) {
				t.Errorf("View shows %q", s.LastError)
			}
			t.Log(s.LastError)
		})
	}
}

// N3 in small: many registrations of one socket, the last one is registered, and nothing is left of the others (newRealNode checks).
func TestRealManyReplacements(t *testing.T) {
	n := newRealNode(t)
	path := n.at("a.sock")
	old := n.serve(path, "a")
	n.acknowledged(old)
	before := sockets(t)
	for range 50 {
		next := n.serve(n.at(".new"), "a")
		n.must(os.Rename(n.at(".new"), path))
		n.acknowledged(next)
		old.server.Stop()
		old = next
	}
	n.awaitRegistered(path)
	if got := sockets(t); got != before {
		t.Errorf("N3: %d sockets are open, %d were at first", got, before)
	}
	if !exists(path) {
		t.Error("the socket is gone")
	}
	if got := n.h.take(); len(got) != 2+50*3 {
		t.Errorf("%d calls", len(got))
	}
}
