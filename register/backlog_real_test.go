//go:build linux

package register

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plugpoll/plugpoll/scanner"
)

// fullBacklog makes a listener whose backlog is full. serve empties it and serves a plugin there.
func fullBacklog(t *testing.T, path string) (serve func(name string) *realPlugin) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(err)
	file := os.NewFile(uintptr(fd), path)
	must(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	must(syscall.Listen(fd, 0))
	var waiting []int
	for err == nil {
		var c int
		c, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		must(err)
		waiting = append(waiting, c)
		err = syscall.Connect(c, &syscall.SockaddrUnix{Name: path})
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("a full backlog is %v", err)
	}
	hangUp := func() {
		for _, c := range waiting {
			_ = syscall.Close(c)
		}
		waiting = nil
	}
	t.Cleanup(func() { hangUp(); _ = file.Close() })
	return func(name string) *realPlugin {
		l, err := net.FileListener(file)
		if err != nil {
			t.Error(err)
			return nil
		}
		hangUp()
		return serveOn(t, l, name)
	}
}

// R10: a full backlog is waited for inside the dial, and is no failure.
func TestRealBacklogFull(t *testing.T) {
	n := newRealNode(t)
	// It is made elsewhere, so that it is full before it is found.
	path := n.at(".full/a.sock")
	n.must(os.Mkdir(n.at(".full"), 0o755))
	serve := fullBacklog(t, path)
	n.must(os.Rename(path, n.at("a.sock")))
	begun := time.Now()
	plugin := make(chan *realPlugin, 1)
	time.AfterFunc(2*busyPause+busyPause/2, func() { plugin <- serve("a") })
	n.acknowledged(<-plugin)
	n.awaitRegistered(n.at("a.sock"))
	if took := time.Since(begun); took < 2*busyPause {
		t.Errorf("it took %v: the backlog was not full", took)
	}
	if got := n.dialled("a.sock"); got != 1 {
		t.Errorf("%d dials, want 1", got)
	}
}

func TestRealBacklogStaysFull(t *testing.T) {
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := dir + "/a.sock"
	fullBacklog(t, path)
	c := client{Config{Dial: dialUnix, DialTimeout: 2 * busyPause}, &files{}, &dials{}}
	_, err = c.open(t.Context(), scanner.Entry{Path: path})
	if err == nil || !strings.HasPrefix(err.Error(), "dial: no connection within 200ms: busy: the listener's backlog was full") {
		t.Errorf("the error is %v", err)
	}
}
